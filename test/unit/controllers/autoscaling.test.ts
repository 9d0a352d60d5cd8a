import { describe, expect, it } from 'vitest';
import { judgePurchases } from '../../../operator/burst/nodes/no-help.ts';
import type { PoolMemory } from '../../../operator/capacity/pool-memory.ts';
import { asReady } from '../../../operator/controllers/autoscaling/nodes-seen.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { atOnce } from '../../../operator/kube/steps.ts';
import { AutoscaledCluster, nodesQuota, profile } from '../../kit/autoscaled-cluster.ts';
import { boundClaim, claims, demand, MINUTE, NOW, node, stateOf } from '../../kit/burst.ts';

const POOL = [{ name: 'a', minimum: 0, maximum: 5 }];

describe('a pool sized by Coppice', () => {
  it('grows from zero to the needed nodes, once, and shrinks to zero after 10 minutes', async () => {
    const one = new AutoscaledCluster(POOL);
    await one.step();
    expect(one.writes).toBe(0);
    one.deploy(6, '2');
    await one.step();
    expect(one.counts).toEqual({ a: 3 });
    expect(one.condition()).toMatchObject({ status: 'True', reason: 'NodesOrdered' });
    await one.pass(1);
    expect(one.pending).toBe(0);
    await one.pass(3);
    expect(one.counts).toEqual({ a: 3 });
    one.deploy(0);
    await one.pass(9);
    expect(one.counts).toEqual({ a: 3 });
    await one.pass(3);
    expect(one.counts).toEqual({});
    expect(one.killed).toEqual([]);
    expect(one.history).toEqual(['+a-1', '+a-2', '+a-3', '-a-1', '-a-2', '-a-3']);
    expect(one.events.filter((line) => line.includes('PoolGrows'))).toEqual([
      'Normal PoolGrows: pool a is to have 3 nodes, 3 more: 6 pods waited for 3 nodes, first of ReplicaSet shop/web since 2026-11-22T23:59:50Z',
    ]);
    const { writes } = one;
    await one.pass(30);
    expect(one.writes).toBe(writes);
    expect(one.condition()).toMatchObject({ status: 'True', reason: 'Settled' });
  });

  it('removes exactly the drained node', async () => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(9, '1');
    await one.pass(2);
    expect(one.counts).toEqual({ a: 3 });
    one.deploy(4);
    await one.pass(15);
    expect(one.killed).toEqual([]);
    expect(one.counts).toEqual({ a: 1 });
    expect(one.pending).toBe(0);
    expect(one.events.at(-1)).toMatch(/^Normal PoolShrinks: pool a is to have 1 node, /);
  });

  it('stays within its maximum, and reports which pods wait', async () => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(8, '4');
    await one.pass(2);
    expect(one.counts).toEqual({ a: 5 });
    expect(one.condition()).toMatchObject({
      status: 'False',
      reason: 'PodsWait',
      message: expect.stringContaining(
        '3 pods of ReplicaSet shop/web: the pools that would take them are at their maximum (pool a)',
      ),
    });
  });

  it("stays within its project's quota", async () => {
    const one = new AutoscaledCluster(POOL);
    one.quotas = [nodesQuota(2)];
    one.deploy(8, '4');
    await one.pass(1);
    expect(one.counts).toEqual({ a: 2 });
    expect(one.condition()?.message).toContain('a quota forbids it (quota "small" allows');
  });

  it("treats a person's number as a minimum, which it keeps until the number is given back", async () => {
    const one = new AutoscaledCluster(POOL, { dataPlaneNodes: 3 });
    one.deploy(1);
    await one.pass(20);
    expect(one.counts).toEqual({ a: 3 });
    const { dataPlaneNodes: _, ...spec } = one.cluster.spec;
    one.cluster = { ...one.cluster, spec };
    // Then nodes go because nobody needs them, and not all at once.
    await one.pass(5);
    expect(one.counts).toEqual({ a: 3 });
    await one.pass(10);
    expect(one.counts).toEqual({ a: 1 });
    expect(one.killed).toEqual([]);
  });

  it('keeps used nodes when the minimum is lowered', async () => {
    const one = new AutoscaledCluster([{ name: 'a', minimum: 3, maximum: 5 }]);
    one.deploy(9, '1');
    await one.pass(5);
    one.cluster = {
      ...one.cluster,
      spec: { ...one.cluster.spec, pools: [{ name: 'a', minimum: 0, maximum: 5, autoscale: 'Coppice' }] },
    };
    await one.pass(30);
    expect(one.counts).toEqual({ a: 3 });
    expect(one.history).toEqual(['+a-1', '+a-2', '+a-3']);
    // Their number, and what a node of the pool is once it is Ready.
    expect(one.writes).toBe(2);
  });
});

