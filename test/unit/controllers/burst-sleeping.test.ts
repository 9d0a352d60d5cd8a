import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstCandidate, BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { BurstScene, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/scene.ts';

const candidate = (sleepingClusters: number, more: object = {}): BurstCandidate => ({
  name: 'cloud',
  sleepingClusters,
  template: {
    spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, pools: [{ name: 'a', minimum: 3, maximum: 10 }], ...more },
  },
});
const policy = (sleeping: number, more: Partial<BurstPolicySpec> = {}) =>
  policyNamed('peak', { candidates: [candidate(sleeping)], ...more });
const WORK = demand('ResourceBinding shop/web', 3);

let scene: BurstScene;
beforeEach(() => {
  scene = new BurstScene();
  scene.objects.put(policy(1));
});

const isOrdered = ({ metadata }: WorkerCluster) => scene.orders.get(`shop/${metadata.name}`)?.asleep === true;
const phases = () => scene.policy()!.status!.clusters!.map(({ phase }) => phase);
const actions = () => scene.policy()!.status!.decisions!.map(({ action }) => action);
const said = (cluster: WorkerCluster, state: string, status: object = {}) =>
  scene.objects.put({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Membership',
    metadata: { name: `${cluster.metadata.name}.production`, namespace: 'shop' },
    spec: { cluster: cluster.metadata.name, hub: 'production' },
    status: { state, memberName: cluster.metadata.name, ...status },
  });
const live = (name: string) => scene.clusters().find(({ metadata }) => metadata.name === name)!;
/** What its hub does: it is in, and closed. */
function ready(cluster: WorkerCluster): void {
  scene.join(cluster, 0);
  said(cluster, 'Joining', { conditions: [{ type: 'Warm', status: 'True', reason: 'WaitsWarm' }] });
}
/** What the controllers of clusters and memberships make of what it was told. */
function settle(cluster: WorkerCluster, replicas = 0): void {
  const asleep = isOrdered(cluster);
  const { name } = cluster.metadata;
  scene.objects.put({
    ...live(name),
    status: {
      ...(asleep && { hibernation: { asleep: true, since: '2026-11-23T12:00:00Z' } }),
      conditions: [
        {
          type: 'Hibernated',
          status: asleep ? 'True' : 'False',
          lastTransitionTime: new Date(scene.now).toISOString(),
        },
      ],
      cost: { hourly: asleep ? '0' : '0.3', currency: 'USD', accrued: '0', asOf: '2026-11-23T12:00:00Z' },
    },
  } as never);
  if (asleep) {
    scene.open.delete(`shop/${name}`);
    said(cluster, live(name).metadata.labels?.[LABELS.burstWarm] ? 'Pending' : 'Asleep');
  } else scene.join(cluster, replicas);
}
/** A policy with one cluster that sleeps. */
async function asleep(): Promise<WorkerCluster> {
  await scene.look();
  const [made] = scene.clusters();
  ready(made!);
  await scene.look(10 * SECOND);
  settle(made!);
  await scene.look(10 * SECOND);
  return made!;
}

