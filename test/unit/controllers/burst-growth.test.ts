import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';
import { quota } from '../cost/objects.ts';

const KEY = 'shop/private';
const grow: NonNullable<BurstPolicySpec['grow']> = [
  { name: 'private', clusterSelector: { matchLabels: { fleet: 'private' } }, maximumNodes: 3 },
];
const waits = (count: number) => [demand('ResourceBinding shop/web', count)];

let testbed: BurstTestbed;
let member: WorkerCluster;
beforeEach(() => begin());

/** A garden with a member of the hub that is full: one node of at most five. */
function begin(): void {
  testbed = new BurstTestbed();
  testbed.objects.put(policyNamed('peak', { grow }));
  member = privateCluster();
  testbed.objects.put(member);
  testbed.join(member, 1);
}

const privateCluster = (pool: object = {}): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name: 'private', namespace: 'shop', uid: 'uid-of-private', labels: { fleet: 'private' } },
    spec: { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 5, autoscale: 'Coppice', ...pool }] },
  });

/** What the controllers of nodes do: there are so many nodes, and as many replicas on them. */
function arrive(nodes: number, replicas: number): void {
  testbed.join(
    { ...member, spec: { ...member.spec, pools: [{ ...member.spec.pools![0]!, minimum: nodes }] } },
    replicas,
  );
}
const soldOut = () => [
  { profile: 'cloud', region: 'here', machineType: 'small', zone: '', spot: false, until: Date.parse('2027-01-01') },
];
const decided = () => testbed.sizes.get(KEY)?.get('a')?.count;
/** The autoscaler has the pool be smaller. */
const shrink = (count: number) =>
  testbed.sizes.set(KEY, new Map([['a', { count, by: 'Coppice', why: '', at: new Date(testbed.now).toISOString() }]]));