it('grows despite a DaemonSet too large for its nodes, which is reported', async () => {
  const one = new AutoscaledCluster(POOL);
  const spec = { template: { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '5' } } }] } } };
  one.objects.daemonsets = [{ metadata: { name: 'agent', namespace: 'kube-system', uid: 'ds' }, spec }];
  one.deploy(1);
  await one.pass(2);
  expect(one.pending).toBe(0);
  expect(one.condition()).toMatchObject({
    status: 'False',
    reason: 'DaemonSetsTooLarge',
    message: expect.stringContaining('DaemonSet kube-system/agent fits on no node of pool a (Insufficient cpu)'),
  });
});

it('of a managed cluster grows and does not shrink, which is reported', async () => {
  const one = new AutoscaledCluster(POOL);
  one.isManaged = true;
  one.deploy(3, '3');
  await one.pass(2);
  expect(one.pending).toBe(0);
  one.deploy(0);
  await one.pass(30);
  expect(one.counts).toEqual({ a: 3 });
  expect(one.condition()).toMatchObject({
    status: 'True',
    message: expect.stringContaining(
      'the cloud chooses itself which nodes of a managed cluster go, so Coppice takes none away',
    ),
  });
});

describe('nodes that do not help', () => {
  it('are not bought repeatedly when they offer less than their type', async () => {
    const one = new AutoscaledCluster(POOL);
    one.offers = '3900m';
    one.deploy(1, '4');
    await one.pass(90);
    expect(one.history).toEqual(['+a-1', '-a-1']);
    expect(one.condition()).toMatchObject({ reason: 'PodsWait', message: expect.stringContaining('Insufficient cpu') });
  });

  it('are not all bought when somebody taints each new one', async () => {
    const one = new AutoscaledCluster(POOL);
    one.taint = 'chaos';
    one.deploy(1, '1');
    await one.pass(90);
    expect(one.history).toEqual(['+a-1', '-a-1']);
    expect(one.condition()).toMatchObject({ reason: 'PodsWait', message: expect.stringContaining('taint') });
  });

  it('are not bought repeatedly when their GPUs never appear', async () => {
    const one = new AutoscaledCluster(POOL, {}, profile([{ name: 'medium', cpu: 4, gpu: 1, memory: '8Gi' }]));
    const containers = [{ name: 'c', resources: { requests: { cpu: '1', 'nvidia.com/gpu': '1' } } }];
    one.podsHave = { spec: { containers } };
    one.deploy(1);
    for (let restarts = 0; restarts < 3; restarts++) {
      await one.pass(40);
      one.restart();
    }
    await one.pass(1);
    expect(one.history).toEqual(['+a-1', '-a-1']);
    expect(one.condition()).toMatchObject({
      reason: 'PodsWait',
      message: expect.stringContaining('Insufficient nvidia.com/gpu'),
    });
  });

  it('give no permanent room when an agent never removes its startup taint', async () => {
    const startupTaints = [{ key: 'agent-not-ready', effect: 'NoSchedule' }];
    const one = new AutoscaledCluster([{ ...POOL[0]!, startupTaints }]);
    one.taint = 'agent-not-ready';
    one.deploy(1, '3');
    await one.pass(14);
    expect(one.condition()).toMatchObject({ status: 'True' });
    await one.pass(6);
    expect(one.condition()).toMatchObject({
      status: 'False',
      message: expect.stringContaining('node(s) had untolerated taint(s)'),
    });
    await one.pass(60);
    expect(one.history.filter((line) => line.startsWith('+'))).toEqual(['+a-1']);
  });
});

