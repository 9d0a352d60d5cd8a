import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { likenessOf } from '../../../operator/burst/likeness.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

const candidate = (more: object = {}): BurstPolicySpec['candidates'][number] => ({
  name: 'cloud',
  template: {
    spec: {
      cloudProvider: 'cloud',
      controlPlaneNodes: 1,
      pools: [{ name: 'a', minimum: 1, maximum: 100, autoscale: 'Coppice', ...more }],
    },
  },
});
/** Five nodes. A hundred would cost 10 USD. */
const POLICY = { candidates: [candidate()], budget: { hourly: '0.5', currency: 'USD' } };
const waits = (source: string, count: number) => [demand(`ResourceBinding shop/${source}`, count)];

let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policyNamed('peak', POLICY));
});

const cluster = (): WorkerCluster => testbed.clusters()[0]!;
const key = (): string => `shop/${cluster().metadata.name}`;
const maximum = () => cluster().spec.pools![0]!.maximum;
const purchase = () => testbed.receipt()!.purchases[0]!;
const decided = () => testbed.sizes.get(key())?.get('a')?.count;
/** The autoscaler has the pool be of this size, and its nodes come or go. */
function sizeTo(count: number, replicas = count): void {
  testbed.sizes.set(key(), new Map([['a', { count, by: 'Coppice', why: '', at: '2026-11-23T12:00:00Z' }]]));
  const [pool] = cluster().spec.pools!;
  testbed.join({ ...cluster(), spec: { ...cluster().spec, pools: [{ ...pool!, minimum: count }] } }, replicas);
}
/** A pod that the scheduler of the cluster has no node for: each needs one of its own. */
const lacking = (name: string): Pod =>
  buildPod({
    metadata: { name, namespace: 'shop', uid: name },
    spec: { containers: [{ name: 'web', resources: { requests: { cpu: '1', memory: '1Gi' } } }] },
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: '' }],
    },
  });

/** A cluster of two nodes that is full, and whose minimum is released. */
async function two(): Promise<void> {
  testbed.demands = waits('web', 2);
  await testbed.looks(40 * SECOND);
  sizeTo(2);
  testbed.demands = [];
  const nodes = { desired: 2, current: 2, ready: 2 };
  testbed.objects.put({ ...cluster(), status: { ...cluster().status, nodes } } as never);
  await testbed.looks(2 * MINUTE);
  expect(cluster().spec.pools).toMatchObject([{ minimum: 1, maximum: 2 }]);
}

