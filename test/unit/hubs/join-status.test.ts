import { describe, expect, it } from 'vitest';
import type { JoinOutcome } from '../../../operator/controllers/membership/join.ts';
import { toldOfJoin } from '../../../operator/controllers/membership/join-status.ts';
import type { MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';

const OPEN = { opened: true } as const;
const outcome = (receipt: Partial<MembershipReceipt>, more: Partial<JoinOutcome> = {}): JoinOutcome => ({
  verdict: { acting: [], done: ['IdentityReady'] },
  receipt: receipt as MembershipReceipt,
  isWhole: true,
  ...more,
});
const at = { type: 'Registered', waiting: 'the hub has not accepted the cluster' } as const;

describe('the status of a join', () => {
  it('is Joined without a wait once the cluster is open for work', () => {
    const told = toldOfJoin(outcome(OPEN), { wasIn: false, warm: false, silent: '' });
    expect(told).toMatchObject({ state: 'Joined', waiting: '' });
    expect(told.conditions.map(({ type, status }) => [type, status])).toEqual([['IdentityReady', 'True']]);
  });

  it('names the present step, and stays Joined where it had joined before', () => {
    const stuck = outcome({}, { verdict: { acting: [], done: [], at } });
    expect(toldOfJoin(stuck, { wasIn: false, warm: false, silent: '' })).toMatchObject({
      state: 'Joining',
      waiting: at.waiting,
    });
    expect(toldOfJoin(stuck, { wasIn: true, warm: false, silent: '' }).state).toBe('Joined');
  });

  it('is Asleep from the end of the drain until the cluster takes work again', () => {
    const stateOf = (parked: MembershipReceipt['parked']) =>
      toldOfJoin(outcome({ ...OPEN, ...(parked && { parked }) }), { wasIn: true, warm: false, silent: '' }).state;
    expect([stateOf('FallingAsleep'), stateOf('Asleep'), stateOf('Waking'), stateOf('Emptying')]).toEqual([
      'Joined',
      'Asleep',
      'Asleep',
      'Joined',
    ]);
  });

  it('has condition Warm while its policy keeps the cluster waiting, and not once it is open', () => {
    const warmOf = (opened: boolean) => {
      const { conditions } = toldOfJoin(outcome(opened ? OPEN : {}), { wasIn: false, warm: true, silent: '' });
      return conditions.find(({ type }) => type === 'Warm')?.status;
    };
    expect([warmOf(false), warmOf(true)]).toEqual(['True', undefined]);
  });

  it('reports an unreachable cluster only where nothing else is waited for', () => {
    const silent = 'the API server of the cluster does not answer yet';
    expect(toldOfJoin(outcome(OPEN), { wasIn: true, warm: false, silent }).waiting).toBe(silent);
    expect(toldOfJoin(outcome({ ...OPEN, parked: 'Waking' }), { wasIn: true, warm: false, silent }).waiting).toMatch(
      /wakes/,
    );
  });
});