describe('a candidate with sleeping clusters', () => {
  it('has one made, in the hub once, and put to sleep, and counts only what it costs then', async () => {
    await scene.look();
    const [made] = scene.clusters();
    expect(made!.metadata.labels).toMatchObject({ [LABELS.burstWarm]: 'true' });
    expect(made!.spec.hibernation).toBeUndefined();
    expect(isOrdered(made!)).toBe(false);
    expect(scene.policy()!.status!.decisions![0]).toMatchObject({
      action: 'Buy',
      why: 'it waits asleep, as candidate cloud asks for 1 of',
    });
    ready(made!);
    await scene.look(10 * SECOND);
    expect(scene.orders.get(`shop/${made!.metadata.name}`)).toEqual({
      asleep: true,
      by: 'BurstPolicy shop/peak',
      why: 'it waits until work needs it',
      at: '2026-11-23T12:00:10Z',
    });
    expect(scene.events.at(-1)).toMatch(/^PutToSleep BurstPolicy shop\/peak puts it to sleep/);
    settle(made!);
    await scene.look(10 * SECOND);
    expect(phases()).toEqual(['Asleep']);
    expect(scene.policy()!.status).toMatchObject({ clusterCount: 1, hourly: '0' });
    const writes = scene.objects.writes.length;
    await scene.looks(5 * 60 * MINUTE);
    expect(scene.clusters()).toHaveLength(1);
    expect(scene.objects.writes).toHaveLength(writes);
  });

  it('has it woken for work, written down before it is told, and says how long that takes', async () => {
    const made = await asleep();
    scene.demands = [WORK];
    await scene.looks(30 * SECOND);
    expect(isOrdered(made)).toBe(true);
    scene.objects.writes.length = 0;
    await scene.look(10 * SECOND);
    expect(isOrdered(made)).toBe(false);
    expect(scene.clusters()).toHaveLength(1);
    expect(scene.objects.writes[0]).toMatch(/^apply secrets kube-system\/burst-/);
    expect(live(made.metadata.name).metadata.labels?.[LABELS.burstWarm]).toBeUndefined();
    expect(scene.says('DemandMet')).toBe('False Waking');
    expect(scene.policy()!.status!.decisions![0]).toMatchObject({
      action: 'Wake',
      cluster: made.metadata.name,
      hourly: '0.3',
      alternatives: [{ candidate: 'cloud', whyNot: expect.stringContaining('sleeps, and to wake it is better') }],
    });
    expect(scene.events.at(-1)).toMatch(/^Woken BurstPolicy shop\/peak wakes it for ResourceBinding shop\/web/);
    // Until it is back it is room that was ordered, and budgets count what it is to cost.
    await scene.look(10 * SECOND);
    expect(scene.says('DemandMet')).toBe('False RoomOrdered');
    expect(phases()).toEqual(['Waking']);
    expect(scene.policy()!.status!.hourly).toBe('0.3');
    settle(made, 3);
    scene.demands = [];
    await scene.look(5 * SECOND);
    expect(phases()).toEqual(['Joined']);
    expect(scene.policy()!.status!.candidates![0]).toMatchObject({ wakingSeconds: 15 });
    // No other is made for it: it sleeps again when it is without work.
    await scene.looks(5 * MINUTE);
    expect(scene.clusters()).toHaveLength(1);
  });

  it('has it sleep again when it is without work, and its hub closed it or not', async () => {
    const made = await asleep();
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    settle(made, 3);
    scene.demands = [];
    await scene.looks(31 * MINUTE);
    scene.empty(made);
    await scene.looks(10 * MINUTE);
    expect(isOrdered(made)).toBe(false);
    await scene.look(MINUTE);
    expect(isOrdered(made)).toBe(true);
    expect(actions()[0]).toBe('Sleep');
    // Its hub has it as joined until it has moved away what it can.
    await scene.looks(MINUTE);
    expect(phases()).toEqual(['Asleep']);
    expect(scene.outcomes()[0]).toBe('Sleep ?');
    settle(made);
    await scene.looks(MINUTE);
    expect(scene.policy()!.status).toMatchObject({ hourly: '0', clusterCount: 1 });
    // It was awake for some forty minutes, of 0.3 USD an hour.
    expect(scene.outcomes()).toEqual([
      expect.stringMatching(/^Sleep Succeeded: it was asleep 60 s after the decision, and has cost 0.2\d* USD in all/),
      expect.stringMatching(/^Wake Succeeded: it was in the hub 80 s after the decision, and had work by then$/),
      'Buy Succeeded: it was ready in the hub 10 s after the decision, and waits asleep',
    ]);
    const writes = scene.objects.writes.length;
    await scene.looks(60 * MINUTE);
    expect(scene.objects.writes).toHaveLength(writes);
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(isOrdered(made)).toBe(false);
    expect(phases()).toEqual(['Waking']);
    expect(scene.clusters()).toHaveLength(1);
  });

  it('gives back what has no room to sleep', async () => {
    const made = await asleep();
    scene.objects.put(policy(1, { candidates: [candidate(1)], maximumClusters: 3 }));
    scene.demands = [demand('ResourceBinding shop/web', 8)];
    await scene.looks(MINUTE);
    const [bought] = scene.clusters().filter(({ metadata }) => metadata.name !== made.metadata.name);
    settle(made, 3);
    scene.join(bought!, 3);
    scene.demands = [];
    await scene.looks(MINUTE);
    scene.empty(made);
    scene.empty(bought!);
    await scene.looks(60 * MINUTE);
    expect(scene.clusters()).toHaveLength(1);
    expect(scene.clusters().filter(isOrdered)).toHaveLength(1);
    expect(actions().slice(0, 2).sort()).toEqual(['Remove', 'Sleep']);
  });

  it('has one that does not wake given up, and the next candidate bought', async () => {
    const others = { name: 'other', template: { ...candidate(0).template } };
    scene.objects.put(policy(1, { candidates: [candidate(1), others] }));
    const made = await asleep();
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(phases()).toEqual(['Waking']);
    await scene.looks(13 * MINUTE);
    expect(scene.clusters()).toHaveLength(1);
    await scene.looks(3 * MINUTE);
    expect(scene.clusters().map(({ metadata }) => metadata.name)).not.toContain(made.metadata.name);
    expect(scene.clusters().map(({ metadata }) => metadata.name.startsWith('peak-other-'))).toEqual([true]);
    expect(scene.policy()!.status!.decisions!.find(({ action }) => action === 'Fail')).toMatchObject({
      why: 'it was woken, but did not rejoin the hub within 15 minutes',
    });
  });

  it('leaves the others asleep of a candidate of which one has not woken: its machines do not come', async () => {
    const others = { name: 'other', template: { ...candidate(0).template } };
    scene.objects.put(policy(2, { candidates: [candidate(2), others] }));
    for (const index of [0, 1]) {
      await scene.look(MINUTE);
      const made = scene.clusters()[index]!;
      ready(made);
      await scene.look(10 * SECOND);
      settle(made);
    }
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(phases().sort()).toEqual(['Asleep', 'Waking']);
    await scene.looks(17 * MINUTE);
    expect(scene.clusters().filter(isOrdered)).toHaveLength(1);
    expect(scene.clusters().filter(({ metadata }) => metadata.name.startsWith('peak-other-'))).toHaveLength(1);
  });

  it('wakes none that the budget does not allow awake, and says so', async () => {
    await asleep();
    scene.objects.put(policy(1, { budget: { hourly: '0.2', currency: 'USD' } }));
    scene.demands = [WORK];
    await scene.looks(2 * MINUTE);
    expect(scene.clusters().filter(isOrdered)).toHaveLength(1);
    expect(scene.says('DemandMet')).toBe('False Refused');
    expect(scene.policy()!.status!.demand![0]!.message).toMatch(/sleeps: awake it costs 0.3 USD an hour more/);
  });

  it('wakes none whose machines are known to be sold out, until that is over, and says so', async () => {
    const made = await asleep();
    const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: false };
    scene.depleted = [{ ...offer, until: scene.now + 5 * MINUTE }];
    scene.demands = [WORK];
    await scene.looks(4 * MINUTE);
    expect(isOrdered(made)).toBe(true);
    expect(scene.policy()!.status!.demand![0]!.message).toMatch(/sleeps: small of pool a in here is sold out, and not/);
    await scene.looks(2 * MINUTE);
    expect(isOrdered(made)).toBe(false);
  });

  it('wakes one without the pool that is sold out where its other pool takes the work', async () => {
    const pools = [
      { name: 'a', minimum: 3, maximum: 10 },
      { name: 'b', machineType: 'gpu', minimum: 0, maximum: 3 },
    ];
    scene.objects.put(policy(1, { candidates: [candidate(1, { pools })] }));
    const made = await asleep();
    const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'gpu', spot: false };
    scene.depleted = [{ ...offer, until: scene.now + 50 * MINUTE }];
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(isOrdered(made)).toBe(false);
  });

  it('has them replaced when their template changes, and taken away when fewer are asked for', async () => {
    const made = await asleep();
    await scene.looks(11 * MINUTE);
    const changed = candidate(1, { kubernetes: { version: '1.36' } });
    scene.objects.put(policy(1, { candidates: [changed] }));
    await scene.looks(MINUTE);
    expect(scene.clusters().map(({ spec }) => spec.kubernetes?.version)).toEqual(['1.36']);
    expect(scene.clusters()[0]!.metadata.name).not.toBe(made.metadata.name);
    scene.objects.put(policy(0));
    await scene.looks(MINUTE);
    expect(scene.clusters()).toEqual([]);
  });

  it('makes none of a mode that cannot sleep, and says so', async () => {
    scene.objects.put(policy(1, { candidates: [candidate(1, { mode: 'SelfManaged' })] }));
    await scene.looks(MINUTE);
    expect(scene.clusters()).toEqual([]);
    expect(scene.policy()!.status!.decisions![0]!.why).toMatch(/clusters of mode SelfManaged cannot sleep/);
  });

  it('says what it would do in a dry run, and does nothing', async () => {
    const made = await asleep();
    scene.objects.put(policy(1, { dryRun: true }));
    scene.demands = [WORK];
    await scene.looks(MINUTE);
    expect(isOrdered(made)).toBe(true);
    expect(scene.policy()!.status!.decisions![0]).toMatchObject({ action: 'Wake', dryRun: true });
  });

  it.each(['is woken', 'is put to sleep'])(
    '%s once, whenever the operator is killed: after each of its writes',
    async (what) => {
      for (let lives = 1; lives <= 6; lives++) {
        scene = new BurstScene();
        scene.objects.put(policy(1));
        const made = await asleep();
        const begin = () => {
          scene.lives = lives;
        };
        if (what === 'is woken') begin();
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
        expect(isOrdered(made), `killed at write ${lives}`).toBe(false);
        expect(scene.clusters(), `killed at write ${lives}`).toHaveLength(1);
        if (what === 'is woken') continue;
        settle(made, 0);
        scene.demands = [];
        begin();
        await looks(50 * MINUTE);
        expect(isOrdered(made), `killed at write ${lives}`).toBe(true);
        expect(scene.clusters(), `killed at write ${lives}`).toHaveLength(1);
      }
    },
  );
});