describe('the expectation of a new node', () => {
  const ssd = { spec: { nodeSelector: { disk: 'ssd' } } };

  it('excludes labels added later: a pod that selects them buys none, also after a restart', async () => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(1, '3500m');
    await one.pass(2);
    one.byHand('a-1', { labels: { disk: 'ssd' } });
    one.podsHave = ssd;
    one.deploy(2);
    await one.pass(5);
    one.restart();
    await one.pass(60);
    expect(one.history).toEqual(['+a-1']);
    expect(one.condition()).toMatchObject({
      status: 'False',
      message: expect.stringContaining("node(s) didn't match Pod's node affinity/selector"),
    });
  });

  it('contains what every node had when first Ready, also without nodes and after a restart', async () => {
    const one = new AutoscaledCluster(POOL);
    one.labels = { disk: 'ssd' };
    one.deploy(1, '3500m');
    await one.pass(2);
    one.deploy(0);
    await one.pass(15);
    expect(one.counts).toEqual({});
    one.restart();
    one.podsHave = ssd;
    one.deploy(2);
    await one.pass(2);
    expect(one.counts).toEqual({ a: 2 });
    expect(one.pending).toBe(0);
  });

  it('excludes later taints: a pool grows whose only node is under repair', async () => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(1, '1');
    await one.pass(2);
    one.byHand('a-1', { taints: [{ key: 'repair', effect: 'NoSchedule' }] });
    one.deploy(2);
    await one.pass(2);
    expect(one.counts).toEqual({ a: 2 });
    expect(one.pending).toBe(0);
  });

  it('excludes a taint that an agent removes once it runs', async () => {
    const one = new AutoscaledCluster(POOL);
    one.taint = 'agent-not-ready';
    one.deploy(1, '3');
    await one.pass(1);
    one.byHand('a-1', { taints: [] });
    await one.pass(1);
    expect(one.pending).toBe(0);
    one.taint = undefined;
    one.deploy(3);
    await one.pass(2);
    expect(one.counts).toEqual({ a: 3 });
    expect(one.pending).toBe(0);
  });
});

it('excludes startup taints, which keep no pod from a new node', async () => {
  const startupTaints = [{ key: 'agent-not-ready', effect: 'NoSchedule' }];
  const one = new AutoscaledCluster([{ ...POOL[0]!, startupTaints }]);
  one.taint = 'agent-not-ready';
  one.deploy(1, '3');
  await one.pass(2);
  expect(one.counts).toEqual({ a: 1 });
  expect(one.condition()).toMatchObject({ status: 'True' });
  one.deploy(2);
  await one.pass(1);
  expect(one.counts).toEqual({ a: 2 });
});

describe('a bought node that did not help', () => {
  /** Somebody taints each node but the first: one is bought in vain. */
  async function inVain(): Promise<AutoscaledCluster> {
    const one = new AutoscaledCluster(POOL);
    one.deploy(1, '3500m');
    await one.pass(2);
    one.taint = 'chaos';
    one.deploy(2);
    await one.pass(5);
    one.taint = undefined;
    return one;
  }

  it('stops purchases for these pods, with the reason, also after a restart', async () => {
    const one = await inVain();
    one.taint = 'chaos';
    one.restart();
    await one.pass(90);
    expect(one.history).toEqual(['+a-1', '+a-2', '-a-2']);
    expect(one.condition()).toMatchObject({
      status: 'False',
      reason: 'PodsWait',
      message: expect.stringMatching(/came, and did not take them.*pool a: node a-2: node\(s\) had untolerated taint/),
    });
  });

  it('permits purchases again once the pods change', async () => {
    const one = await inVain();
    one.pods.delete([...one.pods].find(([, { spec }]) => !spec.nodeName)![0]);
    one.podsHave = { metadata: { name: 'web-v2', labels: { app: 'web', version: '2' } } };
    await one.pass(2);
    expect(one.pending).toBe(0);
  });

  it('permits purchases again once the pool changes', async () => {
    const one = await inVain();
    const pools = [{ ...POOL[0]!, autoscale: 'Coppice' as const, labels: { team: 'shop' } }];
    one.cluster = { ...one.cluster, spec: { ...one.cluster.spec, pools } };
    await one.pass(2);
    expect(one.pending).toBe(0);
  });

  it('permits purchases again once such a pod runs there', async () => {
    const one = await inVain();
    one.byHand('a-2', { taints: [] });
    await one.step();
    expect(one.pending).toBe(0);
    one.deploy(4);
    await one.pass(2);
    expect(one.pending).toBe(0);
  });

  it('does not stop purchases for pods whose room others took', async () => {
    const one = new AutoscaledCluster(POOL);
    for (let replicas = 1; replicas <= 5; replicas++) {
      one.deploy(replicas, '3500m');
      await one.pass(1, 10);
    }
    await one.pass(2);
    expect(one.counts).toEqual({ a: 5 });
    expect(one.pending).toBe(0);
  });

  it('does not lead to unlimited purchases when each new node evicts its pods', async () => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(1, '1');
    for (let step = 0; step < 200; step++) {
      await one.step(5);
      for (const [key, { spec }] of one.pods) {
        if (!spec.nodeName) continue;
        one.byHand(spec.nodeName, { taints: [{ key: 'chaos', effect: 'NoExecute' }] });
        one.pods.delete(key);
      }
    }
    expect(one.history.filter((line) => line.startsWith('+')).length).toBeLessThanOrEqual(1);
    expect(one.condition()?.message).toContain('node(s) had untolerated taint(s)');
  });
});

