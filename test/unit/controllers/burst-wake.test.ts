import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';
import { casesUpTo } from '../../kit/cases.ts';

const entry = { name: 'night', clusterSelector: { matchLabels: { fleet: 'own' } } };
const policy = (more: Partial<BurstPolicySpec> = {}) => policyNamed('peak', { wake: [entry], ...more });
const WORK = demand('ResourceBinding shop/web', 3);
const KEY = 'shop/own';

let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policy());
  own({ asleep: true, enabled: true });
});

/** Somebody's cluster, as its controller last told of it. */
function own(hibernation: object, more: { labels?: Record<string, string>; state?: string } = {}): WorkerCluster {
  const { labels = { fleet: 'own' }, state = 'Asleep' } = more;
  testbed.objects.put({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Membership',
    metadata: { name: 'own.production', namespace: 'shop' },
    spec: { cluster: 'own', hub: 'production' },
    status: { state, memberName: 'own' },
  });
  const since = '2026-11-22T12:00:00Z';
  return testbed.objects.put({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: 'own', namespace: 'shop', uid: 'uid-of-own', labels },
    spec: {
      cloudProvider: 'cloud',
      controlPlaneNodes: 1,
      hibernation: { enabled: true },
      pools: [{ name: 'a', minimum: 3, maximum: 3 }],
    },
    status: { hibernation: { since, ...hibernation } },
  } as never) as unknown as WorkerCluster;
}
/** What the controllers of clusters and memberships make of the order. */
function wake(replicas = 3): WorkerCluster {
  const { by, why, at } = testbed.orders.get(KEY)!;
  const order = { by, why, otherwise: true, otherwiseSince: '2026-11-22T12:00:00Z' };
  const cluster = own({ asleep: false, enabled: true, since: at, order });
  testbed.join(cluster, replicas);
  return cluster;
}
const bought = () => testbed.clusters().filter(({ metadata }) => metadata.name !== 'own');
const live = () => testbed.objects.find<WorkerCluster>(WORKERCLUSTERS, 'own', 'shop')!;
const decisions = () => testbed.policy()!.status!.decisions!;

