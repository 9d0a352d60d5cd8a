import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { BurstCandidate, BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { API_VERSION, FINALIZER, LABELS } from '../../../operator/api/group.ts';
import type { Hub } from '../../../operator/api/hub.ts';
import { burstClusterName } from '../../../operator/api/names.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { reconcileBurst } from '../../../operator/controllers/burst/controller.ts';
import type { BurstDependencies } from '../../../operator/controllers/burst/dependencies.ts';
import { gardenWorld } from '../../../operator/controllers/burst/garden-world.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { soldOutToldBy } from '../../../operator/controllers/burst/sold-out-told.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { BURSTPOLICIES, HUBS, type Node, type Pod, SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND, START, spec } from '../../kit/burst/testbed.ts';
import { casesUpTo } from '../../kit/cases.ts';
import { profile, quota } from '../cost/objects.ts';

let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policyNamed('peak'));
});

/** What is known in a namespace to who has only statuses of policies. */
const told = (namespace = 'shop') => soldOutToldBy([testbed.policy()!]).known({ namespace });

const written = async (act: () => Promise<void>): Promise<string[]> => {
  testbed.objects.writes.length = 0;
  await act();
  return [...testbed.objects.writes];
};

/** The whole life of a peak, until nothing is left of it. */
async function peak(): Promise<void> {
  testbed.demands = [demand('ResourceBinding shop/web', 3)];
  await testbed.looks(40 * SECOND);
  const [cluster] = testbed.clusters();
  testbed.join(cluster!, 3);
  testbed.demands = [];
  await testbed.looks(40 * MINUTE);
  testbed.empty(cluster!);
  await testbed.looks(11 * MINUTE);
}