describe('a member that the policy may grow', () => {
  it("grows within the policy's maximum of nodes, from which removed nodes are freed", async () => {
    testbed.objects.put(
      policyNamed('peak', { grow, maximumNodes: 2, candidates: [policyNamed('peak').spec.candidates[0]!] }),
    );
    testbed.demands = waits(3);
    await testbed.looks(MINUTE);
    expect(decided()).toBeUndefined();
    expect(testbed.receipt()!.decisions[0]).toMatchObject({
      action: 'Refuse',
      why: expect.stringMatching(/maximumNodes/),
    });
    testbed.demands = waits(2);
    await testbed.looks(MINUTE);
    expect(decided()).toBe(3);
    arrive(3, 3);
    expect(testbed.policy()!.status!.nodeCount).toBe(2);
    testbed.demands = [demand('ResourceBinding shop/api', 1)];
    await testbed.looks(3 * MINUTE);
    expect(decided()).toBe(3);
    shrink(1);
    arrive(1, 1);
    await testbed.looks(MINUTE);
    expect(decided()).toBe(2);
  });

  it('gets nodes before a cluster is bought; they are recorded first, at their price', async () => {
    testbed.demands = waits(2);
    await testbed.looks(30 * SECOND);
    expect(decided()).toBeUndefined();
    testbed.objects.writes.length = 0;
    await testbed.look(10 * SECOND);
    expect(decided()).toBe(3);
    const order = testbed.objects.writes.findIndex((line) => line.startsWith('decide '));
    expect(testbed.objects.writes[order - 1]).toMatch(/^create secrets kube-system\/burst-/);
    expect(testbed.clusters().map(({ metadata }) => metadata.name)).toEqual(['private']);
    expect(testbed.policy()!.status).toMatchObject({
      hourly: '0.2',
      nodes: [{ cluster: 'private', pool: 'a', count: 2, hourly: '0.2' }],
      decisions: [{ action: 'Grow', cluster: 'private', candidate: 'private', hourly: '0.2' }],
    });
    expect(testbed.says('DemandMet')).toBe('False Growing');
    expect(testbed.events).toContainEqual(
      expect.stringMatching(/^PoolGrows pool a is to have 3 nodes, 2 more: BurstPolicy peak/),
    );
    // On their way they are room, and nothing more is bought.
    await testbed.looks(5 * MINUTE);
    expect(decided()).toBe(3);
    expect(testbed.says('DemandMet')).toBe('False RoomOrdered');
    arrive(3, 3);
    testbed.demands = [];
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.policy()!.status!.nodes).toMatchObject([{ count: 2 }]);
    expect(testbed.outcomes()).toEqual(['Grow Succeeded: its 2 nodes came within 310 s of the decision']);
  });

  it('returns unused nodes, which cost nothing from then on', async () => {
    testbed.demands = waits(2);
    await testbed.looks(MINUTE);
    arrive(3, 3);
    testbed.demands = [];
    await testbed.looks(60 * MINUTE);
    shrink(2);
    arrive(2, 2);
    await testbed.look(10 * SECOND);
    expect(testbed.policy()!.status).toMatchObject({ hourly: '0.1', nodes: [{ count: 1 }] });
    shrink(1);
    await testbed.look(10 * SECOND);
    expect(testbed.policy()!.status).toMatchObject({ hourly: '0' });
    expect(testbed.policy()!.status!.nodes).toBeUndefined();
    // 0.2 an hour for an hour.
    expect(Number(testbed.receipt()!.spent['2026-11'])).toBeCloseTo(0.2, 1);
    const writes = testbed.objects.writes.length;
    await testbed.looks(10 * MINUTE);
    expect(testbed.objects.writes).toHaveLength(writes);
  });

  it('grows to its limit, and a cluster is bought for the rest', async () => {
    testbed.demands = waits(6);
    await testbed.looks(40 * SECOND);
    expect(decided()).toBe(4);
    const bought = testbed.clusters().filter(({ metadata }) => metadata.labels?.[LABELS.burst]);
    expect(bought.map(({ spec }) => spec.pools![0]!.minimum)).toEqual([3]);
  });

  it.each<[string, () => void]>([
    ['is not Coppice to size', () => testbed.objects.put(privateCluster({ autoscale: 'None' }))],
    ['is at its maximum', () => testbed.objects.put(privateCluster({ maximum: 1 }))],
    ['is not named', () => testbed.objects.put(policyNamed('peak', { grow: [{ ...grow[0]!, pools: ['other'] }] }))],
    ['sleeps', () => testbed.objects.put({ ...member, status: { hibernation: { asleep: true } } } as never)],
    [
      'is of a cloud that chooses itself which nodes go',
      () => testbed.objects.put({ ...member, spec: { ...member.spec, mode: 'Managed' } }),
    ],
    [
      'is sold out',
      () => {
        testbed.depleted = soldOut();
      },
    ],
    ['has no price', () => testbed.objects.put(privateCluster({ machineType: 'free' }))],
    ['has other labels', () => testbed.objects.put({ ...member, metadata: { ...member.metadata, labels: {} } })],
  ])('does not grow where its pool %s: a cluster is bought', async (_, change) => {
    change();
    testbed.demands = waits(2);
    await testbed.looks(MINUTE);
    expect(decided()).toBeUndefined();
    expect(testbed.clusters()).toHaveLength(2);
  });

  it('grows in a cloud that deletes nodes by name, so that they can be returned', async () => {
    testbed.removesNodes = true;
    testbed.objects.put({ ...member, spec: { ...member.spec, mode: 'Managed' } });
    testbed.demands = waits(1);
    await testbed.looks(MINUTE);
    expect(decided()).toBe(2);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('grows first in pools without recently reclaimed machines, although others cost less', async () => {
    const [small, ...others] = testbed.profile.spec.machineTypes;
    const machineTypes = [{ ...small!, price: { ...small!.price!, spot: '0.01' } }, ...others];
    testbed.profile = { ...testbed.profile, spec: { ...testbed.profile.spec, machineTypes } };
    const [pool] = member.spec.pools!;
    const pools = [
      { ...pool!, spot: true },
      { ...pool!, name: 'steady', minimum: 0 },
    ];
    testbed.objects.put({ ...member, spec: { ...member.spec, pools } });
    testbed.depleted = soldOut().map((one) => ({ ...one, spot: true, interrupted: true }));
    testbed.demands = waits(1);
    await testbed.looks(MINUTE);
    expect([...testbed.sizes.get(KEY)!].map(([name, { count }]) => `${name} ${count}`)).toEqual(['steady 1']);
  });

  it("grows within its namespace's quotas", async () => {
    testbed.objects.put({
      ...member,
      status: { admitted: { region: 'here', mode: 'Hosted', pools: [{ name: 'a', machineType: 'small', count: 1 }] } },
    } as never);
    testbed.objects.put(quota({ 'cost.hourly': '0.2' }));
    testbed.demands = waits(1);
    await testbed.looks(MINUTE);
    expect(decided()).toBe(2);
    testbed.demands = waits(9);
    await testbed.looks(2 * MINUTE);
    expect(decided()).toBe(2);
    expect(testbed.policy()!.status!.decisions![0]!.alternatives![0]!.whyNot).toMatch(/quota "team" allows/);
  });

  it('grows beside another one within quotas for both', async () => {
    const [small, admitted] = [
      { ...member.spec.pools![0]!, maximum: 2 },
      { name: 'a', machineType: 'small', count: 1 },
    ];
    for (const name of ['private', 'second', 'third']) {
      const metadata = { ...member.metadata, name, uid: `uid-of-${name}` };
      const one = { ...member, metadata, spec: { ...member.spec, pools: [small] } };
      testbed.objects.put({
        ...one,
        status: { admitted: { region: 'here', mode: 'Hosted', pools: [admitted] } },
      } as never);
      testbed.join(one, 1);
    }
    // There are three nodes: two more, and no cluster, are allowed.
    testbed.objects.put(quota({ 'cost.hourly': '0.5' }));
    testbed.demands = waits(3);
    await testbed.looks(2 * MINUTE);
    expect(testbed.sizes.size).toBe(0);
    expect(testbed.says('DemandMet')).toBe('False Refused');
    testbed.demands = waits(2);
    await testbed.looks(2 * MINUTE);
    expect([...testbed.sizes.values()].map((pools) => pools.get('a')!.count)).toEqual([2, 2]);
  });

  it('without arriving nodes is cooled down, and a cluster is bought', async () => {
    testbed.demands = waits(2);
    await testbed.looks(MINUTE);
    expect(decided()).toBe(3);
    // Its autoscaler gives up what is sold out.
    testbed.depleted = soldOut();
    shrink(1);
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
    expect(testbed.receipt()!.rests['shop/private/a']).toMatchObject({ failures: 1 });
    expect(testbed.receipt()!.growths).toEqual([]);
    expect(testbed.policy()!.status!.decisions!.map(({ action }) => action)).toEqual(['Buy', 'Fail', 'Grow']);
    expect(testbed.outcomes().at(-1)).toMatch(
      /^Grow Failed: 0 of its 2 nodes came within \d+ (s|minutes) of the decision$/,
    );
  });

  it('is ordered again after a concurrent decision of its autoscaler', async () => {
    testbed.demands = waits(2);
    await testbed.looks(40 * SECOND);
    shrink(1);
    await testbed.look(10 * SECOND);
    expect(decided()).toBe(3);
    expect(testbed.receipt()!.growths).toHaveLength(1);
  });

  it('is unchanged in a dry run', async () => {
    testbed.objects.put(policyNamed('peak', { grow, dryRun: true }));
    testbed.demands = waits(2);
    await testbed.looks(5 * MINUTE);
    expect(decided()).toBeUndefined();
    expect(testbed.policy()!.status!.decisions).toMatchObject([{ action: 'Grow', dryRun: true }]);
  });

  it('grows once for two policies', async () => {
    testbed.objects.put(policyNamed('younger', { grow }, testbed.now + 1000));
    testbed.demands = waits(2);
    await testbed.looks(10 * MINUTE);
    expect(decided()).toBe(3);
    expect(testbed.policy('younger')!.status!.nodes).toBeUndefined();
  });

  it('grows once with the operator killed after each of its writes', async () => {
    for (let lives = 1; lives <= 8; lives++) {
      begin();
      testbed.lives = lives;
      testbed.demands = waits(2);
      for (let past = 0; past < 3 * MINUTE; past += 10 * SECOND)
        await testbed.look(10 * SECOND).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          testbed.lives = Number.POSITIVE_INFINITY;
          testbed.memory = new BurstMemory();
        });
      expect(decided(), `killed at write ${lives}`).toBe(3);
      expect(testbed.receipt()!.growths, `killed at write ${lives}`).toHaveLength(1);
      expect(testbed.clusters()).toHaveLength(1);
    }
  });

  it('keeps nodes for its own pending pods', async () => {
    testbed.demands = waits(2);
    await testbed.looks(MINUTE);
    const waiting = {
      kind: 'Pod',
      metadata: { name: 'theirs', namespace: 'shop' },
      spec: { containers: [{ name: 'one', resources: { requests: { cpu: '1' } } }] },
      status: { phase: 'Pending' },
    };
    testbed.open.get(KEY)!.pods.push(waiting as unknown as Pod);
    await testbed.looks(2 * MINUTE);
    expect(decided()).toBe(4);
  });
});

