import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstCandidate, BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';
import { casesUpTo } from '../../kit/cases.ts';

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

let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policy(1));
});

const isOrdered = ({ metadata }: WorkerCluster) => testbed.orders.get(`shop/${metadata.name}`)?.asleep === true;
const phases = () => testbed.policy()!.status!.clusters!.map(({ phase }) => phase);
const actions = () => testbed.policy()!.status!.decisions!.map(({ action }) => action);
const said = (cluster: WorkerCluster, state: string, status: object = {}) =>
  testbed.objects.put({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Membership',
    metadata: { name: `${cluster.metadata.name}.production`, namespace: 'shop' },
    spec: { cluster: cluster.metadata.name, hub: 'production' },
    status: { state, memberName: cluster.metadata.name, ...status },
  });
const live = (name: string) => testbed.clusters().find(({ metadata }) => metadata.name === name)!;
/** What its hub does: it is in, and closed. */
function ready(cluster: WorkerCluster): void {
  testbed.join(cluster, 0);
  said(cluster, 'Joining', { conditions: [{ type: 'Warm', status: 'True', reason: 'WaitsWarm' }] });
}
/** What the controllers of clusters and memberships make of what it was told. */
function settle(cluster: WorkerCluster, replicas = 0): void {
  const asleep = isOrdered(cluster);
  const { name } = cluster.metadata;
  testbed.objects.put({
    ...live(name),
    status: {
      ...(asleep && { hibernation: { asleep: true, since: '2026-11-23T12:00:00Z' } }),
      conditions: [
        {
          type: 'Hibernated',
          status: asleep ? 'True' : 'False',
          lastTransitionTime: new Date(testbed.now).toISOString(),
        },
      ],
      cost: { hourly: asleep ? '0' : '0.3', currency: 'USD', accrued: '0', asOf: '2026-11-23T12:00:00Z' },
    },
  } as never);
  if (asleep) {
    testbed.open.delete(`shop/${name}`);
    said(cluster, live(name).metadata.labels?.[LABELS.burstWarm] ? 'Pending' : 'Asleep');
  } else testbed.join(cluster, replicas);
}
/** A policy with one cluster that sleeps. */
async function asleep(): Promise<WorkerCluster> {
  await testbed.look();
  const [made] = testbed.clusters();
  ready(made!);
  await testbed.look(10 * SECOND);
  settle(made!);
  await testbed.look(10 * SECOND);
  return made!;
}

