import { expect, it } from 'vitest';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import {
  Replacement,
  replacedIn,
  wantedInCloud,
} from '../../../operator/controllers/shoot/self-hosted/self-hosted-replace.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import type { ControlPlaneGroupObservation } from '../../../operator/shoot/control-plane-group.ts';
import type { PKIData } from '../../../operator/shoot/pki.ts';
import { planEncryption } from '../../../operator/shoot/secrets-encryption.ts';
import { buildNode } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { NOW } from '../shoot/values.ts';

type GroupMachine = ControlPlaneGroupObservation['machines'][number];

const machine = (name: string, change: Partial<GroupMachine> = {}): GroupMachine => ({
  name,
  going: false,
  joined: true,
  overdue: false,
  outdated: false,
  ...change,
});

const node = (version: string) =>
  buildNode({ metadata: { name: 'a' }, status: { nodeInfo: { kubeletVersion: `v${version}` } } });
const changing = planEncryption(planEncryption({}, { isNew: true, rotate: false, now: NOW }), {
  isNew: false,
  rotate: true,
  now: NOW,
});

it.each<[string, PKIData, string, string]>([
  ['another version', {}, '1.35.4', 'Kubernetes 1.36.3'],
  ['another version and other keys', changing, '1.35.4', 'Kubernetes 1.36.3 and the present keys of Secrets'],
  ['other keys', changing, '1.36.3', 'the present keys of Secrets'],
  ['other certificates', {}, '1.36.3', 'certificates that do not end soon'],
])('says that machines of a cloud get %s', (_what, pki, runs, expected) => {
  const op = partOf<Operation>({ pki, values: { version: '1.36.3' } });
  expect(wantedInCloud(op, [node('1.36.3'), node(runs)])).toBe(expected);
});

it('machines being deleted are not counted among those with the present keys', () => {
  const state = newShootState();
  const replacement = new Replacement(partOf<Operation>({ state, notice: () => {} }), 'the present keys');
  const machines = [machine('a', { outdated: true }), machine('b', { outdated: true }), machine('c'), machine('d')];
  replacement.tell(replacedIn({ desired: 3, machines }), { waitFor: 'machine d to join' });
  expect(state.replacing).toBe(
    '2 of 4 machines of the control plane have the present keys, 1 of them only meanwhile; still to be replaced: a, b; waiting for machine d to join',
  );
  // A cloud says of a machine on its way out no more whether it is outdated.
  const later = [machine('a', { going: true }), ...machines.slice(1)];
  replacement.tell(replacedIn({ desired: 3, machines: later }), { waitFor: 'machine a to be gone' });
  expect(state.replacing).toBe(
    '2 of 3 machines of the control plane have the present keys; still to be replaced: b; waiting for machine a to be gone',
  );
});