describe('a cluster that the policy bought', () => {
  it('grows before another is bought, without being named, within its share of the budget', async () => {
    begin();
    const template = {
      spec: {
        cloudProvider: 'cloud',
        controlPlaneNodes: 1 as const,
        pools: [{ name: 'a', minimum: 1, maximum: 4, autoscale: 'Coppice' as const }],
      },
    };
    testbed.objects.put(
      policyNamed('peak', { candidates: [{ name: 'cloud', template }], budget: { hourly: '0.4', currency: 'USD' } }),
    );
    testbed.demands = waits(2);
    await testbed.looks(40 * SECOND);
    const cluster = testbed.clusters()[1]!;
    expect(cluster.spec.pools![0]!.minimum).toBe(2);
    testbed.join(cluster, 2);
    testbed.demands = [demand('ResourceBinding shop/other', 2)];
    await testbed.looks(3 * MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
    const key = `shop/${cluster.metadata.name}`;
    expect(testbed.sizes.get(key)?.get('a')).toMatchObject({ count: 4, by: 'BurstPolicy shop/peak' });
    // Its cluster was counted at its largest already.
    expect(testbed.policy()!.status!.nodes).toMatchObject([{ cluster: cluster.metadata.name, count: 2, hourly: '0' }]);
  });
});