describe('a candidate with sleeping clusters', () => {
  it('creates one, joins it once, puts it to sleep, and counts only its cost asleep', async () => {
    await testbed.look();
    const [made] = testbed.clusters();
    expect(made!.metadata.labels).toMatchObject({ [LABELS.burstWarm]: 'true' });
    expect(made!.spec.hibernation).toBeUndefined();
    expect(isOrdered(made!)).toBe(false);
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({
      action: 'Buy',
      why: 'it waits asleep, as candidate cloud asks for 1 of',
    });
    ready(made!);
    await testbed.look(10 * SECOND);
    expect(testbed.orders.get(`shop/${made!.metadata.name}`)).toEqual({
      asleep: true,
      by: 'BurstPolicy shop/peak',
      why: 'it waits until work needs it',
      at: '2026-11-23T12:00:10Z',
    });
    expect(testbed.events.at(-1)).toMatch(/^PutToSleep BurstPolicy shop\/peak puts it to sleep/);
    settle(made!);
    await testbed.look(10 * SECOND);
    expect(phases()).toEqual(['Asleep']);
    expect(testbed.policy()!.status).toMatchObject({ clusterCount: 1, hourly: '0' });
    const writes = testbed.objects.writes.length;
    await testbed.looks(5 * 60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.objects.writes).toHaveLength(writes);
  });

  it('wakes it for work, recorded before it is reported, with the expected time', async () => {
    const made = await asleep();
    testbed.demands = [WORK];
    await testbed.looks(30 * SECOND);
    expect(isOrdered(made)).toBe(true);
    testbed.objects.writes.length = 0;
    await testbed.look(10 * SECOND);
    expect(isOrdered(made)).toBe(false);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.objects.writes[0]).toMatch(/^apply secrets kube-system\/burst-/);
    expect(live(made.metadata.name).metadata.labels?.[LABELS.burstWarm]).toBeUndefined();
    expect(testbed.says('DemandMet')).toBe('False Waking');
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({
      action: 'Wake',
      cluster: made.metadata.name,
      hourly: '0.3',
      alternatives: [{ candidate: 'cloud', whyNot: expect.stringContaining('sleeps, and to wake it is better') }],
    });
    expect(testbed.events.at(-1)).toMatch(/^Woken BurstPolicy shop\/peak wakes it for ResourceBinding shop\/web/);
    // Until it is back it is room that was ordered, and budgets count what it is to cost.
    await testbed.look(10 * SECOND);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    expect(phases()).toEqual(['Waking']);
    expect(testbed.policy()!.status!.hourly).toBe('0.3');
    settle(made, 3);
    testbed.demands = [];
    await testbed.look(5 * SECOND);
    expect(phases()).toEqual(['Joined']);
    expect(testbed.policy()!.status!.candidates![0]).toMatchObject({ wakingSeconds: 15 });
    // No other is made for it: it sleeps again when it is without work.
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('counts all nodes with which it wakes, which may exceed its minimum', async () => {
    const pools = [{ name: 'a', minimum: 1, maximum: 10, autoscale: 'Coppice' }];
    testbed.objects.put(policy(1, { candidates: [candidate(1, { pools })] }));
    const made = await asleep();
    const size = { count: 3, by: 'Coppice', why: 'work needed it', at: '2026-11-23T12:00:10Z' };
    testbed.sizes.set(`shop/${made.metadata.name}`, new Map([['a', size]]));
    // Its pool was granted as many while it was awake.
    const [pool] = made.spec.pools!;
    testbed.objects.put({ ...made, spec: { ...made.spec, pools: [{ ...pool!, maximum: 3 }] } });
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(isOrdered(made)).toBe(false);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('puts it to sleep again without work, whether its hub closed it or not', async () => {
    const made = await asleep();
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    settle(made, 3);
    testbed.demands = [];
    await testbed.looks(31 * MINUTE);
    testbed.empty(made);
    await testbed.looks(10 * MINUTE);
    expect(isOrdered(made)).toBe(false);
    await testbed.look(MINUTE);
    expect(isOrdered(made)).toBe(true);
    expect(actions()[0]).toBe('Sleep');
    // Its hub has it as joined until it has moved away what it can.
    await testbed.looks(MINUTE);
    expect(phases()).toEqual(['Asleep']);
    expect(testbed.outcomes()[0]).toBe('Sleep ?');
    settle(made);
    await testbed.looks(MINUTE);
    expect(testbed.policy()!.status).toMatchObject({ hourly: '0', clusterCount: 1 });
    // It was awake for some forty minutes, of 0.3 USD an hour.
    expect(testbed.outcomes()).toEqual([
      expect.stringMatching(/^Sleep Succeeded: it was asleep 60 s after the decision, and has cost 0.2\d* USD in all/),
      expect.stringMatching(/^Wake Succeeded: it was in the hub 80 s after the decision, and had work by then$/),
      'Buy Succeeded: it was ready in the hub 10 s after the decision, and waits asleep',
    ]);
    const writes = testbed.objects.writes.length;
    await testbed.looks(60 * MINUTE);
    expect(testbed.objects.writes).toHaveLength(writes);
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(isOrdered(made)).toBe(false);
    expect(phases()).toEqual(['Waking']);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('removes a cluster beyond the number of sleeping ones', async () => {
    const made = await asleep();
    testbed.objects.put(policy(1, { candidates: [candidate(1)], maximumClusters: 3 }));
    testbed.demands = [demand('ResourceBinding shop/web', 8)];
    await testbed.looks(MINUTE);
    const [bought] = testbed.clusters().filter(({ metadata }) => metadata.name !== made.metadata.name);
    settle(made, 3);
    testbed.join(bought!, 3);
    testbed.demands = [];
    await testbed.looks(MINUTE);
    testbed.empty(made);
    testbed.empty(bought!);
    await testbed.looks(60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.clusters().filter(isOrdered)).toHaveLength(1);
    expect(actions().slice(0, 2).sort()).toEqual(['Remove', 'Sleep']);
  });

  it('gives up one that does not wake, and buys the next candidate', async () => {
    const others = { name: 'other', template: { ...candidate(0).template } };
    testbed.objects.put(policy(1, { candidates: [candidate(1), others] }));
    const made = await asleep();
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(phases()).toEqual(['Waking']);
    await testbed.looks(13 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(3 * MINUTE);
    expect(testbed.clusters().map(({ metadata }) => metadata.name)).not.toContain(made.metadata.name);
    expect(testbed.clusters().map(({ metadata }) => metadata.name.startsWith('peak-other-'))).toEqual([true]);
    expect(testbed.policy()!.status!.decisions!.find(({ action }) => action === 'Fail')).toMatchObject({
      why: 'it was woken, but did not rejoin the hub within 15 minutes',
    });
  });

  it('leaves the others asleep when one did not wake for lack of machines', async () => {
    const others = { name: 'other', template: { ...candidate(0).template } };
    testbed.objects.put(policy(2, { candidates: [candidate(2), others] }));
    for (const index of [0, 1]) {
      await testbed.look(MINUTE);
      const made = testbed.clusters()[index]!;
      ready(made);
      await testbed.look(10 * SECOND);
      settle(made);
    }
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(phases().sort()).toEqual(['Asleep', 'Waking']);
    await testbed.looks(17 * MINUTE);
    expect(testbed.clusters().filter(isOrdered)).toHaveLength(1);
    expect(testbed.clusters().filter(({ metadata }) => metadata.name.startsWith('peak-other-'))).toHaveLength(1);
  });

  it('wakes one although an earlier template of its candidate has just failed', async () => {
    testbed.objects.put(policy(0));
    testbed.demands = [WORK];
    await testbed.looks(40 * SECOND);
    const codes = ['ERR_INFRA_UNAUTHORIZED'];
    const refused = { type: 'Ready', status: 'False', message: 'not allowed', lastTransitionTime: '', codes };
    testbed.objects.put({ ...testbed.clusters()[0]!, status: { conditions: [refused] } } as never);
    await testbed.look(10 * SECOND);
    testbed.demands = [];
    await testbed.look(10 * SECOND);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1 });
    testbed.objects.put(policy(1, { candidates: [candidate(1, { kubernetes: { version: '1.36' } })] }));
    await asleep();
    testbed.demands = [WORK];
    await testbed.looks(40 * SECOND);
    expect(phases()).toEqual(['Waking']);
  });

  it('wakes none that the budget does not permit awake, with the reason', async () => {
    await asleep();
    testbed.objects.put(policy(1, { budget: { hourly: '0.2', currency: 'USD' } }));
    testbed.demands = [WORK];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters().filter(isOrdered)).toHaveLength(1);
    expect(testbed.says('DemandMet')).toBe('False Refused');
    expect(testbed.policy()!.status!.demand![0]!.message).toMatch(/sleeps: awake it costs 0.3 USD an hour more/);
  });

  it('wakes none whose machines are sold out, until the retry, with the reason', async () => {
    const made = await asleep();
    const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: false };
    testbed.depleted = [{ ...offer, until: testbed.now + 5 * MINUTE }];
    testbed.demands = [WORK];
    await testbed.looks(4 * MINUTE);
    expect(isOrdered(made)).toBe(true);
    expect(testbed.policy()!.status!.demand![0]!.message).toMatch(
      /sleeps: small of pool a in here is sold out, and not/,
    );
    await testbed.looks(2 * MINUTE);
    expect(isOrdered(made)).toBe(false);
  });

  it('wakes one without its sold-out pool where its other pool takes the work', async () => {
    const pools = [
      { name: 'a', minimum: 3, maximum: 10 },
      { name: 'b', machineType: 'gpu', minimum: 0, maximum: 3 },
    ];
    testbed.objects.put(policy(1, { candidates: [candidate(1, { pools })] }));
    const made = await asleep();
    const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'gpu', spot: false };
    testbed.depleted = [{ ...offer, until: testbed.now + 50 * MINUTE }];
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(isOrdered(made)).toBe(false);
  });

  it('replaces them when their template changes, and removes surplus ones', async () => {
    const made = await asleep();
    await testbed.looks(11 * MINUTE);
    const changed = candidate(1, { kubernetes: { version: '1.36' } });
    testbed.objects.put(policy(1, { candidates: [changed] }));
    await testbed.looks(MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.kubernetes?.version)).toEqual(['1.36']);
    expect(testbed.clusters()[0]!.metadata.name).not.toBe(made.metadata.name);
    testbed.objects.put(policy(0));
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toEqual([]);
  });

  it('creates none of a mode that cannot sleep, with the reason', async () => {
    testbed.objects.put(policy(1, { candidates: [candidate(1, { mode: 'SelfManaged' })] }));
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()!.status!.decisions![0]!.why).toMatch(/clusters of mode SelfManaged cannot sleep/);
  });

  it('only reports in a dry run', async () => {
    const made = await asleep();
    testbed.objects.put(policy(1, { dryRun: true }));
    testbed.demands = [WORK];
    await testbed.looks(MINUTE);
    expect(isOrdered(made)).toBe(true);
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({ action: 'Wake', dryRun: true });
  });

  it.each(['is woken', 'is put to sleep'])(
    '%s once, whenever the operator is killed: after each of its writes',
    async (what) => {
      for (const lives of casesUpTo(6)) {
        testbed = new BurstTestbed();
        testbed.objects.put(policy(1));
        const made = await asleep();
        const begin = () => {
          testbed.lives = lives;
        };
        if (what === 'is woken') begin();
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
        expect(isOrdered(made), `killed at write ${lives}`).toBe(false);
        expect(testbed.clusters(), `killed at write ${lives}`).toHaveLength(1);
        if (what === 'is woken') continue;
        settle(made, 0);
        testbed.demands = [];
        begin();
        await looks(50 * MINUTE);
        expect(isOrdered(made), `killed at write ${lives}`).toBe(true);
        expect(testbed.clusters(), `killed at write ${lives}`).toHaveLength(1);
      }
    },
  );
});
