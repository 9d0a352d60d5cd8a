import { expect, it } from 'vitest';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { Replacement, replacedIn } from '../../../operator/controllers/shoot/self-hosted/self-hosted-replace.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import type { GroupMachine } from '../../../operator/shoot/control-plane-group.ts';

const machine = (name: string, change: Partial<GroupMachine> = {}): GroupMachine => ({
  name,
  going: false,
  joined: true,
  overdue: false,
  outdated: false,
  ...change,
});

it('counts no machine that is ending among those with the present keys', () => {
  const state = newShootState();
  const replacement = new Replacement({ state, notice: () => {} } as unknown as Operation, 'the present keys');
  const machines = [machine('a', { outdated: true }), machine('b', { outdated: true }), machine('c'), machine('d')];
  replacement.tell(replacedIn({ desired: 3, machines }), { waitFor: 'machine d to join' });
  expect(state.replacing).toBe(
    '2 of 4 machines of the control plane have the present keys, 1 of them only meanwhile; waiting for machine d to join',
  );
  // A cloud says of a machine on its way out no more whether it is outdated.
  const later = [machine('a', { going: true }), ...machines.slice(1)];
  replacement.tell(replacedIn({ desired: 3, machines: later }), { waitFor: 'machine a to be gone' });
  expect(state.replacing).toBe(
    '2 of 3 machines of the control plane have the present keys; waiting for machine a to be gone',
  );
});
