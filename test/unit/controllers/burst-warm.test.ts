import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstCandidate, BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';
import { quota } from '../cost/objects.ts';

const candidate = (warmClusters: number, minimum = 3): BurstCandidate => ({
  name: 'cloud',
  warmClusters,
  template: { spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, pools: [{ name: 'a', minimum, maximum: 10 }] } },
});
const policy = (warm: number, more: Partial<BurstPolicySpec> = {}) =>
  policyNamed('peak', { candidates: [candidate(warm)], ...more });

let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policy(1));
});

const isWarm = ({ metadata }: WorkerCluster) => metadata.labels?.[LABELS.burstWarm] === 'true';
const warm = () => testbed.clusters().filter(isWarm);
const open = () => testbed.clusters().filter((one) => !isWarm(one));
/** What the controllers of clusters and memberships do: it is made, and in the hub, which keeps it closed. */
function ready(cluster: WorkerCluster): void {
  const { name, namespace } = cluster.metadata;
  testbed.join(cluster, 0);
  testbed.objects.put({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Membership',
    metadata: { name: `${name}.production`, namespace: namespace! },
    spec: { cluster: name, hub: 'production' },
    status: { state: 'Joining', conditions: [{ type: 'Warm', status: 'True', reason: 'WaitsWarm' }] },
  });
}