describe('a bought cluster', () => {
  it('has its granted nodes as the maximum of its pool, and counts as these', async () => {
    testbed.demands = waits('web', 1);
    await testbed.looks(40 * SECOND);
    expect(cluster().spec.pools).toMatchObject([{ minimum: 1, maximum: 1 }]);
    expect(purchase()).toMatchObject({ granted: { a: { nodes: 1, each: '0.1' } }, most: '0.1', rate: '0.1' });
  });

  it('grows for hub work within the budget: first granted, then the maximum, then the size', async () => {
    await two();
    testbed.demands = waits('api', 3);
    testbed.objects.writes.length = 0;
    await testbed.looks(MINUTE);
    expect([maximum(), decided()]).toEqual([5, 5]);
    expect(purchase()).toMatchObject({ granted: { a: { nodes: 5 } }, most: '0.5', mostNodes: 5 });
    const order = testbed.objects.writes.findIndex((line) => line.startsWith('decide '));
    expect(testbed.objects.writes.slice(0, order).join('\n')).toMatch(/apply secrets kube-system\/burst-/);
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({ action: 'Grow', pool: 'a', hourly: '0.3' });
    sizeTo(5);
    testbed.demands = waits('ml', 1);
    await testbed.looks(3 * MINUTE);
    expect([maximum(), decided(), testbed.clusters().length]).toEqual([5, 5, 1]);
    expect(testbed.says('DemandMet')).toBe('False Refused');
  });

  it('is granted more nodes for its own pending pods, within the budget', async () => {
    await two();
    testbed.open.get(key())!.pods.push(...['one', 'two', 'three', 'four'].map(lacking));
    await testbed.look(10 * SECOND);
    expect([maximum(), decided()]).toEqual([5, 2]);
    expect(purchase()).toMatchObject({ granted: { a: { nodes: 5 } }, most: '0.5' });
    const { conditions, decisions } = testbed.policy()!.status!;
    expect(decisions!.find(({ action }) => action === 'Grow')).toMatchObject({
      cluster: cluster().metadata.name,
      why: `pods wait in ${key()} for a node, and 3 nodes more of pool a may be asked for`,
    });
    expect(conditions!.find(({ type }) => type === 'DemandMet')).toMatchObject({
      reason: 'Refused',
      message: expect.stringMatching(
        /of 4 nodes of pool a that pods wait for, 3 are granted: a node costs 0\.1 USD an hour/,
      ),
    });
    sizeTo(5);
    await testbed.looks(2 * MINUTE);
    expect(testbed.outcomes().at(-2)).toMatch(/^Grow Succeeded: its autoscaler asked for them within/);
    expect(maximum()).toBe(5);
  });

  it('is granted no nodes for pods with room on nodes already granted', async () => {
    await two();
    sizeTo(1);
    testbed.open.get(key())!.pods.push(lacking('one'));
    await testbed.looks(MINUTE);
    expect([maximum(), purchase().most]).toEqual([2, '0.2']);
    testbed.open.get(key())!.pods.push(lacking('two'));
    await testbed.look(10 * SECOND);
    expect([maximum(), purchase().most]).toEqual([3, '0.3']);
  });

  it('returns unused nodes to the budget: first the maximum, then the grant', async () => {
    await two();
    testbed.demands = waits('api', 3);
    await testbed.looks(MINUTE);
    sizeTo(5);
    testbed.demands = [];
    await testbed.looks(2 * MINUTE);
    sizeTo(1);
    await testbed.look(10 * SECOND);
    expect([maximum(), purchase().most]).toEqual([1, '0.5']);
    await testbed.look(10 * SECOND);
    expect(purchase()).toMatchObject({ granted: { a: { nodes: 1 } }, most: '0.1', mostNodes: 1 });
    const writes = testbed.objects.writes.length;
    await testbed.looks(5 * MINUTE);
    expect(testbed.objects.writes).toHaveLength(writes);
  });

  it('loses granted nodes that its autoscaler does not request, and is granted none for a while', async () => {
    await two();
    testbed.open.get(key())!.pods.push(lacking('one'));
    await testbed.look(10 * SECOND);
    expect(maximum()).toBe(3);
    testbed.open.get(key())!.pods.pop();
    await testbed.looks(90 * SECOND);
    expect([maximum(), purchase().most]).toEqual([2, '0.2']);
    expect(testbed.outcomes()[0]).toMatch(/^Grow Unused: its autoscaler did not ask for them within/);
    testbed.open.get(key())!.pods.push(lacking('one'));
    await testbed.looks(2 * MINUTE);
    expect(maximum()).toBe(2);
    await testbed.looks(4 * MINUTE);
    expect(maximum()).toBe(3);
  });

  it('is granted nothing for pods for which a node was bought in vain', async () => {
    await two();
    const pod = lacking('one');
    testbed.open.get(key())!.pods.push(pod);
    const stops = { [likenessOf(pod)]: { why: 'it did not take them', cameAt: '2026-11-23T12:00:00Z' } };
    testbed.sizes.set(key(), new Map([['a', { count: 2, by: 'Coppice', why: '', memory: { stops } }]]));
    await testbed.looks(MINUTE);
    expect(maximum()).toBe(2);
  });

  it('is granted nothing by a suspended or dry-run policy', async () => {
    await two();
    testbed.open.get(key())!.pods.push(lacking('one'));
    testbed.objects.put(policyNamed('peak', { ...POLICY, suspend: true }));
    await testbed.looks(MINUTE);
    testbed.objects.put(policyNamed('peak', { ...POLICY, dryRun: true }));
    await testbed.looks(MINUTE);
    expect([maximum(), purchase().most]).toEqual([2, '0.2']);
    expect(testbed.policy()!.status!.decisions![0]).toMatchObject({ action: 'Grow', dryRun: true, hourly: '0.1' });
  });

  it('keeps its grant while its policy is suspended', async () => {
    await two();
    testbed.objects.put(policyNamed('peak', { ...POLICY, suspend: true }));
    sizeTo(1);
    await testbed.looks(2 * MINUTE);
    expect([maximum(), purchase().most]).toEqual([2, '0.2']);
    testbed.objects.put(policyNamed('peak', POLICY));
    await testbed.looks(MINUTE);
    expect([maximum(), purchase().most]).toEqual([1, '0.1']);
  });

  it('is granted the same, once, with the operator killed after each of its writes', async () => {
    for (let lives = 1; lives <= 6; lives++) {
      testbed = new BurstTestbed();
      testbed.objects.put(policyNamed('peak', POLICY));
      await two();
      testbed.lives = lives;
      testbed.demands = waits('api', 2);
      for (let past = 0; past < 2 * MINUTE; past += 10 * SECOND)
        await testbed.look(10 * SECOND).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          testbed.lives = Number.POSITIVE_INFINITY;
          testbed.memory = new BurstMemory();
        });
      expect([maximum(), decided(), purchase().most], `killed at write ${lives}`).toEqual([4, 4, '0.4']);
      expect(testbed.clusters()).toHaveLength(1);
    }
  });

  it('bought before grants existed counts with its maximum, and grows to it', async () => {
    await two();
    const { receipts } = testbed.deps;
    const { signal } = new AbortController();
    const kept = (await receipts.read('shop/peak', signal))!;
    const { granted: _, ...old } = kept.purchases[0]!;
    await receipts.save('shop/peak', { ...kept, purchases: [{ ...old, most: '0.5' }] }, kept, signal);
    const [pool] = cluster().spec.pools!;
    testbed.objects.put({ ...cluster(), spec: { ...cluster().spec, pools: [{ ...pool!, maximum: 5 }] } });
    testbed.demands = waits('api', 3);
    await testbed.looks(3 * MINUTE);
    expect([maximum(), decided(), purchase().most]).toEqual([5, 5, '0.5']);
    expect(purchase().granted).toBeUndefined();
  });
});