describe('a peak', () => {
  it('gets clusters for all namespaces, although one has more unplaced work than is considered at once', async () => {
    const many = Array.from({ length: 6_000 }, (_, index) =>
      demand(`ResourceBinding a/many-${index}`, 1, { namespace: 'a', each: { cpu: '64' } }),
    );
    testbed.demands = [...many, demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    expect(testbed.receipt()!.purchases).toMatchObject([{ sources: ['ResourceBinding shop/web'] }]);
  });

  it("gets the cheapest cluster after the waiting time, in the policy's namespace", async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(30 * SECOND);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.says('DemandMet')).toBe('False Stabilising');
    await testbed.looks(10 * SECOND);
    const [cluster, ...others] = testbed.clusters();
    expect(others).toEqual([]);
    expect(cluster).toMatchObject({
      apiVersion: API_VERSION,
      metadata: {
        namespace: 'shop',
        labels: { fleet: 'production', [LABELS.burst]: 'true', [LABELS.burstPolicy]: 'peak' },
        ownerReferences: [{ kind: 'BurstPolicy', name: 'peak', uid: 'uid-of-peak' }],
      },
      // Two CPUs a node, of which the system has a part: one replica each.
      spec: { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 3, maximum: 10 }] },
    });
    const { status } = testbed.policy()!;
    expect(status).toMatchObject({
      clusterCount: 1,
      hourly: '0.3',
      clusters: [{ name: cluster!.metadata.name, candidate: 'cloud', hourly: '0.3' }],
      candidates: [
        { name: 'cloud', hourly: '0.1' },
        { name: 'there', hourly: '0' },
      ],
      decisions: [
        {
          action: 'Buy',
          candidate: 'cloud',
          hourly: '0.3',
          alternatives: [{ candidate: 'there', hourly: '0.36', whyNot: 'cloud was better' }],
        },
      ],
    });
    expect(testbed.events).toEqual([
      expect.stringMatching(/^ClusterBought .*3 replicas .* of ResourceBinding shop\/web have no place/),
    ]);
  });

  it('is served by what the hub counts, where that is less than the free amount', async () => {
    const work = (cpu: string, count: number) => [
      demand('ResourceBinding shop/web', count, { each: { cpu, memory: '64Mi' } }),
    ];
    // Of 1900m that a node has free Karmada counts 1750m: two replicas, and not three.
    testbed.demands = work('600m', 6);
    await testbed.looks(40 * SECOND);
    const [cluster] = testbed.clusters();
    expect(cluster!.spec.pools![0]!.minimum).toBe(3);
    testbed.join(cluster!, 3);
    // 900m are free beside a pod of 1 CPU, of which Karmada counts three eighths of a node.
    testbed.demands = work('712m', 1);
    await testbed.look(10 * SECOND);
    expect(testbed.says('DemandMet')).toBe('False Fits');
    testbed.demands = work('800m', 1);
    await testbed.look(10 * SECOND);
    expect(testbed.says('DemandMet')).not.toBe('False Fits');
  });

  it('gets no GPU purchase where the hub counts none, whatever a cluster has', async () => {
    const [first] = policyNamed('peak').spec.candidates;
    const { spec: cluster } = first!.template;
    const template = { spec: { ...cluster, pools: [{ name: 'a', machineType: 'gpu', maximum: 3 }] } };
    testbed.objects.put(policyNamed('peak', { candidates: [{ ...first!, template }] }));
    testbed.demands = [demand('ResourceBinding shop/train', 2, { each: { cpu: '1', gpu: '1' } })];
    const hub = (renewsTokens: boolean) => {
      const known = testbed.objects.find<Hub>(HUBS, 'production')!;
      testbed.objects.put({ ...known, spec: { ...known.spec, karmada: { renewsTokens } } });
    };
    hub(true);
    await testbed.looks(50 * SECOND);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()?.status?.demand).toMatchObject([
      { state: 'Refused', message: expect.stringContaining('nvidia.com/gpu') },
    ]);
    hub(false);
    await testbed.looks(20 * SECOND);
    const [made] = testbed.clusters();
    expect(made!.spec.pools![0]!.minimum).toBe(2);
  });

  it('is recorded before anything is created, and read from the record, never from status', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(30 * SECOND);
    const writes = await written(() => testbed.look(10 * SECOND));
    const made = writes.findIndex((line) => line.startsWith('create workerclusters'));
    expect(writes[made - 1]).toMatch(/^create secrets kube-system\/burst-/);
    const { status: _, ...policy } = testbed.policy()!;
    testbed.objects.put({
      ...policy,
      status: { clusters: [], spend: { month: '2026-11', amount: '0', currency: 'USD', asOf: '' } },
    } as never);
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('buys nothing more while the cluster comes, and once the work is placed', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    testbed.join(testbed.clusters()[0]!, 0);
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    // More than what is there takes: a second one.
    testbed.demands = [demand('ResourceBinding shop/web', 3), demand('ResourceBinding shop/api', 2)];
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
  });

  it.each([
    ['Kueue has there', undefined, 'kueue-system'],
    ['GKE has there', undefined, 'gmp-system'],
    ['the Hub says is each cluster its own', ['monitoring'], 'monitoring'],
  ])('ends also where in the cluster goes on to run what %s', async (_, systemNamespaces, namespace) => {
    const [hub] = [...testbed.objects.objects.values()].filter(({ kind }) => kind === 'Hub') as Hub[];
    testbed.objects.put({ ...hub!, spec: { ...hub!.spec, ...(systemNamespaces && { systemNamespaces }) } } as Hub);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [cluster] = testbed.clusters();
    testbed.join(cluster!, 1);
    testbed.demands = [];
    await testbed.looks(40 * MINUTE);
    const pods = testbed.open.get(`shop/${cluster!.metadata.name}`)!.pods;
    const [pod] = pods as [Pod];
    pods[0] = { ...pod, metadata: { ...pod.metadata, namespace } };
    await testbed.looks(9 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
  });

  it('ends with the cluster removed and its cost kept', async () => {
    await peak();
    expect(testbed.clusters()).toEqual([]);
    await testbed.looks(MINUTE);
    expect(testbed.policy()!.status).toMatchObject({ clusterCount: 0, hourly: '0' });
    expect(testbed.policy()!.status!.decisions!.map(({ action }) => action)).toEqual(['Remove', 'Buy']);
    // 0.3 an hour for some 50 minutes.
    expect(Number(testbed.receipt()!.spent['2026-11'])).toBeCloseTo((0.3 * 50.6) / 60, 1);
    expect(Number(testbed.policy()!.status!.spend!.amount)).toBeGreaterThan(0.24);
  });

  it('keeps a cluster with work, a young one, or one with unreadable pods', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [cluster] = testbed.clusters();
    testbed.join(cluster!, 3);
    testbed.demands = [];
    await testbed.looks(60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    testbed.open.delete(`shop/${cluster!.metadata.name}`);
    await testbed.looks(60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('causes no write while nothing happens', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    testbed.join(testbed.clusters()[0]!, 3);
    testbed.demands = [];
    await testbed.looks(MINUTE);
    expect(await written(() => testbed.looks(10 * MINUTE))).toEqual([]);
  });

  it('ends equally with the operator killed after each of its writes', async () => {
    for (const lives of casesUpTo(12)) {
      testbed = new BurstTestbed();
      testbed.objects.put(policyNamed('peak'));
      testbed.lives = lives;
      const tolerant = async (during: number) => {
        const every = during > 5 * MINUTE ? MINUTE : 10 * SECOND;
        for (let past = 0; past < during; past += every)
          await testbed.look(every).catch((error: unknown) => {
            if (!(error instanceof Killed)) throw error;
            testbed.lives = Number.POSITIVE_INFINITY;
            testbed.memory = new BurstMemory();
          });
      };
      testbed.demands = [demand('ResourceBinding shop/web', 3)];
      await tolerant(3 * MINUTE);
      expect(testbed.clusters(), `killed at write ${lives}`).toHaveLength(1);
      testbed.join(testbed.clusters()[0]!, 3);
      testbed.demands = [];
      await tolerant(30 * MINUTE);
      testbed.empty(testbed.clusters()[0]!);
      await tolerant(30 * MINUTE);
      expect(testbed.clusters(), `killed at write ${lives}`).toEqual([]);
      expect(testbed.receipt()!.purchases).toEqual([]);
      expect(testbed.receipt()!.next).toBe(2);
    }
  });

  it('that the API server rejects is given up, and leaves no record', async () => {
    const broken = testbed.deps;
    const before = broken.garden.create.bind(broken.garden);
    const create = async (object: WorkerCluster, options: { dryRun?: boolean } = {}) => {
      if (object.kind !== 'WorkerCluster') return before(object);
      if (!options.dryRun) throw new KubeApiError('POST', 500, { message: 'failed calling webhook' });
      return object;
    };
    Object.assign(broken.garden, { create });
    vi.spyOn(testbed, 'deps', 'get').mockReturnValue(broken);
    const [candidate] = policyNamed('peak').spec.candidates;
    testbed.objects.put(policyNamed('peak', { candidates: [candidate!], maximumClusters: 1 }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(20 * MINUTE);
    expect(testbed.receipt()!.purchases).toMatchObject([{ number: 1 }]);
    testbed.demands = [];
    // What was asked for last may come a moment later: it is not forgotten before.
    await testbed.looks(MINUTE);
    expect(testbed.receipt()!.purchases).toMatchObject([{ number: 1, leaving: true }]);
    await testbed.looks(3 * MINUTE);
    expect(testbed.receipt()!.purchases).toEqual([]);
    expect(testbed.policy()!.status).toMatchObject({ clusterCount: 0, hourly: '0' });
  });

  it('is bought for once with stale caches', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(30 * SECOND);
    testbed.stale = new Map(testbed.objects.objects);
    await testbed.looks(5 * MINUTE);
    testbed.stale = undefined;
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.receipt()!.purchases).toHaveLength(1);
  });
});

describe('a hub', () => {
  it('that alternately places its work and takes it back gets no purchase', async () => {
    for (let turn = 0; turn < 30; turn++) {
      testbed.demands = [demand('ResourceBinding shop/web', 3)];
      await testbed.looks(20 * SECOND);
      testbed.demands = [];
      await testbed.look(10 * SECOND);
    }
    expect(testbed.clusters()).toEqual([]);
  });

  it('that alternately reports and withdraws demand every few seconds gets at most one cluster', async () => {
    const flap = async (during: number) => {
      for (let past = 0; past < during; past += 5 * SECOND) {
        testbed.demands = past % (10 * SECOND) === 0 ? [demand('ResourceBinding shop/web', 3)] : [];
        await testbed.look(5 * SECOND);
      }
    };
    await flap(10 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    await flap(10 * MINUTE);
    testbed.join(testbed.clusters()[0]!, 3);
    await flap(10 * MINUTE);
    expect(testbed.receipt()!.next).toBe(2);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('that repeats demand briefly after the cluster took it gets no other purchase', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(5 * MINUTE);
    testbed.join(testbed.clusters()[0]!, 3);
    await testbed.looks(20 * SECOND);
    expect(testbed.says('DemandMet')).toBe('False Stabilising');
    testbed.demands = [];
    await testbed.looks(MINUTE);
    expect(testbed.receipt()!.next).toBe(2);
    // It is no lie when it lasts: more of it waits, and is served.
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(testbed.receipt()!.next).toBe(3);
  });

  it('that repeats equal demand for minutes after the cluster took it gets no other purchase for 5 minutes', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    testbed.join(testbed.clusters()[0]!, 3);
    await testbed.looks(4 * MINUTE);
    expect(testbed.receipt()!.next).toBe(2);
    expect(testbed.policy()!.status!.demand).toMatchObject([
      {
        state: 'Stabilising',
        message: expect.stringMatching(/^what was bought for it has work, and its hub says the/),
      },
    ]);
    // Something else may have taken its room: it is served again.
    await testbed.looks(2 * MINUTE);
    expect(testbed.receipt()!.next).toBe(3);
  });

  it('that reports more after the cluster took it gets another purchase', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    testbed.join(testbed.clusters()[0]!, 3);
    await testbed.looks(20 * SECOND);
    testbed.demands = [demand('ResourceBinding shop/web', 4)];
    await testbed.looks(MINUTE);
    expect(testbed.receipt()!.next).toBe(3);
  });

  it('that does not answer gets no purchase and no removal, and the policy reports it', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    testbed.join(testbed.clusters()[0]!, 3);
    testbed.demands = [];
    await testbed.looks(30 * MINUTE);
    testbed.empty(testbed.clusters()[0]!);
    testbed.demands = new Error('connection refused');
    await testbed.looks(60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.says('Ready')).toBe('False HubDoesNotAnswer');
    // What waits then waits anew.
    testbed.demands = [demand('ResourceBinding shop/other', 9)];
    await testbed.look(10 * SECOND);
    expect(testbed.says('DemandMet')).toBe('False Stabilising');
  });

  it('that does not permit the namespace is not served', async () => {
    testbed.objects.put({
      ...testbed.objects.find(HUBS, 'production')!,
      spec: { type: 'Karmada', allowedNamespaces: ['other'] },
    });
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.says('Ready')).toBe('False NotAllowed');
  });

  it('that reports something unreadable has that reported once, and the rest is served', async () => {
    const problem = 'annotation multi-cluster.demo.io/unplaced cannot be read: it is no JSON';
    const unread = demand('PlacementDecision shop/odd', 0, { problem });
    testbed.demands = [unread];
    await testbed.looks(MINUTE);
    expect(testbed.policy()!.status!.conditions!.find(({ type }) => type === 'DemandMet')).toMatchObject({
      status: 'False',
      reason: 'Refused',
      message: `PlacementDecision shop/odd: nothing is bought for it: ${problem}`,
    });
    expect(testbed.events.filter((text) => text.startsWith('NothingBought'))).toEqual([
      `NothingBought PlacementDecision shop/odd: nothing is bought for it: ${problem}`,
    ]);
    expect(testbed.clusters()).toEqual([]);
    testbed.demands = [unread, demand('PlacementDecision shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    testbed.demands = [];
    await testbed.looks(MINUTE);
    expect(testbed.says('DemandMet')).toBe('True NothingWaits');
  });

  it('that requests nonsense gets no purchase, and the operator continues', async () => {
    testbed.demands = [
      demand('negative', -3),
      demand('nan', Number.NaN),
      demand('words', 1, { each: { cpu: 'a lot' } }),
      demand('flood', 1e9),
    ];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.says('Ready')).toBe('True Watching');
  });
});