describe('a purchase is judged', () => {
  const bought = (minutes: number) => ({
    pool: 'd',
    boughtFor: { web: new Date(NOW + minutes * MINUTE).toISOString() },
  });
  const judge = (memory: PoolMemory, spec: Node['spec'], createdAt = NOW + MINUTE, now = NOW + 2 * MINUTE) => {
    const view = {
      state: stateOf([node('n1', 'a', { spec })]),
      demands: [demand(1, '1', { likeness: 'web' })],
      nodes: [{ name: 'n1', pool: 'a', createdAt, pods: [] }],
      now,
    };
    return atOnce(judgePurchases(memory, 'a', 'd', view)).stops;
  };
  const repair: Node['spec'] = { taints: [{ key: 'repair', effect: 'NoSchedule' }] };

  it('by its own node that would not take the pods, not by a much later one', () => {
    expect(judge(bought(0), repair)?.web?.cameAt).toBe('2026-11-23T00:01:00Z');
    expect(judge(bought(0), repair, NOW + 60 * MINUTE, NOW + 61 * MINUTE)).toBeUndefined();
  });

  it.each<[string, Node['spec']]>([
    ['that somebody has cordoned', { unschedulable: true }],
    [
      'whose disk is full for a moment',
      { taints: [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }] },
    ],
  ])('not by a node %s', (_what, spec) => {
    expect(judge(bought(0), spec)).toBeUndefined();
  });

  it('anew once the newest node would take the pods', () => {
    const stopped = { ...bought(0), stops: { web: { why: 'tainted', cameAt: '2026-11-23T00:01:00Z' } } };
    expect(judge(stopped, {})?.web).toBeDefined();
    expect(judge(stopped, {}, NOW + MINUTE, NOW + 16 * MINUTE)).toBeUndefined();
    expect(judge(stopped, repair)?.web).toBeDefined();
  });
});

describe('a reclaimed node', () => {
  it.each<[{ spec?: object; status?: object }]>([
    [{ spec: { taints: [{ key: 'cloud.google.com/impending-node-termination', effect: 'NoSchedule' }] } }],
    [
      {
        status: {
          conditions: [
            { type: 'PreemptionScheduled', status: 'True' },
            { type: 'Ready', status: 'True' },
          ],
        },
      },
    ],
  ])('is emptied at once, and another one is bought: %j', async (said) => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(8, '1');
    await one.pass(2);
    expect(one.counts).toEqual({ a: 2 });
    const { spec, status, ...known } = one.nodes.get('a-1')!;
    one.nodes.set('a-1', { ...known, spec: { ...spec, ...said.spec }, status: { ...status, ...said.status } });
    await one.step();
    expect(one.nodes.get('a-1')?.spec.unschedulable).toBe(true);
    expect([...one.pods.values()].filter((pod) => pod.spec.nodeName === 'a-1')).toEqual([]);
    expect(one.counts).toEqual({ a: 3 });
    expect(one.events.join('\n')).toContain('Warning NodeInterrupted: the cloud takes node a-1 away');
    await one.pass(2);
    expect(one.pending).toBe(0);
    // Its machine ends.
    one.nodes.delete('a-1');
    await one.pass(30);
    expect(one.counts).toEqual({ a: 2 });
    expect(one.pending).toBe(0);
    expect(one.killed).toEqual([]);
  });
});

it('is replaced, also when it is the only one of its pool', async () => {
  const one = new AutoscaledCluster(POOL);
  one.deploy(2, '1');
  await one.pass(2);
  const { spec, ...known } = one.nodes.get('a-1')!;
  const taints = [{ key: 'aws-node-termination-handler/spot-itn', effect: 'NoSchedule' as const }];
  one.nodes.set('a-1', { ...known, spec: { ...spec, taints } });
  await one.pass(2);
  expect(one.counts).toEqual({ a: 2 });
  expect([...one.pods.values()].map((pod) => pod.spec.nodeName)).toEqual(['a-2', 'a-2']);
});

