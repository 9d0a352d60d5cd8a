import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { BurstScene, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/scene.ts';

const entry = { name: 'night', clusterSelector: { matchLabels: { fleet: 'own' } } };
const policy = (more: Partial<BurstPolicySpec> = {}) => policyNamed('peak', { wake: [entry], ...more });
const WORK = demand('ResourceBinding shop/web', 3);
const KEY = 'shop/own';

let scene: BurstScene;
beforeEach(() => {
  scene = new BurstScene();
  scene.objects.put(policy());
  own({ asleep: true, enabled: true });
});

/** Somebody's cluster, as its controller last told of it. */
function own(hibernation: object, more: { labels?: Record<string, string>; state?: string } = {}): WorkerCluster {
  const { labels = { fleet: 'own' }, state = 'Asleep' } = more;
  scene.objects.put({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Membership',
    metadata: { name: 'own.production', namespace: 'shop' },
    spec: { cluster: 'own', hub: 'production' },
    status: { state, memberName: 'own' },
  });
  const since = '2026-11-22T12:00:00Z';
  return scene.objects.put({
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
  const { by, why, at } = scene.orders.get(KEY)!;
  const order = { by, why, otherwise: true, otherwiseSince: '2026-11-22T12:00:00Z' };
  const cluster = own({ asleep: false, enabled: true, since: at, order });
  scene.join(cluster, replicas);
  return cluster;
}
const bought = () => scene.clusters().filter(({ metadata }) => metadata.name !== 'own');
const live = () => scene.objects.find<WorkerCluster>(WORKERCLUSTERS, 'own', 'shop')!;
const decisions = () => scene.policy()!.status!.decisions!;

describe('a policy that may wake clusters of others', () => {
  it('wakes one for work that has no place, by an order of its own, written down before', async () => {
    const spec = JSON.stringify(live().spec);
    await scene.look();
    scene.demands = [WORK];
    await scene.look();
    scene.objects.writes.length = 0;
    await scene.look(30 * SECOND);
    expect(scene.orders.get(KEY)).toEqual({
      asleep: false,
      by: 'BurstPolicy shop/peak',
      why: 'work of ResourceBinding shop/web has no place',
      at: '2026-11-23T12:00:30Z',
    });
    expect(scene.objects.writes[0]).toMatch(/^apply secrets kube-system\/burst-/);
    expect(JSON.stringify(live().spec)).toBe(spec);
    expect(bought()).toEqual([]);
    expect(scene.events).toContain(
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
    await scene.look(10 * SECOND);
    expect(scene.says('DemandMet')).toBe('False RoomOrdered');
    expect(scene.policy()!.status).toMatchObject({
      clusterCount: 0,
      hourly: '0.3',
      woken: [{ cluster: 'own', entry: 'night', phase: 'Waking', hourly: '0.3' }],
    });
    wake();
    scene.demands = [];
    await scene.look(5 * SECOND);
    expect(scene.policy()!.status!.woken).toMatchObject([{ phase: 'Joined' }]);
    expect(scene.receipt()!.wakings).toEqual({ 'wake/night': [15] });
    const writes = scene.objects.writes.length;
    await scene.looks(60 * MINUTE);
    expect(scene.objects.writes).toHaveLength(writes);
  });

  it('takes what falls asleep for no room, and wakes it', async () => {
    scene.join(own({ asleep: true, enabled: true }, { state: 'Joined' }), 0);
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(scene.orders.get(KEY)).toMatchObject({ asleep: false });
  });

  it('lets it sleep again when it is without work, and wakes it the next time', async () => {
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    const cluster = wake();
    scene.demands = [];
    await scene.looks(31 * MINUTE);
    scene.empty(cluster);
    await scene.looks(10 * MINUTE);
    expect(scene.orders.get(KEY)).toBeDefined();
    await scene.looks(2 * MINUTE);
    expect(scene.orders.get(KEY)).toBeUndefined();
    expect(decisions()[0]).toMatchObject({ action: 'Sleep', cluster: 'own', why: expect.stringContaining('no work') });
    expect(scene.events).toContain(
      'LetSleep BurstPolicy shop/peak no longer keeps it awake: it sleeps again as its own spec says',
    );
    expect(scene.outcomes()).toEqual([
      expect.stringMatching(/^Sleep Succeeded: since then its own spec decides again; keeping it awake has cost 0.2/),
      expect.stringMatching(/^Wake Succeeded: it was in the hub \d+ s after the decision, and had work by then$/),
    ]);
    expect(scene.policy()!.status!.hourly).toBe('0');
    expect(Number(scene.policy()!.status!.spend!.amount)).toBeGreaterThan(0.2);
    own({ asleep: true, enabled: true });
    scene.open.clear();
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(scene.orders.get(KEY)).toBeDefined();
    expect(bought()).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['its labels do not ask for', () => own({ asleep: true }, { labels: {} })],
    ['is awake', () => own({ asleep: false })],
    ['a policy has put to sleep', () => scene.orders.set(KEY, { asleep: true, by: 'x', why: 'x', at: '' })],
    ['is in no hub yet', () => own({ asleep: true }, { state: 'Joining' })],
    [
      'a policy has made',
      () => own({ asleep: true }, { labels: { fleet: 'own', 'multi-cluster.demo.io/burst-policy': 'p' } }),
    ],
    ['its budget has no money for', () => scene.objects.put(policy({ budget: { hourly: '0.2', currency: 'USD' } }))],
    [
      'has machines of which none are to be had',
      () => {
        const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: false };
        scene.depleted = [{ ...offer, until: scene.now + 10 * MINUTE }];
      },
    ],
    ['it would wake in a dry run', () => scene.objects.put(policy({ dryRun: true }))],
  ])('leaves alone one that %s', async (_, change) => {
    change();
    const before = scene.orders.get(KEY);
    scene.demands = [WORK];
    await scene.looks(2 * MINUTE);
    expect(scene.orders.get(KEY)).toBe(before);
    expect(scene.receipt()?.wakes ?? []).toEqual([]);
  });

  it.each<[string, object, string]>([
    ['somebody says that it is to sleep', { asleep: true, enabled: true, enabledAt: '2026-11-23T12:30:00Z' }, 'sleep'],
    ['its schedule has it awake', { asleep: false, order: { by: 'x', why: 'x', otherwise: false } }, 'awake'],
  ])('has nothing to say any more when %s', async (_, hibernation, word) => {
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    wake();
    scene.demands = [];
    await scene.looks(MINUTE);
    own(hibernation, { state: 'Joined' });
    await scene.look(10 * SECOND);
    expect(scene.orders.get(KEY)).toBeUndefined();
    expect(decisions()[0]).toMatchObject({ action: 'Sleep', why: expect.stringContaining(word) });
    expect(scene.receipt()!.wakes).toEqual([]);
  });

  it('gives up one that does not wake, lets it rest, and buys another', async () => {
    scene.demands = [WORK];
    await scene.looks(15 * MINUTE);
    expect(bought()).toEqual([]);
    await scene.looks(3 * MINUTE);
    expect(scene.orders.get(KEY)).toBeUndefined();
    expect(decisions().find(({ action }) => action === 'Fail')).toMatchObject({ cluster: 'own', candidate: 'night' });
    expect(scene.outcomes().at(-1)).toMatch(
      /^Wake Failed: it was given up 15 minutes after the decision: it was woken/,
    );
    expect(bought()).toHaveLength(1);
    expect(scene.receipt()!.rests[KEY]).toMatchObject({ failures: 1 });
  });

  it('gives up one that gets none of the work that it was woken for', async () => {
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    wake(0);
    await scene.looks(7 * MINUTE);
    expect(scene.orders.get(KEY)).toBeUndefined();
    expect(decisions().find(({ action }) => action === 'Fail')!.why).toMatch(/^it got none of the work of Resource/);
  });

  it('lets it sleep when the policy is deleted, or has its entry no longer', async () => {
    for (const end of [
      () => scene.objects.put(policyNamed('peak', {})),
      () => {
        const { metadata, ...rest } = scene.policy()!;
        scene.objects.put({ ...rest, metadata: { ...metadata, deletionTimestamp: '2026-11-23T13:00:00Z' } } as never);
      },
    ]) {
      scene = new BurstScene();
      scene.objects.put(policy());
      own({ asleep: true, enabled: true });
      scene.demands = [WORK];
      await scene.looks(MINUTE);
      wake();
      expect(scene.orders.get(KEY)).toBeDefined();
      end();
      await scene.look(10 * SECOND);
      expect(scene.orders.get(KEY)).toBeUndefined();
    }
  });

  it('wakes one once and buys none, whenever the operator is killed: after each of its writes', async () => {
    for (let lives = 1; lives <= 8; lives++) {
      scene = new BurstScene();
      scene.objects.put(policy());
      own({ asleep: true, enabled: true });
      await scene.look();
      scene.lives = lives;
      scene.demands = [WORK];
      const looks = async (during: number) => {
        for (let past = 0; past < during; past += 10 * SECOND)
          await scene.look(10 * SECOND).catch((error: unknown) => {
            if (!(error instanceof Killed)) throw error;
            scene.lives = Number.POSITIVE_INFINITY;
            scene.memory = new BurstMemory();
          });
      };
      await looks(3 * MINUTE);
      expect(scene.orders.get(KEY), `killed at write ${lives}`).toMatchObject({ asleep: false });
      expect(scene.receipt()!.wakes, `killed at write ${lives}`).toHaveLength(1);
      expect(bought(), `killed at write ${lives}`).toEqual([]);
      const cluster = wake();
      scene.demands = [];
      await looks(MINUTE);
      scene.empty(cluster);
      scene.lives = lives;
      await looks(50 * MINUTE);
      expect(scene.orders.get(KEY), `killed at write ${lives} of its end`).toBeUndefined();
      expect(scene.receipt()!.wakes, `killed at write ${lives} of its end`).toEqual([]);
    }
  });
});