describe('a candidate', () => {
  it('that the API server rejects is skipped, and status has the reason', async () => {
    testbed.refuse = ({ spec }) => (spec.region === undefined ? 'spec.pools: too many' : undefined);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual(['there']);
    expect(testbed.policy()!.status!.candidates![0]).toMatchObject({
      name: 'cloud',
      problem: expect.stringMatching(/too many/),
    });
  });

  it('that a quota refuses is skipped', async () => {
    testbed.objects.put(quota({ 'cost.hourly': '0.1' }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({
      action: 'Refuse',
      why: expect.stringMatching(/quota "team" allows/),
    });
  });

  it('that a quota permits in part is bought that many times', async () => {
    const [, small] = policyNamed('peak').spec.candidates;
    const pools = [{ name: 'a', maximum: 2 }];
    const candidates = [{ ...small!, template: { spec: { ...small!.template.spec, pools } } }];
    testbed.objects.put(policyNamed('peak', { candidates }));
    testbed.objects.put(quota({ clusters: 1 }));
    testbed.demands = [demand('ResourceBinding shop/web', 2), demand('ResourceBinding shop/api', 2)];
    await testbed.looks(10 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.receipt()!.next).toBe(2);
    expect(testbed.policy()!.status!.demand!.map(({ state }) => state)).toEqual(['Refused', 'RoomOrdered']);
    expect(testbed.policy()!.status!.decisions![0]!.why).toMatch(/quota "team" allows clusters 1/);
  });

  it('whose machines are sold out is given up and cooled down, and the next is tried; nothing is left of it', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    const conditions = [
      {
        type: 'Ready',
        status: 'False',
        message: 'no machines left',
        lastTransitionTime: '',
        codes: ['ERR_INFRA_RESOURCES_DEPLETED'],
      },
    ];
    testbed.objects.put({ ...first!, status: { conditions } } as never);
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual(['there']);
    expect(testbed.events.some((text) => /^ClusterFailed .*no machines left/.test(text))).toBe(true);
    expect(testbed.receipt()!.purchases.map(({ candidate }) => candidate)).toEqual(['there']);
    expect(testbed.policy()!.status!.decisions!.map(({ action }) => action)).toEqual(['Buy', 'Fail', 'Buy']);
    // The next one is not tried again, nor the first once it has rested.
    await testbed.looks(20 * MINUTE);
    expect(testbed.receipt()!.next).toBe(3);
  });

  it('that is known to be sold out is skipped without an order until the retry, with the reason', async () => {
    const offer = { profile: 'cloud', machineType: 'small', zone: '', spot: false };
    testbed.depleted = [{ ...offer, region: 'here', until: START + 10 * MINUTE }];
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual(['there']);
    const why = 'small of pool a in here is sold out, and not asked for again until 2026-11-23T12:10:00Z';
    expect(testbed.policy()!.status).toMatchObject({
      decisions: [{ action: 'Buy', candidate: 'there', alternatives: [{ candidate: 'cloud', whyNot: why }] }],
      candidates: [{ name: 'cloud', problem: why }, { name: 'there' }],
      soldOut: [{ profile: 'cloud', region: 'here', machineType: 'small', until: '2026-11-23T12:10:00Z' }],
    });
    expect(told().depleted).toEqual(testbed.depleted);
    expect(told('other').depleted).toEqual(testbed.depleted);
    testbed.join(testbed.clusters()[0]!, 3);
    // Nothing is left to be bought, and nothing is ordered.
    testbed.depleted = [...testbed.depleted, { ...offer, region: 'there', until: START + 12 * MINUTE }];
    testbed.demands = [demand('ResourceBinding shop/api', 3)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.receipt()!.next).toBe(2);
    expect(testbed.policy()!.status!.demand).toMatchObject([
      { state: 'Refused', message: expect.stringMatching(/cloud: small .* sold out.*; there: small .* sold out/) },
    ]);
    // Time passes, and what is asked for again is bought.
    await testbed.looks(6 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual(['there', undefined]);
  });

  describe('that falls back to more expensive machines', () => {
    const [cloud, there] = spec().candidates as [BurstCandidate, BurstCandidate];
    const fallback = [{ region: 'there', machineTypes: ['gpu'] }];
    const pools = [{ ...cloud.template.spec.pools![0]!, autoscale: 'None' as const }];
    const managed = { ...cloud.template.spec, mode: 'Managed' as const, pools, fallback };
    const falling = { ...cloud, template: { spec: managed } };
    const falls = (candidates: BurstCandidate[], more: Partial<BurstPolicySpec> = {}) => {
      testbed.objects.put(policyNamed('peak', { candidates, ...more }));
      const until = START + 60 * MINUTE;
      testbed.depleted = [{ profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: false, until }];
      testbed.demands = [demand('ResourceBinding shop/web', 3)];
    };

    it('is compared and budgeted by its price there', async () => {
      falls([falling, there]);
      await testbed.looks(MINUTE);
      expect(testbed.clusters().map(({ metadata: { labels } }) => labels?.[LABELS.burstCandidate])).toEqual(['there']);
      expect(testbed.policy()!.status!.candidates).toMatchObject([{ name: 'cloud', hourly: '1.100001' }, {}]);
    });

    it('is bought with the needed number of them, which count as ordered', async () => {
      falls([falling]);
      await testbed.looks(5 * MINUTE);
      expect(testbed.receipt()!.purchases).toMatchObject([{ nodes: { a: 1 }, rate: '1.100001' }]);
      expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    });

    it('is not bought where a quota forbids that', async () => {
      testbed.objects.put(quota({ 'cost.hourly': '1' }));
      falls([falling]);
      await testbed.looks(MINUTE);
      expect(testbed.clusters()).toEqual([]);
      expect(testbed.policy()!.status!.demand).toMatchObject([
        { message: expect.stringMatching(/quota "team" allows/) },
      ]);
    });

    it('is not bought beyond the budget', async () => {
      falls([falling], { budget: { hourly: '1', currency: 'USD' } });
      await testbed.looks(MINUTE);
      expect(testbed.clusters()).toEqual([]);
      expect(testbed.policy()!.status!.demand).toMatchObject([
        { message: expect.stringMatching(/costs 1.100001 USD/) },
      ]);
    });
  });

  it('whose spot machine was just reclaimed is skipped where others take the work, and bought otherwise', async () => {
    const [cloud, there] = spec().candidates as [BurstCandidate, BurstCandidate];
    const pools = [{ ...cloud.template.spec.pools![0]!, spot: true }];
    const spot = { ...cloud, template: { spec: { ...cloud.template.spec, pools } } };
    testbed.objects.put(policyNamed('peak', { candidates: [spot, there] }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    testbed.join(first!, 3);
    const open = testbed.open.get(`shop/${first!.metadata.name}`)!;
    const taken = { key: 'cloud.google.com/impending-node-termination', effect: 'NoSchedule' as const };
    open.nodes = open.nodes.map((node) => ({ ...node, spec: { ...node.spec, taints: [taken] } }));
    testbed.demands = [demand('ResourceBinding shop/api', 3)];
    await testbed.looks(MINUTE + 40 * SECOND);
    expect(testbed.clusters().map(({ spec: { region } }) => region)).toEqual([undefined, 'there']);
    const why = expect.stringMatching(
      /^its cloud took spot small of pool a in here away a moment ago, so others are preferred until/,
    );
    expect(testbed.policy()!.status).toMatchObject({
      decisions: [{ action: 'Buy', candidate: 'there', alternatives: [{ candidate: 'cloud', whyNot: why }] }, {}],
      candidates: [{ name: 'cloud', problem: why }, { name: 'there' }],
      soldOut: [{ machineType: 'small', spot: true, interrupted: true }],
    });
    expect(told().depleted).toMatchObject([{ spot: true, interrupted: true }]);
    expect(told('other').depleted).toEqual([]);
  });

  it("counts with its pools' maximum also after a reclaim in one of them", async () => {
    const [cloud] = spec().candidates as [BurstCandidate];
    const sized = { minimum: 0, autoscale: 'Cloud' as const };
    const pools = [
      { name: 'spot', spot: true, maximum: 8, ...sized },
      { name: 'ondemand', maximum: 4, ...sized },
    ];
    const two = { ...cloud, template: { spec: { ...cloud.template.spec, mode: 'Managed' as const, pools } } };
    testbed.objects.put(policyNamed('peak', { candidates: [two], maximumNodes: 10 }));
    const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: true };
    testbed.depleted = [{ ...offer, until: START + 10 * MINUTE, interrupted: true }];
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()!.status!.demand).toMatchObject([
      { state: 'Refused', message: expect.stringContaining('it counts for 12 nodes') },
    ]);
    testbed.objects.put(policyNamed('peak', { candidates: [two], maximumNodes: 12 }));
    await testbed.looks(MINUTE);
    const [bought] = testbed.clusters();
    expect(bought!.spec.pools!.map(({ minimum }) => minimum)).toEqual([0, 3]);
  });

  it('whose work arrived loses the minimum it was bought with, where Coppice may remove nodes', async () => {
    const [cloud] = spec().candidates as [BurstCandidate];
    const pools = [{ ...cloud.template.spec.pools![0]!, autoscale: 'Coppice' as const }];
    const sized = { ...cloud, template: { spec: { ...cloud.template.spec, pools } } };
    testbed.objects.put(policyNamed('peak', { candidates: [sized] }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const cluster = () => testbed.clusters()[0]!;
    const key = `shop/${cluster().metadata.name}`;
    const minimum = () => cluster().spec.pools![0]!.minimum;
    testbed.join(cluster(), 3);
    testbed.demands = [];
    await testbed.looks(MINUTE);
    // Until all of it is there, and its size is written down, what is still to come would not come.
    expect(minimum()).toBe(3);
    testbed.objects.put({
      ...cluster(),
      status: { ...cluster().status, nodes: { desired: 3, current: 3, ready: 3 } },
    } as never);
    await testbed.looks(MINUTE);
    expect(minimum()).toBe(3);
    testbed.objects.put(policyNamed('peak', { candidates: [sized], suspend: true }));
    testbed.sizes.set(key, new Map([['a', { count: 3, by: 'Coppice', why: 'within its minimum and maximum' }]]));
    await testbed.looks(MINUTE);
    expect(minimum()).toBe(3);
    // One that cannot be changed keeps nobody from being served.
    testbed.objects.put(policyNamed('peak', { candidates: [sized] }));
    testbed.frozen = cluster().metadata.name;
    testbed.demands = [demand('ResourceBinding shop/api', 12)];
    await testbed.looks(MINUTE);
    expect(minimum()).toBe(3);
    expect(testbed.clusters()).toHaveLength(2);
    expect(testbed.policy()!.status!.conditions).toContainEqual(
      expect.objectContaining({
        reason: 'CannotGiveBack',
        message: expect.stringMatching(/^nodes of WorkerCluster peak-cloud-.* cannot be given back: .*it is frozen/),
      }),
    );
    testbed.frozen = '';
    await testbed.looks(MINUTE);
    expect(minimum()).toBe(1);
    expect(await written(() => testbed.looks(MINUTE))).toEqual([]);
  });

  it('whose work arrived returns nodes also where another pool was bought with none', async () => {
    const [cloud] = spec().candidates as [BurstCandidate];
    const sized = { minimum: 0, maximum: 10, autoscale: 'Coppice' as const };
    const pools = [
      { name: 'a', spot: true, ...sized },
      { name: 'b', ...sized },
    ];
    const two = { ...cloud, template: { spec: { ...cloud.template.spec, pools } } };
    testbed.objects.put(policyNamed('peak', { candidates: [two] }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const cluster = () => testbed.clusters()[0]!;
    const minimums = () => cluster().spec.pools!.map(({ minimum }) => minimum);
    testbed.join(cluster(), 3);
    const nodes = { desired: 3, current: 3, ready: 3 };
    testbed.objects.put({ ...cluster(), status: { ...cluster().status, nodes } } as never);
    testbed.demands = [];
    await testbed.looks(MINUTE);
    expect(minimums()).toEqual([3, 0]);
    const size = { count: 3, by: 'Coppice', why: 'within its minimum and maximum' };
    testbed.sizes.set(`shop/${cluster().metadata.name}`, new Map([['a', size]]));
    await testbed.looks(MINUTE);
    expect(minimums()).toEqual([1, 0]);
  });

  it('whose cluster joined without use for the work is cooled down, and the next is tried', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    testbed.join(first!, 0);
    // Its nodes never come.
    testbed.open.get(`shop/${first!.metadata.name}`)!.nodes = [];
    await testbed.looks(4 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(4 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual([undefined, 'there']);
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1 });
  });

  it('that is cooled down is tried at once after a change of its template', async () => {
    const [cloud] = spec().candidates as [BurstCandidate];
    testbed.objects.put(policyNamed('peak', { candidates: [cloud] }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    const codes = ['ERR_INFRA_UNAUTHORIZED'];
    const refused = { type: 'Ready', status: 'False', message: 'not allowed', lastTransitionTime: '', codes };
    testbed.objects.put({ ...first!, status: { conditions: [refused] } } as never);
    await testbed.looks(2 * MINUTE);
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1 });
    expect(testbed.clusters()).toEqual([]);
    const template = { spec: { ...cloud.template.spec, region: 'there' } };
    testbed.objects.put({
      ...testbed.policy()!,
      spec: { ...testbed.policy()!.spec, candidates: [{ ...cloud, template }] },
    });
    await testbed.looks(20 * SECOND);
    expect(testbed.clusters().map((one) => one.spec.region)).toEqual(['there']);
  });

  it('whose pools come in sequence has 15 minutes for all nodes, and its hub time to place work', async () => {
    const begin = async () => {
      testbed = new BurstTestbed();
      testbed.objects.put(policyNamed('peak'));
      testbed.demands = [demand('ResourceBinding shop/web', 3)];
      await testbed.looks(40 * SECOND);
      const [first] = testbed.clusters();
      testbed.join(first!, 0);
      const open = testbed.open.get(`shop/${first!.metadata.name}`)!;
      const nodes = open.nodes.map((node): Node => {
        const since = new Date(testbed.now + 10 * MINUTE).toISOString();
        const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: since }];
        return { ...node, status: { ...node.status, conditions } };
      });
      open.nodes = open.nodes.slice(0, 1);
      await testbed.looks(10 * MINUTE);
      expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
      return { open, nodes };
    };
    const { open, nodes } = await begin();
    open.nodes = nodes;
    await testbed.looks(4 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.receipt()!.rests).toEqual({});
    await begin();
    await testbed.looks(8 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual([undefined, 'there']);
  });

  it('whose nodes claim to come in a year is cooled down all the same', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    testbed.join(first!, 0);
    const open = testbed.open.get(`shop/${first!.metadata.name}`)!;
    open.nodes = open.nodes.map((node): Node => {
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2027-11-23T12:00:00Z' }];
      return { ...node, status: { ...node.status, conditions } };
    });
    await testbed.looks(22 * MINUTE);
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1 });
  });

  it('whose cluster the hub places nothing on does not delay the work: the next is tried, and it is removed', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    testbed.join(first!, 0);
    await testbed.looks(4 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(4 * MINUTE);
    const [, second] = testbed.clusters();
    expect(second?.spec.region).toBe('there');
    testbed.join(second!, 3);
    testbed.demands = [];
    await testbed.looks(60 * MINUTE);
    expect(testbed.clusters().map(({ metadata }) => metadata.name)).toEqual([second!.metadata.name]);
  });

  it("is chosen by startup time: its profile's, later the measured one", async () => {
    testbed.profile = profile({ startupTimes: [{ mode: 'Hosted', cluster: '2m' }] });
    testbed.objects.put(policyNamed('peak', { trigger: { startWithin: '5m' } }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    expect(testbed.policy()!.status!.candidates!.map(({ startupSeconds }) => startupSeconds)).toEqual([120, 120]);
    await testbed.looks(8 * MINUTE);
    const [first] = testbed.clusters();
    expect(first!.spec.region).toBeUndefined();
    testbed.join(first!, 3);
    await testbed.look(10 * SECOND);
    expect(testbed.policy()!.status!.candidates!.map(({ startupSeconds }) => startupSeconds)).toEqual([490, 120]);
    // The other one costs more, and comes in time.
    testbed.demands = [demand('ResourceBinding shop/api', 3)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual([undefined, 'there']);
    expect(testbed.policy()!.status!.decisions![0]!.alternatives![0]!.whyNot).toMatch(
      /needs 9 minutes to start, and 5/,
    );
  });

  it('has as much room as its siblings beside their DaemonSets', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [first] = testbed.clusters();
    testbed.join(first!, 3);
    const open = testbed.open.get(`shop/${first!.metadata.name}`)!;
    const agent = (cpu: string): Pod =>
      buildPod({
        metadata: {
          name: 'agent-1',
          namespace: 'agents',
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'of-agent', controller: true },
          ],
        },
        spec: { nodeName: open.nodes[0]!.metadata.name, containers: [{ name: 'a', resources: { requests: { cpu } } }] },
        status: { phase: 'Running' },
      });
    testbed.demands = [demand('ResourceBinding shop/api', 3)];
    open.pods.push(agent('950m'));
    await testbed.looks(10 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.policy()!.status!.demand![0]!.message).toMatch(/cloud: Insufficient cpu/);
    open.pods.splice(-1, 1, agent('100m'));
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
  });

  it('causes few writes: at its order, arrival and end only', async () => {
    const writesOf = async (milliseconds: number) => {
      testbed.objects.writes.length = 0;
      await testbed.looks(milliseconds);
      return testbed.objects.writes.map((write) => write.split(' ').slice(0, 2).join(' '));
    };
    await testbed.looks(MINUTE);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    // What waits is told first; what is bought is written down before it is made, and again when it is there.
    const [receipt, status] = ['apply secrets', 'apply burstpolicies'];
    expect(await writesOf(2 * MINUTE)).toEqual([
      status,
      'create secrets',
      'create workerclusters',
      status,
      receipt,
      status,
    ]);
    testbed.join(testbed.clusters()[0]!, 3);
    testbed.demands = [];
    expect(await writesOf(20 * MINUTE)).toEqual([receipt, status]);
    testbed.empty(testbed.clusters()[0]!);
    expect(await writesOf(60 * MINUTE)).toEqual([status, receipt, 'delete workerclusters', status, receipt, status]);
    expect(await writesOf(60 * MINUTE)).toEqual([]);
    expect(testbed.events.map((text) => text.split(',')[0]!.split(' WorkerCluster')[0])).toEqual([
      'ClusterBought',
      'DecisionSucceeded Buy',
      'ClusterGivenBack',
      'DecisionSucceeded Remove',
    ]);
  });

  it('that is billed by the hour is kept for its hour, and its spending equals its cost', async () => {
    testbed.profile = profile({ billing: { machines: { step: '1h' } } });
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    testbed.join(testbed.clusters()[0]!, 3);
    testbed.demands = [];
    await testbed.looks(20 * MINUTE);
    testbed.empty(testbed.clusters()[0]!);
    await testbed.looks(30 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(6 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    await testbed.looks(MINUTE);
    expect(testbed.receipt()!.spent).toEqual({ '2026-11': '0.3' });
    // Who asks on the first day of a month what the last one cost finds it.
    await testbed.looks(10 * 24 * 60 * MINUTE, 60 * MINUTE);
    const { spend } = testbed.policy()!.status!;
    expect(spend).toMatchObject({ month: '2026-12', amount: '0', previous: [{ month: '2026-11', amount: '0.3' }] });
  });

  it('is not cooled down while more is ordered for work placed as a whole', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    testbed.demands = [demand('ResourceBinding shop/web', 5)];
    await testbed.looks(2 * MINUTE);
    const [first, second] = testbed.clusters();
    testbed.join(first!, 0);
    await testbed.looks(10 * MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
    expect(testbed.receipt()!.rests).toEqual({});
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    // All is there, and the hub still does not place it.
    testbed.join(second!, 0);
    await testbed.looks(7 * MINUTE);
    // Both were bought before anybody knew: that is one failure.
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1 });
  });

  it("is not cooled down while another's nodes are ordered for work placed as a whole", async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    testbed.demands = [demand('ResourceBinding shop/web', 5)];
    await testbed.looks(2 * MINUTE);
    const [first, second] = testbed.clusters();
    testbed.join(first!, 0);
    testbed.join(second!, 0);
    const open = testbed.open.get(`shop/${second!.metadata.name}`)!;
    open.nodes = open.nodes.slice(0, 1);
    await testbed.looks(10 * MINUTE);
    expect(testbed.receipt()!.rests).toEqual({});
    // They do not come.
    await testbed.looks(8 * MINUTE);
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1 });
  });

  it('of a taken name is never touched, and another name is used', async () => {
    const name = burstClusterName('peak', 'cloud', 'uid-of-peak', 1);
    const theirs = { apiVersion: API_VERSION, kind: 'WorkerCluster', metadata: { name, namespace: 'shop' }, spec: {} };
    testbed.objects.put(theirs);
    // The operator takes its finalizer now: from a version that is stale it could not.
    await testbed.look();
    testbed.stale = new Map(testbed.objects.objects);
    testbed.stale.delete(`workerclusters/shop/${name}`);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.objects.find(WORKERCLUSTERS, name, 'shop')).toMatchObject({ spec: {} });
    expect(testbed.clusters()).toHaveLength(2);
  });
});

