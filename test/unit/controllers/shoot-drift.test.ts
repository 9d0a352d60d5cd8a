import { describe, expect, it, vi } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import type { Condition } from '../../../operator/api/meta.ts';
import type { Shoot, ShootSpec } from '../../../operator/api/shoot.ts';
import {
  DRIFT_LOOKS,
  driftCondition,
  endDriftLook,
  lookForDrift,
  noteMended,
  wantsMending,
} from '../../../operator/controllers/shoot/drift/drift.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { FairQueue } from '../../../operator/kube/fair-queue.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { Change } from '../../../providers/cloud.ts';
import type { ProviderContext } from '../../../providers/contract.ts';
import { partOf } from '../../kit/builders/partial.ts';

const HOUR = 3600_000;
const WALL: Change = {
  operation: 'update',
  resource: 'aws:ec2/securityGroup:SecurityGroup machines',
  properties: ['ingress'],
};

/** An operation on a cluster in a cloud of which it is told what others changed. */
function testbed({ uid = 'u', namespace = 'shop', turns = new FairQueue(DRIFT_LOOKS) } = {}) {
  let now = new Date('2026-01-01T00:00:00Z');
  const events: string[] = [];
  const again = vi.fn();
  const drift = vi.fn<(ctx: ProviderContext) => Promise<Change[] | undefined>>(async () => []);
  const shoot = {
    metadata: { name: uid, namespace, uid } as Shoot['metadata'],
    spec: { provider: {} } as ShootSpec,
    status: { conditions: [] as Condition[] },
  };
  const mergePatch = vi.fn(async (..._patch: unknown[]) => shoot);
  const op = partOf<Operation>({
    provider: { drift },
    unmended: new Map(),
    state: newShootState(),
    shoot,
    context: () => ({ profile: { spec: {} } }),
    deps: {
      now: () => now,
      log: silent,
      again,
      driftTurns: turns,
      shoots: { get: () => shoot, absorb: () => {} },
      garden: { mergePatch },
      recordEvent: (_object: unknown, type: string, reason: string, message: string) =>
        events.push(`${type} ${reason} ${message}`),
    },
  });
  const testbed = {
    op,
    shoot,
    mergePatch,
    drift,
    events,
    again,
    pass: (ms: number) => {
      now = new Date(+now + ms);
    },
    look: async () => {
      lookForDrift(op);
      await op.state.drift!.running;
      return testbed.condition();
    },
    /** To the cluster's next moment. */
    later: async () => {
      testbed.pass(6 * HOUR);
      return testbed.look();
    },
    condition: () => {
      const said = driftCondition(op, op.shoot);
      shoot.status.conditions = said ? [{ ...said, lastTransitionTime: now.toISOString() }] : [];
      return said;
    },
  };
  lookForDrift(op);
  return testbed;
}