describe("a policy that may wake others' clusters", () => {
  it('wakes one for unplaced work by a sleep order, recorded before', async () => {
    const spec = JSON.stringify(live().spec);
    await testbed.look();
    testbed.demands = [WORK];
    await testbed.look();
    testbed.objects.writes.length = 0;
    await testbed.look(30 * SECOND);
    expect(testbed.orders.get(KEY)).toEqual({
      asleep: false,
      by: 'BurstPolicy shop/peak',
      why: 'work of ResourceBinding shop/web has no place',
      at: '2026-11-23T12:00:30Z',
    });
    expect(testbed.objects.writes[0]).toMatch(/^create secrets kube-system\/burst-/);
    expect(JSON.stringify(live().spec)).toBe(spec);
    expect(bought()).toEqual([]);
    expect(testbed.events).toContain(
      'Woken BurstPolicy shop/peak wakes it: work of ResourceBinding shop/web has no place',
    );
    expect(decisions()[0]).toMatchObject({
      action: 'Wake',
      cluster: 'own',
      candidate: 'night',
      hourly: '0.3',
      alternatives: [{ candidate: 'cloud' }],
    });
    // Until it is back it is room that was ordered, and budgets count it.
    await testbed.look(10 * SECOND);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    expect(testbed.policy()!.status).toMatchObject({
      clusterCount: 0,
      hourly: '0.3',
      woken: [{ cluster: 'own', entry: 'night', phase: 'Waking', hourly: '0.3' }],
    });
    wake();
    testbed.demands = [];
    await testbed.look(5 * SECOND);
    expect(testbed.policy()!.status!.woken).toMatchObject([{ phase: 'Joined' }]);
    expect(testbed.receipt()!.wakings).toEqual({ 'wake/night': [15] });
    const writes = testbed.objects.writes.length;
    await testbed.looks(60 * MINUTE);
    expect(testbed.objects.writes).toHaveLength(writes);
  });

  it('takes clusters that fall asleep as no room, and wakes them', async () => {
    testbed.join(own({ asleep: true, enabled: true }, { state: 'Joined' }), 0);
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(testbed.orders.get(KEY)).toMatchObject({ asleep: false });
  });

  it('lets it sleep again without work, and wakes it the next time', async () => {
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    const cluster = wake();
    testbed.demands = [];
    await testbed.looks(31 * MINUTE);
    testbed.empty(cluster);
    await testbed.looks(10 * MINUTE);
    expect(testbed.orders.get(KEY)).toBeDefined();
    await testbed.looks(2 * MINUTE);
    expect(testbed.orders.get(KEY)).toBeUndefined();
    expect(decisions()[0]).toMatchObject({ action: 'Sleep', cluster: 'own', why: expect.stringContaining('no work') });
    expect(testbed.events).toContain(
      'LetSleep BurstPolicy shop/peak no longer keeps it awake: it sleeps again as its own spec says',
    );
    expect(testbed.outcomes()).toEqual([
      expect.stringMatching(/^Sleep Succeeded: since then its own spec decides again; keeping it awake has cost 0.2/),
      expect.stringMatching(/^Wake Succeeded: it was in the hub \d+ s after the decision, and had work by then$/),
    ]);
    expect(testbed.policy()!.status!.hourly).toBe('0');
    expect(Number(testbed.policy()!.status!.spend!.amount)).toBeGreaterThan(0.2);
    own({ asleep: true, enabled: true });
    testbed.open.clear();
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(testbed.orders.get(KEY)).toBeDefined();
    expect(bought()).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['its labels do not ask for', () => own({ asleep: true }, { labels: {} })],
    ['is awake', () => own({ asleep: false })],
    ['a policy has put to sleep', () => testbed.orders.set(KEY, { asleep: true, by: 'x', why: 'x', at: '' })],
    ['is in no hub yet', () => own({ asleep: true }, { state: 'Joining' })],
    [
      'a policy has made',
      () => own({ asleep: true }, { labels: { fleet: 'own', 'multi-cluster.demo.io/burst-policy': 'p' } }),
    ],
    ['its budget has no money for', () => testbed.objects.put(policy({ budget: { hourly: '0.2', currency: 'USD' } }))],
    [
      'has machines of which none are to be had',
      () => {
        const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: false };
        testbed.depleted = [{ ...offer, until: testbed.now + 10 * MINUTE }];
      },
    ],
    ['it would wake in a dry run', () => testbed.objects.put(policy({ dryRun: true }))],
  ])('leaves alone one that %s', async (_, change) => {
    change();
    const before = testbed.orders.get(KEY);
    testbed.demands = [WORK];
    await testbed.looks(2 * MINUTE);
    expect(testbed.orders.get(KEY)).toBe(before);
    expect(testbed.receipt()?.wakes ?? []).toEqual([]);
  });

  it.each<[string, object, string]>([
    ['somebody says that it is to sleep', { asleep: true, enabled: true, enabledAt: '2026-11-23T12:30:00Z' }, 'sleep'],
    ['its schedule has it awake', { asleep: false, order: { by: 'x', why: 'x', otherwise: false } }, 'awake'],
  ])('has nothing to say any more when %s', async (_, hibernation, word) => {
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    wake();
    testbed.demands = [];
    await testbed.looks(MINUTE);
    own(hibernation, { state: 'Joined' });
    await testbed.look(10 * SECOND);
    expect(testbed.orders.get(KEY)).toBeUndefined();
    expect(decisions()[0]).toMatchObject({ action: 'Sleep', why: expect.stringContaining(word) });
    expect(testbed.receipt()!.wakes).toEqual([]);
  });

  it('gives up one that does not wake, cools it down, and buys another', async () => {
    testbed.demands = [WORK];
    await testbed.looks(15 * MINUTE);
    expect(bought()).toEqual([]);
    await testbed.looks(3 * MINUTE);
    expect(testbed.orders.get(KEY)).toBeUndefined();
    expect(decisions().find(({ action }) => action === 'Fail')).toMatchObject({ cluster: 'own', candidate: 'night' });
    expect(testbed.outcomes().at(-1)).toMatch(
      /^Wake Failed: it was given up 15 minutes after the decision: it was woken/,
    );
    expect(bought()).toHaveLength(1);
    expect(testbed.receipt()!.rests[KEY]).toMatchObject({ failures: 1 });
  });

  it('gives up one that gets none of the work it was woken for', async () => {
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    wake(0);
    await testbed.looks(7 * MINUTE);
    expect(testbed.orders.get(KEY)).toBeUndefined();
    expect(decisions().find(({ action }) => action === 'Fail')!.why).toMatch(/^it got none of the work of Resource/);
  });

  it('keeps one awake whose pools get nodes in sequence, for 15 minutes', async () => {
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    const cluster = wake(0);
    testbed.objects.put({ ...cluster, status: { ...cluster.status, nodes: { desired: 3, ready: 1 } } } as never);
    const open = testbed.open.get(KEY)!;
    open.nodes = open.nodes.slice(0, 1);
    await testbed.looks(14 * MINUTE);
    expect(testbed.orders.get(KEY)).toBeDefined();
    await testbed.looks(6 * MINUTE);
    expect(testbed.orders.get(KEY)).toBeUndefined();
    expect(testbed.receipt()!.rests[KEY]).toMatchObject({ failures: 1 });
  });

  it('lets it sleep when the policy is deleted or no longer lists it', async () => {
    for (const end of [
      () => testbed.objects.put(policyNamed('peak', {})),
      () => {
        const { metadata, ...rest } = testbed.policy()!;
        testbed.objects.put({ ...rest, metadata: { ...metadata, deletionTimestamp: '2026-11-23T13:00:00Z' } } as never);
      },
    ]) {
      testbed = new BurstTestbed();
      testbed.objects.put(policy());
      own({ asleep: true, enabled: true });
      testbed.demands = [WORK];
      await testbed.looks(MINUTE);
      wake();
      expect(testbed.orders.get(KEY)).toBeDefined();
      end();
      await testbed.look(10 * SECOND);
      expect(testbed.orders.get(KEY)).toBeUndefined();
    }
  });

  it('wakes one once and buys none with the operator killed after each of its writes', async () => {
    for (const lives of casesUpTo(8)) {
      testbed = new BurstTestbed();
      testbed.objects.put(policy());
      own({ asleep: true, enabled: true });
      await testbed.look();
      testbed.lives = lives;
      testbed.demands = [WORK];
      const looks = async (during: number) => {
        for (let past = 0; past < during; past += 10 * SECOND)
          await testbed.look(10 * SECOND).catch((error: unknown) => {
            if (!(error instanceof Killed)) throw error;
            testbed.lives = Number.POSITIVE_INFINITY;
            testbed.memory = new BurstMemory();
          });
      };
      await looks(3 * MINUTE);
      expect(testbed.orders.get(KEY), `killed at write ${lives}`).toMatchObject({ asleep: false });
      expect(testbed.receipt()!.wakes, `killed at write ${lives}`).toHaveLength(1);
      expect(bought(), `killed at write ${lives}`).toEqual([]);
      const cluster = wake();
      testbed.demands = [];
      await looks(MINUTE);
      testbed.empty(cluster);
      testbed.lives = lives;
      await looks(50 * MINUTE);
      expect(testbed.orders.get(KEY), `killed at write ${lives} of its end`).toBeUndefined();
      expect(testbed.receipt()!.wakes, `killed at write ${lives} of its end`).toEqual([]);
    }
  });
});