describe('slow machines', () => {
  it('of a shrinking pool end at the drained ones and no more', async () => {
    const one = new AutoscaledCluster([{ name: 'a', minimum: 0, maximum: 5 }]);
    one.deploy(9, '1');
    await one.pass(2);
    one.deploy(4);
    one.lag = 1000;
    await one.pass(20);
    expect(one.decided()).toEqual(new Map([['a', expect.objectContaining({ count: 1 })]]));
    await one.pass(60);
    expect(one.decided()).toEqual(new Map([['a', expect.objectContaining({ count: 1 })]]));
    one.lag = 1;
    await one.pass(2);
    expect(one.counts).toEqual({ a: 1 });
    expect(one.killed).toEqual([]);
  });

  it('do not change which node is removed: the drained one, although another is empty', async () => {
    const one = new AutoscaledCluster([{ name: 'a', minimum: 0, maximum: 5 }]);
    one.deploy(8, '1');
    await one.pass(1);
    one.broken = 1;
    one.deploy(12);
    await one.pass(3);
    expect(one.counts).toEqual({ a: 3 });
    one.deploy(4);
    await one.pass(14);
    // The one that does not come up is no room for anybody: who runs stays where it is.
    expect([...one.nodes.keys()]).toEqual(['a-1', 'a-3']);
    expect([...one.pods.values()].map(({ spec }) => spec.nodeName)).toEqual(Array.from({ length: 4 }, () => 'a-1'));
  });
});