describe('a budget', () => {
  it.each<[string, object, RegExp]>([
    [
      'of an hour',
      { hourly: '0.3' },
      /cloud: it costs 0.3 USD an hour, and 0 USD of the budget of 0.3 USD are left; there: it costs 0.36 USD an hour, and 0 USD/,
    ],
    [
      'of a month',
      { hourly: '10', monthly: '0.3' },
      /cloud: for its minimum life it costs 0.15 USD, more than is left of the budget of the month of 0.3 USD; there:/,
    ],
  ])('%s that is reached has nothing bought, which is said, and nothing destroyed', async (_, budget, why) => {
    testbed.objects.put(policyNamed('peak', { budget: { currency: 'USD', hourly: '10', ...budget } }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [cluster] = testbed.clusters();
    testbed.join(cluster!, 3);
    // After 90 minutes of 0.3 USD an hour the month's is used up, too.
    testbed.demands = [];
    await testbed.looks(90 * MINUTE);
    testbed.demands = [demand('ResourceBinding shop/api', 3)];
    await testbed.looks(2 * 60 * MINUTE);
    expect(testbed.policy()!.status).toMatchObject({
      decisions: [
        { action: 'Refuse', source: 'ResourceBinding shop/api', why: expect.stringMatching(why) },
        { action: 'Buy' },
      ],
      demand: [{ state: 'Refused', message: expect.stringMatching(why) }],
    });
    expect(testbed.events.filter((text) => text.startsWith('NothingBought'))).toHaveLength(1);
    expect(testbed.clusters().map(({ metadata }) => metadata)).toMatchObject([{ name: cluster!.metadata.name }]);
    expect(testbed.objects.writes.filter((line) => line.startsWith('delete'))).toEqual([]);
    expect(testbed.receipt()!.next).toBe(2);
  });
});

describe('policies', () => {
  it('buy nothing for work below their minimum priority, and leave it to another that does', async () => {
    testbed.objects.put(policyNamed('peak', { minimumPriority: 1000 }));
    testbed.demands = [demand('ResourceBinding shop/web', 3, { priority: 5 }), demand('ResourceBinding shop/api', 1)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.says('DemandMet')).toBe('False LowPriority');
    expect(testbed.policy()!.status!.demand!.map(({ state }) => state)).toEqual(['LowPriority', 'LowPriority']);
    testbed.objects.put(policyNamed('younger', { minimumPriority: 5 }, START + MINUTE));
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.policy('younger')!.status!.decisions).toMatchObject([
      { action: 'Buy', why: expect.stringMatching(/shop\/web/) },
    ]);
  });

  it('never serve the same work: the older one does', async () => {
    testbed.objects.put(policyNamed('younger', {}, START + 1000));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters().map(({ metadata }) => metadata.labels![LABELS.burstPolicy])).toEqual(['peak']);
    expect(testbed.policy('younger')!.status!.clusterCount).toBe(0);
  });

  it('serve work for which an older policy may not buy', async () => {
    testbed.objects.put(policyNamed('younger', {}, START + 1000));
    testbed.objects.put(policyNamed('peak', { budget: { hourly: '0.1', currency: 'USD' } }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters().map(({ metadata }) => metadata.labels![LABELS.burstPolicy])).toEqual(['younger']);
  });

  it('that fail keep work of their namespaces from younger ones, and no other', async () => {
    testbed.objects.put(policyNamed('peak', { namespaces: ['bank'] }));
    testbed.objects.put(policyNamed('younger', {}, START + 1000));
    testbed.demands = ['shop', 'bank'].map((namespace) => demand(`ResourceBinding ${namespace}/web`, 1, { namespace }));
    const { capacity } = testbed.deps;
    const known: typeof capacity.known = (decider) => {
      if (decider.uid === testbed.policy()!.metadata.uid) throw new Error('broken');
      return capacity.known(decider);
    };
    const deps = () => ({ ...testbed.deps, capacity: { ...capacity, known } }) as BurstDependencies;
    for (let looks = 0; looks < 12; looks++) {
      testbed.now += 10 * SECOND;
      await reconcileBurst(gardenWorld(deps()), testbed.memory, 'production', AbortSignal.timeout(1000));
    }
    expect(testbed.says('Reconciled')).toMatch(/^False/);
    expect(testbed.policy('younger')!.status!.decisions).toMatchObject([
      { action: 'Buy', why: expect.stringMatching(/of ResourceBinding shop\/web have no place/) },
    ]);
  });

  it('serve only work of the namespaces that they name', async () => {
    testbed.objects.put(policyNamed('peak', { namespaces: ['bank'] }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
  });

  it('only report in a dry run, once', async () => {
    testbed.objects.put(policyNamed('peak', { dryRun: true }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(10 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()!.status!.decisions).toMatchObject([{ action: 'Buy', dryRun: true }]);
    expect(testbed.events).toHaveLength(1);
  });

  it('in a preview leave to younger ones what they would not serve', async () => {
    const asked = { dryRun: true, trigger: { pendingFor: '0s' } };
    testbed.objects.put(policyNamed('peak', { ...asked, namespaces: ['shop'] }));
    testbed.objects.put(policyNamed('younger', asked, START + 1000));
    const small = { each: { cpu: '500m', memory: '1Mi' } };
    testbed.demands = [
      demand('ResourceBinding shop/web', 1, small),
      demand('ResourceBinding bank/api', 1, { ...small, namespace: 'bank' }),
    ];
    const decided = async (claims?: BurstDependencies['claims']) => {
      await reconcileBurst(
        gardenWorld({ ...testbed.deps, ...(claims && { claims }) }),
        testbed.memory,
        'production',
        AbortSignal.timeout(1000),
      );
      const { decisions = [], demand: waiting = [] } = testbed.policy('younger')!.status!;
      return [decisions.length, waiting.map(({ source, state }) => `${source} ${state}`)];
    };
    // The cluster that the older one would buy has room for the rest.
    expect(await decided(() => true)).toEqual([0, ['ResourceBinding bank/api RoomOrdered']]);
    expect(testbed.clusters()).toEqual([]);
    // What is only said in a dry run nobody does.
    expect(await decided()).toEqual([1, ['ResourceBinding shop/web Bought', 'ResourceBinding bank/api Bought']]);
  });

  it('that are deleted remove their clusters first, and leave nothing', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    expect(testbed.policy()!.metadata.finalizers).toEqual([FINALIZER]);
    const held = testbed.clusters()[0]!;
    testbed.objects.put({ ...held, metadata: { ...held.metadata, finalizers: [FINALIZER] } });
    await testbed.objects.delete(BURSTPOLICIES, 'peak', 'shop');
    await testbed.looks(MINUTE);
    expect(testbed.clusters()[0]!.metadata.deletionTimestamp).toBeDefined();
    expect(testbed.says('Deleting')).toBe('True ClustersLeave');
    testbed.objects.objects.delete(`workerclusters/shop/${held.metadata.name}`);
    await testbed.looks(MINUTE);
    expect(testbed.policy()).toBeUndefined();
    expect(testbed.objects.find(SECRETS, 'x', 'kube-system')).toBeUndefined();
    expect(testbed.receipt()).toBeUndefined();
  });

  it('name a cluster that cannot be removed, and remove the others', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [kept] = testbed.clusters();
    testbed.protect = kept!.metadata.name;
    await testbed.objects.delete(BURSTPOLICIES, 'peak', 'shop');
    await testbed.looks(MINUTE);
    expect(testbed.policy()!.status!.conditions).toContainEqual(
      expect.objectContaining({
        type: 'Deleting',
        message: expect.stringMatching(/cannot be given back: .*protected/),
      }),
    );
    testbed.protect = '';
    await testbed.looks(MINUTE);
    expect(testbed.policy()).toBeUndefined();
    expect(testbed.clusters()).toEqual([]);
  });

  it('release a cluster whose label a person removed: it stays, at no further cost to them', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    testbed.demands = [];
    const [cluster] = testbed.clusters();
    const { [LABELS.burstPolicy]: _, ...labels } = cluster!.metadata.labels!;
    testbed.objects.put({ ...cluster!, metadata: { ...cluster!.metadata, labels } });
    testbed.join(cluster!, 0);
    await testbed.looks(2 * 60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.receipt()!.purchases).toEqual([]);
  });

  it('deleted with orphaned clusters release them', async () => {
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    const [cluster] = testbed.clusters();
    await testbed.objects.delete(BURSTPOLICIES, 'peak', 'shop');
    const policy = testbed.policy()!;
    testbed.objects.put({ ...policy, metadata: { ...policy.metadata, finalizers: [FINALIZER, 'orphan'] } });
    await testbed.looks(MINUTE);
    const { ownerReferences: _, ...metadata } = cluster!.metadata;
    testbed.objects.put({ ...cluster!, metadata });
    testbed.objects.put({ ...policy, metadata: { ...policy.metadata, finalizers: [FINALIZER] } });
    await testbed.looks(MINUTE);
    expect(testbed.policy()).toBeUndefined();
    expect(testbed.clusters()).toHaveLength(1);
  });
});