describe("the drift of a cluster's account", () => {
  it('causes no cost and no report without a cloud', () => {
    const { op } = testbed();
    Object.assign(op, { provider: {}, state: newShootState() });
    lookForDrift(op);
    expect([op.state.drift, driftCondition(op, op.shoot)]).toEqual([undefined, undefined]);
  });

  it('is checked every six hours at spread times, and not at a start', async () => {
    const { drift, later, look, pass, again, condition } = testbed();
    expect([drift.mock.calls.length, condition()]).toEqual([0, undefined]);
    expect(await later()).toMatchObject({ status: 'False', reason: 'AsApplied' });
    await look();
    pass(5 * 60_000);
    await look();
    expect([drift.mock.calls.length, again.mock.calls.length]).toEqual([1, 1]);
    await later();
    expect(drift).toHaveBeenCalledTimes(2);
  });

  it("is checked at the profile's interval", async () => {
    const { op, drift, look, pass } = testbed();
    op.context = () => partOf<ProviderContext>({ profile: { spec: { drift: { interval: '1m' } } } });
    await look();
    pass(60_000);
    await look();
    expect(drift).toHaveBeenCalledTimes(1);
  });

  it('is reported with the differences, once, also by the next operator', async () => {
    const first = testbed();
    first.drift.mockResolvedValue([WALL]);
    const told = await first.later();
    expect(told).toMatchObject({ status: 'True', reason: 'ChangedByOthers' });
    expect(told?.message).toContain('update aws:ec2/securityGroup:SecurityGroup machines (ingress)');
    await first.later();
    Object.assign(first.op, { state: newShootState() });
    lookForDrift(first.op);
    expect(first.condition()).toEqual(told);
    expect(await first.later()).toEqual(told);
    expect(first.events).toHaveLength(1);
    first.drift.mockResolvedValue([]);
    expect(await first.later()).toMatchObject({ status: 'False' });
  });

  it('is named in bounded text', async () => {
    const { drift, later } = testbed();
    drift.mockResolvedValue(Array.from({ length: 500 }, () => WALL));
    const { message = '' } = (await later())!;
    expect(message).toContain('and 490 more');
    expect(message.length).toBeLessThan(2000);
  });

  it('is unknown until the first check, with growing retries', async () => {
    const { drift, later, look, pass } = testbed();
    drift.mockRejectedValue(new CoppiceError('ERR_INFRA_UNAUTHORIZED', 'no'));
    expect(await later()).toMatchObject({ status: 'Unknown', codes: ['ERR_INFRA_UNAUTHORIZED'] });
    await look();
    expect(drift).toHaveBeenCalledTimes(1);
    for (const minutes of [5, 10, 20]) {
      pass(minutes * 60_000 - 1);
      await look();
      pass(1);
      await look();
    }
    expect(drift).toHaveBeenCalledTimes(4);
    drift.mockResolvedValue([]);
    expect(await later()).toMatchObject({ status: 'False' });
    drift.mockRejectedValue(new Error('away'));
    expect(await later()).toMatchObject({ status: 'False' });
  });

  it('is not reported during a change, and checked soon after', async () => {
    const { drift, later, look, pass } = testbed();
    drift.mockResolvedValue(undefined);
    expect(await later()).toBeUndefined();
    drift.mockResolvedValue([]);
    pass(5 * 60_000);
    expect(await look()).toMatchObject({ status: 'False' });
  });

  it('is not checked during a change: the check ends without a report, and is repeated', async () => {
    const { op, drift, look, pass, again, condition } = testbed();
    let end!: (found: Change[]) => void;
    drift.mockReturnValueOnce(
      new Promise((resolve) => {
        end = resolve;
      }),
    );
    pass(6 * HOUR);
    lookForDrift(op);
    const { running } = op.state.drift!;
    await expect.poll(() => drift).toHaveBeenCalled();
    endDriftLook(op.state);
    end([WALL]);
    await running;
    expect([condition(), again.mock.calls.length]).toEqual([undefined, 0]);
    expect(await look()).toMatchObject({ status: 'False' });
  });

  it('is checked in one cluster at a time, of any number', async () => {
    const turns = new FairQueue(DRIFT_LOOKS);
    let [going, most] = [0, 0];
    const testbeds = Array.from({ length: 10 }, (_, i) => testbed({ uid: `u${i}`, turns }));
    for (const { drift } of testbeds)
      drift.mockImplementation(async () => {
        most = Math.max(most, ++going);
        await new Promise(setImmediate);
        going--;
        return [];
      });
    const said = await Promise.all(testbeds.map(({ later }) => later()));
    expect([most, said.every((one) => one?.status === 'False')]).toEqual([1, true]);
  });

  it("is checked in a namespace's only cluster after the first of another's ten", async () => {
    const turns = new FairQueue(DRIFT_LOOKS);
    const looked: string[] = [];
    const testbeds = Array.from({ length: 11 }, (_, i) => {
      const namespace = i < 10 ? 'big' : 'small';
      const one = testbed({ uid: `u${i}`, namespace, turns });
      one.drift.mockImplementation(async () => {
        looked.push(namespace);
        return [];
      });
      return one;
    });
    await Promise.all(testbeds.map(({ later }) => later()));
    expect([looked.indexOf('small'), looked.length]).toEqual([1, 11]);
  });
});

describe("the drift of a cluster's account is corrected", () => {
  const mends = ({ op }: ReturnType<typeof testbed>) => wantsMending(op.provider, op.shoot, op.state);

  it('once, on request by annotation, which is removed afterwards', async () => {
    const one = testbed();
    one.drift.mockResolvedValue([WALL]);
    expect((await one.later())?.message).toContain('annotate Shoot u with gardener.cloud/operation=reconcile');
    expect(mends(one)).toBe(false);
    one.shoot.metadata.annotations = { 'gardener.cloud/operation': 'reconcile' };
    expect(mends(one)).toBe(true);
    await noteMended(one.op);
    expect(one.condition()).toMatchObject({ status: 'False' });
    expect(one.mergePatch.mock.calls[0]?.slice(1, 4)).toEqual([
      'u',
      'shop',
      { metadata: { annotations: { 'gardener.cloud/operation': null } } },
    ]);
  });

  it('whenever it is found, where the policy says so; failures are retried at the next check', async () => {
    const one = testbed();
    one.shoot.spec.drift = { policy: 'Mend' };
    await one.later();
    expect(mends(one)).toBe(false);
    one.drift.mockResolvedValue([WALL]);
    await one.later();
    expect(mends(one)).toBe(true);
    await noteMended(one.op);
    expect([mends(one), one.mergePatch.mock.calls.length]).toEqual([false, 0]);
    await one.later();
    expect(mends(one)).toBe(true);
  });

  it('except for control plane machines, which is reported and retried at the next check', async () => {
    const one = testbed();
    const group: Change = { operation: 'create', resource: 'aws:autoscaling/group:Group pool-control-plane' };
    one.shoot.spec.drift = { policy: 'Mend' };
    one.shoot.spec.provider.workers = [{ name: 'control-plane', controlPlane: {} }] as ShootSpec['provider']['workers'];
    one.drift.mockResolvedValue([WALL, group]);
    expect((await one.later())?.message).toContain('It is being changed back');
    expect(mends(one)).toBe(true);
    one.op.unmended.set('machines', { changes: [group] });
    await noteMended(one.op);
    const { message, status } = one.condition()!;
    expect([status, mends(one)]).toEqual(['True', false]);
    expect(message).toContain('create aws:autoscaling/group:Group pool-control-plane. Change it back in the cloud');
    expect(message).not.toContain('SecurityGroup');
    expect(one.events.at(-1)).toBe(`Warning NotMended ${message}`);
    one.drift.mockResolvedValue([group]);
    await one.later();
    expect(mends(one)).toBe(true);
  });
});