it('are used again when uncordoned, before Kubernetes has removed the taint', () => {
  const taints = [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' as const }];
  const was = node('a-1', 'a', { spec: { unschedulable: true } });
  expect(asReady(was, NOW).spec.taints).toEqual(taints);
  expect(asReady({ ...was, spec: { taints } }, NOW).spec.taints).toEqual([]);
});

describe('a node that cannot be drained', () => {
  /** Two nodes of which a-2 is being emptied. */
  async function emptying(more: { pools?: object[] } = {}): Promise<AutoscaledCluster> {
    const one = new AutoscaledCluster(more.pools ?? POOL);
    one.deploy(5, '1');
    await one.pass(2);
    one.pods.delete([...one.pods].find(([, { spec }]) => spec.nodeName === 'a-1')![0]);
    one.deploy(4);
    while (!one.nodes.get('a-2')?.spec.unschedulable) await one.step(30);
    return one;
  }
  const allOf = (one: AutoscaledCluster) => [...one.pods.values()].map(({ metadata }) => metadata.name);

  it('takes pods again after 5 minutes, and is left alone for a while', async () => {
    const one = await emptying();
    for (const name of allOf(one)) one.held.add(name);
    await one.pass(1);
    expect(one.condition()).toMatchObject({
      reason: 'NodesLeave',
      message: expect.stringMatching(
        /node a-2 is being emptied: pod shop\/web-\d+ must not be disrupted now: PodDisruptionBudget shop\/of-web-\d+/,
      ),
    });
    await one.pass(5);
    expect(one.nodes.get('a-2')).toMatchObject({ spec: { unschedulable: false }, metadata: { annotations: {} } });
    expect(one.asked).toEqual([]);
    expect(one.events.at(-1)).toMatch(
      /Warning NodeStays: node a-2 could not be emptied and takes pods again: .* must not be disrupted now/,
    );
    const { length } = one.events;
    await one.pass(3);
    expect(one.events).toHaveLength(length);
    one.held.clear();
    await one.pass(20);
    expect(one.counts).toEqual({ a: 1 });
    expect(one.killed).toEqual([]);
  });

  it('stays when its pods are needed there again', async () => {
    const one = await emptying();
    for (const name of allOf(one)) one.held.add(name);
    one.deploy(7);
    await one.step();
    await one.step();
    expect(one.nodes.get('a-2')?.spec.unschedulable).toBe(false);
    expect(one.pending).toBe(0);
    expect(one.counts).toEqual({ a: 2 });
  });

  it('keeps all its pods, and is not cordoned, when one of them must stay, which is reported', async () => {
    const one = new AutoscaledCluster(POOL);
    one.deploy(6, '1');
    await one.pass(2);
    const on = (node: string) => [...one.pods].filter(([, { spec }]) => spec.nodeName === node);
    for (const [key] of on('a-1').slice(0, 2)) one.pods.delete(key);
    one.deploy(4);
    for (const node of ['a-1', 'a-2']) one.held.add(on(node)[0]![1].metadata.name);
    await one.pass(30);
    expect(one.asked).toEqual([]);
    expect(one.counts).toEqual({ a: 2 });
    for (const { spec } of one.nodes.values()) expect(spec.unschedulable ?? false).toBe(false);
    expect(one.condition()?.message).toMatch(
      /node a-2 is kept though there is room elsewhere: pod shop\/web-\d+ must not/,
    );
    one.held.clear();
    await one.pass(2);
    expect(one.counts).toEqual({ a: 1 });
  });

  it('is drained at the pace of disruption budgets, however long that takes', async () => {
    const one = await emptying();
    for (const name of allOf(one)) one.held.add(name);
    for (let minutes = 0; minutes < 12; minutes += 4) {
      await one.pass(4);
      const [next] = [...one.pods.values()].filter(({ spec }) => spec.nodeName === 'a-2');
      if (next) one.pods.delete(`${next.metadata.namespace}/${next.metadata.name}`);
    }
    await one.pass(2);
    expect(one.counts).toEqual({ a: 1 });
  });

  it('stays for a pod with two budgets, which is reported, while others continue', async () => {
    const one = new AutoscaledCluster([...POOL, { name: 'b', minimum: 0, maximum: 2 }]);
    one.objects.poddisruptionbudgets = ['by-app', 'by-team'].map((name) => ({
      metadata: { name, namespace: 'shop' },
      spec: { selector: { matchLabels: { app: 'web' } } },
      status: { disruptionsAllowed: 1 },
    }));
    one.deploy(5, '1');
    await one.pass(2);
    one.pods.delete([...one.pods].find(([, { spec }]) => spec.nodeName === 'a-1')![0]);
    one.deploy(4);
    await one.pass(30);
    expect(one.asked).toEqual([]);
    expect(one.condition()?.message).toContain('PodDisruptionBudgets shop/by-app and shop/by-team both select it');
    one.deploy(12);
    await one.pass(2);
    expect(one.pending).toBe(0);
  });

  it('blocks no other node, whatever an eviction returns', async () => {
    const one = await emptying({ pools: [...POOL, { name: 'b', minimum: 0, maximum: 2 }] });
    for (const name of allOf(one)) one.refused.add(name);
    one.podsHave = { spec: { nodeSelector: { 'multi-cluster.demo.io/pool': 'b' } } };
    one.deploy(6);
    await one.pass(2);
    expect(one.counts).toEqual({ a: 2, b: 1 });
    expect(one.condition()?.message).toContain('a webhook says no');
    await one.pass(5);
    expect(one.nodes.get('a-2')?.spec.unschedulable).toBe(false);
  });

  it('delays one run by hanging evictions, and the next run begins with other pods', async () => {
    const one = new AutoscaledCluster([...POOL, { name: 'b', minimum: 0, maximum: 2 }]);
    one.deploy(11, '500m');
    await one.pass(2);
    const on = (node: string) => [...one.pods.values()].filter(({ spec }) => spec.nodeName === node);
    for (const { metadata } of on('a-1').slice(0, 4)) one.pods.delete(`shop/${metadata.name}`);
    one.deploy(7);
    while (!one.nodes.get('a-2')?.spec.unschedulable) await one.step(30);
    const [first, second, ...others] = on('a-2');
    expect(others).toHaveLength(1);
    for (const { metadata } of [first!, second!]) one.hanging.add(metadata.name);
    one.podsHave = { spec: { nodeSelector: { 'multi-cluster.demo.io/pool': 'b' } } };
    one.deploy(8);
    const before = one.now;
    await one.step();
    expect(one.now - before).toBeLessThan(60_000);
    expect(one.counts).toEqual({ a: 2, b: 1 });
    await one.step();
    await one.step();
    for (const { metadata } of others) expect(one.asked).toContain(metadata.name);
  });

  it('does not keep its pool from growing when its update fails, which is reported', async () => {
    const one = await emptying();
    one.nodesRefuse = new KubeApiError('PATCH /nodes/a-2', 500, { message: 'failed calling webhook "dead"' });
    one.deploy(16);
    await one.pass(1);
    expect(one.counts).toEqual({ a: 4 });
    expect(one.condition()).toMatchObject({
      status: 'False',
      message: expect.stringMatching(/node a-2 cannot be changed: .*failed calling webhook "dead"/),
    });
    one.nodesRefuse = undefined;
    await one.pass(1);
    expect(one.pending).toBe(0);
    expect(one.condition()).toMatchObject({ status: 'True' });
  });
});

it('is uncordoned when Coppice no longer sizes its pool, and nothing stays stored', async () => {
  const one = new AutoscaledCluster(POOL);
  one.deploy(5, '1');
  await one.pass(2);
  one.pods.delete([...one.pods].find(([, { spec }]) => spec.nodeName === 'a-1')![0]);
  one.deploy(4);
  while (!one.nodes.get('a-2')?.spec.unschedulable) await one.step(30);
  for (const { metadata } of one.pods.values()) one.held.add(metadata.name);
  one.cluster = { ...one.cluster, spec: { ...one.cluster.spec, pools: [{ name: 'a', minimum: 2, maximum: 5 }] } };
  await one.step();
  expect(one.nodes.get('a-2')).toMatchObject({ spec: { unschedulable: false }, metadata: { annotations: {} } });
  expect(one.decided()).toEqual(new Map());
  expect(one.counts).toEqual({ a: 2 });
});

describe('an operator that is killed between any two of its writes', () => {
  it.each(Array.from({ length: 12 }, (_, index) => index))(
    'after write %i: buys nothing twice, takes no other node away',
    async (writes) => {
      const one = new AutoscaledCluster([{ ...POOL[0], scaleInAfter: '1m' }]);
      one.writesLeft = writes;
      one.deploy(9, '1');
      await one.pass(3);
      expect(one.counts).toEqual({ a: 3 });
      one.deploy(4);
      await one.pass(6);
      expect(one.counts).toEqual({ a: 1 });
      one.deploy(0);
      await one.pass(6);
      expect(one.counts).toEqual({});
      expect(one.killed).toEqual([]);
      expect(one.history.filter((line) => line.startsWith('+'))).toHaveLength(3);
    },
  );
});

describe('disruption budgets', () => {
  const pool = (...budgets: object[]) => [{ ...POOL[0], disruption: { budgets } }];

  it('limit simultaneous removals, including not-Ready nodes; the wait is reported once', async () => {
    const one = new AutoscaledCluster(pool({ nodes: 1 }));
    one.deploy(4, '4');
    await one.pass(2);
    one.lag = 1000;
    one.deploy(0);
    await one.pass(15);
    expect(one.counts).toEqual({ a: 4 });
    expect([...one.nodes.values()].filter(({ spec }) => spec.unschedulable)).toHaveLength(1);
    const says = 'pool a has 3 unneeded nodes: its disruption budget (nodes: 1) allows 1 node to be missing at once';
    expect(one.condition()).toMatchObject({ status: 'True', message: expect.stringContaining(says) });
    expect(one.events.filter((line) => line.startsWith('Normal NodesHeldBack'))).toEqual([
      `Normal NodesHeldBack: ${says}`,
    ]);
    one.lag = 1;
    await one.pass(5);
    expect(one.counts).toEqual({});
    expect(one.condition()).toMatchObject({ reason: 'Settled' });
  });

  it('count a not-Ready node, and permit another removal once it is back', async () => {
    const one = new AutoscaledCluster(pool({ nodes: '20%' }));
    one.deploy(3, '4');
    await one.pass(20);
    const { status, ...known } = one.nodes.get('a-3')!;
    const lost = { conditions: [{ type: 'Ready', status: 'False' }], allocatable: status!.allocatable! };
    one.nodes.set('a-3', { ...known, status: lost });
    one.deploy(1);
    await one.pass(20);
    expect(one.counts).toEqual({ a: 3 });
    expect(one.condition()).toMatchObject({ reason: 'NodesHeldBack' });
    one.nodes.set('a-3', { ...known, status: status! });
    await one.pass(20);
    expect(one.counts).toEqual({ a: 1 });
  });

  it('apply in their hours only; removals continue afterwards', async () => {
    const one = new AutoscaledCluster(pool({ nodes: 0, schedule: '0 0 * * *', duration: '2h' }));
    one.deploy(2, '4');
    await one.pass(5);
    one.deploy(0);
    await one.pass(100);
    expect(one.counts).toEqual({ a: 2 });
    expect(one.condition()).toMatchObject({
      reason: 'NodesHeldBack',
      message:
        'pool a has 2 unneeded nodes: its disruption budget (nodes: 0, until 2026-11-23T02:00:00Z) allows 0 nodes to be missing at once',
    });
    await one.pass(20);
    expect(one.counts).toEqual({});
  });
});

describe('pods with claims', () => {
  const testbed = async (volume: object) => {
    const one = new AutoscaledCluster(POOL);
    const data = boundClaim('data', volume, ['ReadWriteMany']);
    Object.assign(one.objects, { persistentvolumeclaims: [data.claim], persistentvolumes: [data.volume] });
    one.podsHave = claims('data');
    one.deploy(5, '1');
    await one.pass(2);
    expect(one.counts).toEqual({ a: 2 });
    one.deploy(2);
    // One is left on each node.
    const [first] = [...one.pods.values()].filter(({ spec }) => spec.nodeName === 'a-1');
    const [second] = [...one.pods.values()].filter(({ spec }) => spec.nodeName === 'a-2');
    for (const [key, held] of one.pods) if (held !== first && held !== second) one.pods.delete(key);
    await one.pass(20);
    return one;
  };

  it('move their volume to the remaining node', async () => {
    const one = await testbed({ nfs: { server: 'files', path: '/' } });
    expect(one.counts).toEqual({ a: 1 });
    expect(one.pending).toBe(0);
    expect(one.killed).toEqual([]);
  });

  it('keep the node whose disk has their data, which is reported', async () => {
    const one = await testbed({ hostPath: { path: '/data' } });
    expect(one.counts).toEqual({ a: 2 });
    expect(one.condition()).toMatchObject({
      status: 'True',
      message: expect.stringMatching(
        /node a-1 is kept though there is room elsewhere: pod shop\/web-\d+ has data on the disk of this node \(PersistentVolumeClaim data\)/,
      ),
    });
  });
});

describe('machines that are sold out', () => {
  const soldOut = (one: AutoscaledCluster, machineType: string) =>
    one.capacity.note('u1', {
      part: 'a',
      profile: 'cloud',
      region: 'here',
      machineType,
      zones: [],
      spot: false,
    });

  it('are not ordered until they are retried, which is reported', async () => {
    const one = new AutoscaledCluster(POOL);
    soldOut(one, 'medium');
    one.deploy(3, '4');
    await one.pass(2);
    expect(one.counts).toEqual({});
    expect(one.condition()).toMatchObject({
      reason: 'PodsWait',
      message: expect.stringContaining('pool a: all its machine types are sold out'),
    });
    await one.pass(3);
    expect(one.counts).toEqual({ a: 3 });
    expect(one.pending).toBe(0);
  });

  it('and reclaimed are bought again only where no other pool takes the pods', async () => {
    const taint = { key: 'aws-node-termination-handler/spot-itn', effect: 'NoSchedule' };
    const interrupt = (one: AutoscaledCluster) => {
      const { spec, ...known } = one.nodes.get('a-1')!;
      one.nodes.set('a-1', { ...known, spec: { ...spec, taints: [taint] } } as typeof known & { spec: typeof spec });
    };
    const types = [{ name: 'medium', cpu: 4, gpu: 0, memory: '8Gi' }];
    const spot = { ...POOL[0]!, spot: true };
    for (const [pools, counts] of [
      [[spot, { ...POOL[0]!, name: 'b' }], { a: 1, b: 1 }],
      [[spot], { a: 2 }],
    ] as const) {
      const one = new AutoscaledCluster([...pools], {}, profile(types));
      one.deploy(1, '4');
      await one.pass(2);
      expect(one.counts).toEqual({ a: 1 });
      interrupt(one);
      await one.pass(1);
      expect(one.counts).toEqual(counts);
      expect(one.capacity.known(one.cluster.metadata).depleted).toMatchObject([
        { machineType: 'medium', spot: true, interrupted: true },
      ]);
    }
  });

  it('are requested at the fallback place of the cluster', async () => {
    const { spec, ...known } = profile();
    const regions = [...spec.regions, { name: 'there', zones: [] }];
    const of = { ...known, spec: { ...spec, regions } };
    const one = new AutoscaledCluster(POOL, { fallback: [{ region: 'there' }] }, of);
    one.cluster = { ...one.cluster, status: { region: 'there' } };
    soldOut(one, 'medium');
    one.deploy(1, '4');
    await one.pass(2);
    expect(one.counts).toEqual({ a: 1 });
  });

  it("are replaced by another pool's, which keeps its own", async () => {
    const types = ['medium', 'large'].map((name) => ({ name, cpu: 4, gpu: 0, memory: '8Gi' }));
    const one = new AutoscaledCluster([POOL[0]!, { ...POOL[0], name: 'b', machineType: 'large' }], {}, profile(types));
    soldOut(one, 'medium');
    one.deploy(3, '4');
    await one.pass(10);
    expect(one.counts).toEqual({ b: 3 });
    expect(one.history).toHaveLength(3);
  });
});