describe('a candidate with warm clusters', () => {
  it('creates them without waiting work, at their plain cost', async () => {
    await testbed.look();
    expect(warm()).toHaveLength(1);
    expect(testbed.policy()!.status).toMatchObject({
      clusterCount: 1,
      hourly: '0.3',
      clusters: [{ phase: 'Making' }],
      decisions: [{ action: 'Buy', why: 'it waits warm, as candidate cloud asks for 1 of' }],
    });
    ready(warm()[0]!);
    await testbed.look(10 * SECOND);
    expect(testbed.policy()!.status!.clusters).toMatchObject([{ phase: 'Warm' }]);
    const writes = testbed.objects.writes.length;
    await testbed.looks(5 * 60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.objects.writes).toHaveLength(writes);
  });

  it('leaves no record of one that was never created and is no longer requested', async () => {
    let neverMade = 0;
    for (let lives = 1; lives <= 4; lives++) {
      testbed = new BurstTestbed();
      testbed.objects.put(policy(1));
      testbed.lives = lives;
      await testbed.look().catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error;
      });
      testbed.lives = Number.POSITIVE_INFINITY;
      if (testbed.receipt()?.purchases.length && testbed.clusters().length === 0) neverMade++;
      testbed.objects.put(policy(0));
      await testbed.looks(4 * MINUTE);
      expect(testbed.clusters(), `killed at write ${lives}`).toEqual([]);
      expect(testbed.receipt()?.purchases ?? [], `killed at write ${lives}`).toEqual([]);
    }
    expect(neverMade).toBe(1);
  });

  it('opens one at once for work, and creates another when that has joined', async () => {
    await testbed.look();
    const [first] = warm();
    ready(first!);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(30 * SECOND);
    expect(open()).toEqual([]);
    testbed.objects.writes.length = 0;
    await testbed.look(10 * SECOND);
    expect(open().map(({ metadata }) => metadata.name)).toEqual([first!.metadata.name]);
    expect(testbed.objects.writes[0]).toMatch(/^apply secrets kube-system\/burst-/);
    expect(testbed.says('DemandMet')).toBe('False Opened');
    expect(testbed.events.at(-1)).toMatch(/^ClusterOpened WorkerCluster .*: 3 replicas .* which waited warm, takes 3/);
    // Until its hub has opened it, it is room all the same.
    await testbed.look(10 * SECOND);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    testbed.join(first!, 3);
    testbed.demands = [];
    await testbed.look(10 * SECOND);
    expect(warm()).toHaveLength(1);
    expect(testbed.outcomes()).toEqual([
      'Buy ?',
      'Open Succeeded: it was in the hub 20 s after the decision, and had work by then',
      'Buy Succeeded: it was ready in the hub 10 s after the decision, and waits warm',
    ]);
    // It is a cluster like any other from now on.
    testbed.empty(first!);
    ready(warm()[0]!);
    await testbed.looks(60 * MINUTE);
    expect(open()).toEqual([]);
    expect(warm()).toHaveLength(1);
  });

  it('opens one without delaying the next purchase', async () => {
    testbed.objects.put(policy(1, { cooldown: { scaleOut: '10m' } }));
    await testbed.look();
    ready(warm()[0]!);
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    testbed.join(open()[0]!, 3);
    testbed.demands = [demand('ResourceBinding shop/api', 3)];
    await testbed.looks(MINUTE);
    expect(open()).toHaveLength(2);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
  });

  it('reports one that cannot be opened for lack of rights, and the policy continues', async () => {
    await testbed.look();
    const [first] = warm();
    ready(first!);
    testbed.frozen = first!.metadata.name;
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(40 * SECOND);
    expect(open()).toEqual([]);
    expect(testbed.says('Ready')).toBe('False CannotOpen');
    testbed.frozen = '';
    await testbed.look(10 * SECOND);
    expect(open()).toHaveLength(1);
    expect(testbed.says('Ready')).toBe('True Watching');
  });

  it('does not count one as room before it is opened, nor opens it before it is ready', async () => {
    await testbed.look();
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(MINUTE);
    expect(warm()).toHaveLength(1);
    expect(open()).toHaveLength(1);
  });

  it('replaces them when its template changes, and removes surplus ones', async () => {
    await testbed.look();
    const [first] = warm();
    ready(first!);
    await testbed.looks(11 * MINUTE);
    testbed.objects.put(policy(1, { candidates: [candidate(1, 2)] }));
    await testbed.looks(MINUTE);
    expect(warm().map(({ spec }) => spec.pools![0]!.minimum)).toEqual([2]);
    testbed.objects.put(policy(0, { candidates: [candidate(0, 2)] }));
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toEqual([]);
  });

  it('replaces them when its profile has another Kubernetes version', async () => {
    await testbed.look();
    const [first] = warm();
    ready(first!);
    await testbed.looks(11 * MINUTE);
    const { spec, ...rest } = testbed.profile;
    const versions = [...spec.kubernetes.versions!, { version: '1.99.0', classification: 'supported' as const }];
    testbed.profile = { ...rest, spec: { ...spec, kubernetes: { versions } } };
    await testbed.looks(MINUTE);
    expect(warm()).toHaveLength(1);
    expect(warm()[0]!.metadata.name).not.toBe(first!.metadata.name);
  });

  it.each<[string, () => void]>([
    ['its budget', () => testbed.objects.put(policy(1, { budget: { hourly: '0.2', currency: 'USD' } }))],
    ['a quota', () => testbed.objects.put(quota({ 'cost.hourly': '0.2' }))],
    ['a dry run', () => testbed.objects.put(policy(1, { dryRun: true }))],
  ])('has none made against %s', async (_, change) => {
    change();
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()!.status!.decisions).toHaveLength(1);
  });

  it('replaces one that did not come', async () => {
    await testbed.look();
    const [first] = warm();
    const condition = { type: 'Ready', status: 'False', message: 'none left', codes: ['ERR_INFRA_RESOURCES_DEPLETED'] };
    testbed.objects.put({ ...first!, status: { conditions: [condition] } } as never);
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    await testbed.looks(6 * MINUTE);
    expect(warm().map(({ metadata }) => metadata.name)).not.toEqual([first!.metadata.name]);
    expect(warm()).toHaveLength(1);
  });

  it('opens one and buys none with the operator killed after each of its writes', async () => {
    for (let lives = 1; lives <= 8; lives++) {
      testbed = new BurstTestbed();
      testbed.objects.put(policy(1));
      await testbed.look();
      ready(warm()[0]!);
      await testbed.look(10 * SECOND);
      testbed.lives = lives;
      testbed.demands = [demand('ResourceBinding shop/web', 3)];
      for (let past = 0; past < 3 * MINUTE; past += 10 * SECOND)
        await testbed.look(10 * SECOND).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          testbed.lives = Number.POSITIVE_INFINITY;
          testbed.memory = new BurstMemory();
        });
      expect(open(), `killed at write ${lives}`).toHaveLength(1);
    }
  });
});
