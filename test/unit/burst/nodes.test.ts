import { readFile } from 'node:fs/promises';
import { describe, expect, it, test } from 'vitest';
import type { DisruptionBudget } from '../../../operator/api/worker-pool.ts';
import { NOT_DEMAND } from '../../../operator/burst/demand.ts';
import { budgetLimitsOf } from '../../../operator/burst/nodes/budgets.ts';
import { PROVISION_MS, WAITS } from '../../../operator/burst/nodes/grow.ts';
import type { NodeView, PoolView } from '../../../operator/burst/nodes/model.ts';
import type { NodesView } from '../../../operator/burst/nodes/plan.ts';
import { whyNodeStays } from '../../../operator/burst/nodes/stays.ts';
import { daemonSetsOf, daemonsOf } from '../../../operator/controllers/autoscaling/nodes-seen.ts';
import type { Node, Pod } from '../../../operator/kube/resources.ts';
import { planGrowth, planNodes } from '../../kit/burst/plan-at-once.ts';
import { demand, MINUTE, NOW, node, nodesView, pod, poolView, stateOf } from '../../kit/burst.ts';

const grow = (more: Partial<NodesView>) => planGrowth({ ...nodesView(more), emptying: [] });
const sizes = (more: Partial<NodesView>) => grow(more).sizes.map(({ pool, count }) => `${pool} ${count}`);

describe('new nodes for pending pods', () => {
  it('are as many as the pods need, from zero', () => {
    expect(sizes({ demands: [demand(5, '2')], pools: [poolView('a')] })).toEqual(['a 3']);
  });

  it('come from the pool with the lowest cost for the pods', () => {
    const pools = [
      poolView('dear', { price: 5 }),
      poolView('cheap', { price: 1 }),
      poolView('large', { cpu: '64', price: 9 }),
    ];
    expect(sizes({ demands: [demand(2, '4')], pools })).toEqual(['cheap 2']);
    expect(sizes({ demands: [demand(16, '4')], pools })).toEqual(['large 1']);
  });

  it('come last from pools whose spot machines were reclaimed, and then from the cheapest', () => {
    const taken = (name: string, cpu: string, price: number): PoolView => {
      const { offer, ...view } = poolView(name, { cpu, price });
      return { ...view, offer: { ...offer!, isLast: true } };
    };
    const pools = [taken('small', '4', 50_000), taken('big', '64', 2_000_000)];
    expect(sizes({ demands: [demand(5, '1')], pools })).toEqual(['small 2']);
    expect(sizes({ demands: [demand(64, '1')], pools: [taken('free', '64', 0), ...pools] })).toEqual(['free 1']);
    const dear = poolView('dear', { price: 100_000_000 });
    expect(sizes({ demands: [demand(1, '4')], pools: [taken('free', '64', 0), dear] })).toEqual(['dear 1']);
  });

  it('are not bought where there is room', () => {
    const growth = grow({
      state: stateOf([node('n1')]),
      demands: [demand(2, '2')],
      pools: [poolView('a', { count: 1, present: 1 })],
    });
    expect(growth.sizes).toEqual([]);
    expect(growth.placed.size).toBe(2);
  });

  it('are not bought twice: ordered nodes count until they exist', () => {
    const ordered = poolView('a', { count: 3, present: 1, decidedAt: NOW - MINUTE });
    const view = { state: stateOf([node('n1')], [pod('4', 'n1')]), demands: [demand(2, '4')], pools: [ordered] };
    expect(grow(view)).toMatchObject({ sizes: [], waiting: [] });
    expect(
      grow({ ...view, state: stateOf([node('n1')], [pod('4', 'n1')]), demands: [demand(3, '4')] }).sizes,
    ).toMatchObject([{ pool: 'a', count: 4 }]);
  });

  it('come from another pool when ordered nodes are sold out or late, and that order ends', () => {
    const order = { count: 1, present: 0, decidedAt: NOW - MINUTE };
    const { offer: _, ...none } = poolView('a', { ...order, soldOut: 'all its machine types are sold out' });
    const late = poolView('a', { ...order, decidedAt: NOW - PROVISION_MS - 1 });
    for (const one of [none, late]) {
      expect(sizes({ demands: [demand(1, '4')], pools: [one, poolView('b', { price: 9 })] })).toEqual(['b 1', 'a 0']);
      const alone = grow({ demands: [demand(1, '4')], pools: [one] });
      expect(alone.sizes).toEqual([]);
      expect(alone.waiting).toMatchObject([{ reason: 'NoOffer', pods: 1 }]);
    }
  });

  it('that do not come are given up once no pod waits, but not below a floor', () => {
    const late = poolView('a', { count: 3, present: 1, decidedAt: NOW - PROVISION_MS - 1 });
    const view = { state: stateOf([node('n1')]), pools: [late] };
    expect(grow(view).sizes).toMatchObject([{ pool: 'a', count: 1, why: expect.stringContaining('nobody waits') }]);
    expect(sizes({ ...view, mayShrink: () => false })).toEqual([]);
    expect(sizes({ ...view, demands: [demand(1, '64')] })).toEqual([]);
  });

  it('stay within the maximum of pool and cluster, and the limit is reported', () => {
    const full = grow({ demands: [demand(3, '4')], pools: [poolView('a', { maximum: 2 })] });
    expect(full.sizes).toMatchObject([{ pool: 'a', count: 2 }]);
    expect(full.waiting).toMatchObject([
      { who: 'ReplicaSet shop/web', pods: 1, reason: 'AtMaximum', detail: 'pool a' },
    ]);
    expect(sizes({ demands: [demand(3, '4')], pools: [poolView('a')], most: 1 })).toEqual(['a 1']);
  });

  it('stay within the quota: what it refuses of one pool comes from another that it permits', () => {
    const refused = (sizes: ReadonlyMap<string, number>) => (sizes.get('gpu')! > 1 ? 'quota "q" allows 1' : undefined);
    const pools = [poolView('gpu', { price: 1 }), poolView('plain', { price: 2, maximum: 1 })];
    const growth = grow({ demands: [demand(3, '4')], pools, refused });
    expect(growth.sizes.map(({ pool, count }) => `${pool} ${count}`)).toEqual(['gpu 1', 'plain 1']);
    expect(growth.waiting).toMatchObject([{ pods: 1, reason: 'OverQuota', detail: 'quota "q" allows 1' }]);
  });

  it('are not bought for pods that fit no new node, with the reason', () => {
    const { sizes: bought, waiting } = grow({ demands: [demand(1, '64')], pools: [poolView('a')] });
    expect(bought).toEqual([]);
    expect(waiting).toMatchObject([{ reason: 'Incurable', detail: expect.stringContaining('Insufficient cpu') }]);
  });

  it('are not bought for system pods alone; with others their share is counted', () => {
    const dns = demand(2, '4', { isSystem: true, who: 'ReplicaSet kube-system/coredns' });
    const alone = grow({ demands: [dns], pools: [poolView('a')], hasWork: false });
    expect(alone).toMatchObject({ sizes: [], waiting: [{ reason: 'SystemOnly', pods: 2 }] });
    expect(sizes({ demands: [dns, demand(1, '4')], pools: [poolView('a')], hasWork: false })).toEqual(['a 3']);
    // A pod that no node takes is no reason to have nodes for what would serve it.
    expect(sizes({ demands: [dns, demand(1, '64')], pools: [poolView('a')], hasWork: false })).toEqual([]);
  });

  it('are not bought for system pods where a node for the work has room for them, whatever is cheapest', () => {
    const dns = demand(2, '100m', { isSystem: true });
    const system = { ...dns, replica: { ...dns.replica, priority: 2_000_000_000 } };
    const pools = [poolView('small', { cpu: '2', price: 1 }), poolView('big', { cpu: '16', price: 6 })];
    expect(sizes({ demands: [system, demand(1, '6')], pools, hasWork: false })).toEqual(['big 1']);
    // Room that is there they get before the work, as the scheduler has it.
    const there = {
      state: stateOf([node('n1')], [pod('3900m', 'n1')]),
      pools: [poolView('a', { count: 1, present: 1 })],
    };
    const growth = grow({ ...there, demands: [{ ...system, keys: ['dns'] }, demand(1, '100m', { keys: ['web'] })] });
    expect(growth.placed.get('dns')).toBe('n1');
  });

  it('come from a pool with room beside DaemonSets whose pods do not exist yet; a too large DaemonSet takes none', () => {
    const daemons = (cpu: string) => daemonSetsOf([], [daemonSet(cpu)]).map(({ pod: one }) => one);
    const pools = [poolView('small', { cpu: '2', price: 1 }), poolView('big', { cpu: '8', price: 4 })];
    expect(sizes({ demands: [demand(1, '1')], pools, daemons: daemons('1500m') })).toEqual(['big 1']);
    expect(sizes({ demands: [demand(1, '1')], pools: [pools[0]!], daemons: daemons('3') })).toEqual(['small 1']);
  });

  it('have GPUs only for pods that request GPUs or fit no other pool, with the reason', () => {
    const gpu = poolView('gpu', { cpu: '16', price: 10 });
    const allocatable = { ...gpu.offer!.template.allocatable, others: new Map([['nvidia.com/gpu', 1]]) };
    const dear = { ...gpu, offer: { ...gpu.offer!, template: { ...gpu.offer!.template, allocatable } } };
    const own = poolView('own', { cpu: '16', maximum: 1 });
    const growth = grow({ demands: [demand(2, '15')], pools: [own, dear] });
    expect(growth.sizes).toMatchObject([{ pool: 'own', count: 1 }]);
    expect(growth.waiting).toMatchObject([
      {
        pods: 1,
        reason: 'AtMaximum',
        detail: expect.stringMatching(/^pool own; .*have GPUs.*: pool gpu, not pool own$/),
      },
    ]);
    const asks = demand(1, '15');
    const requests = { ...asks.replica.requests, others: new Map([['nvidia.com/gpu', 1]]) };
    const asking = { ...asks, replica: { ...asks.replica, requests } };
    expect(sizes({ demands: [asking], pools: [own, dear] })).toEqual(['gpu 1']);
    expect(grow({ demands: [demand(1, '15')], pools: [poolView('small'), dear] }).sizes).toMatchObject([
      { pool: 'gpu', count: 1, why: expect.stringContaining('which have GPUs that nobody asks for') },
    ]);
    const proven = { ...own, noHelp: new Map([['web', 'it came and did not take them']]) };
    expect(sizes({ demands: [demand(1, '15', { likeness: 'web' })], pools: [proven, dear] })).toEqual(['gpu 1']);
    const { offer: _, ...none } = poolView('own', { soldOut: 'sold out' });
    expect(grow({ demands: [demand(1, '15')], pools: [none, dear] }).waiting).toMatchObject([{ reason: 'NoOffer' }]);
  });

  it('are ordered with the pods, their waiting time and their number', () => {
    expect(grow({ demands: [demand(5, '2')], pools: [poolView('a')] }).sizes[0]!.why).toBe(
      '5 pods waited for 3 nodes, first of ReplicaSet shop/web since 2026-11-22T23:59:50Z',
    );
  });

  it('are not bought while a node that is being emptied can take the pods', () => {
    const cordoned = node('n1', 'a', { spec: { unschedulable: true } });
    const growth = planGrowth({
      ...nodesView({
        state: stateOf([cordoned]),
        demands: [demand(1, '4')],
        pools: [poolView('a', { count: 1, present: 1 })],
      }),
      emptying: ['n1'],
    });
    expect(growth).toMatchObject({ sizes: [], keep: ['n1'] });
  });
});

const daemonSet = (cpu: string) => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'agent', namespace: 'kube-system', uid: 'ds' },
  spec: {
    template: {
      spec: {
        containers: [{ name: 'c', resources: { requests: { cpu } } }],
      },
    },
  },
});

it('reserve the share of DaemonSet pods that their controller has pinned to other nodes', () => {
  const terms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }];
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const live = pod('3', 'n1', {
    metadata: {
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'ds', controller: true }],
    },
    spec: { affinity: { nodeAffinity } },
  });
  const daemons = daemonsOf([live]);
  expect(sizes({ demands: [demand(2, '1')], pools: [poolView('a')], daemons })).toEqual(['a 2']);
});

/** A cluster of nodes of one pool, with what runs there. */
function cluster(names: string[], pods: Pod[], more: Partial<NodesView> = {}, pool: Partial<PoolView> = {}): NodesView {
  const nodes: Node[] = names.map((name) => node(name));
  return nodesView({
    state: stateOf(nodes, pods),
    pools: [poolView('a', { count: names.length, present: names.length, ...pool })],
    nodes: names.map(
      (name): NodeView => ({
        name,
        pool: 'a',
        price: 1,
        pods: pods.filter(({ spec }) => spec.nodeName === name),
        isEmptying: false,
      }),
    ),
    unneededSince: new Map(names.map((name) => [name, NOW - 10 * MINUTE])),
    ...more,
  });
}
const shrink = (view: NodesView) => planNodes(view).shrinkage;
const begun = (view: NodesView) => shrink(view).begin.map((one) => one.node);

it('are explained in docs/concepts/sizes.md, which names why pods buy nothing', async () => {
  const page = await readFile(new URL('../../../docs/concepts/sizes.md', import.meta.url), 'utf8');
  for (const list of [NOT_DEMAND, WAITS])
    expect(page).toContain(
      Object.entries(list)
        .map(([reason, words]) => `| ${reason} | ${words} |`)
        .join('\n'),
    );
});

describe('removed nodes', () => {
  it('are all empty ones at once', () => {
    expect(begun(cluster(['n1', 'n2', 'n3'], [pod('1', 'n2')]))).toEqual(['n1', 'n3']);
  });

  it('include one node whose pods have room elsewhere, the one with fewest pods, and no second beside it', () => {
    const pods = [pod('1', 'n1'), pod('1', 'n1'), pod('1', 'n2'), pod('1', 'n3'), pod('1', 'n3')];
    const view = cluster(['n1', 'n2', 'n3'], pods);
    expect(shrink(view)).toMatchObject({ begin: [{ node: 'n2', why: 'its 1 pod have room elsewhere' }] });
    const draining = { ...view, nodes: view.nodes.map((one) => ({ ...one, isEmptying: one.name === 'n2' })) };
    expect(begun(draining)).toEqual([]);
  });

  it('are rather nodes with serving pods of the system than nodes with workloads', () => {
    const dns = { metadata: { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } } };
    const pods = [pod('1', 'n1'), pod('1', 'n2', dns), pod('1', 'n2', dns)];
    expect(begun(cluster(['n1', 'n2'], pods))).toEqual(['n2']);
  });

  it('exclude nodes whose pods have no room elsewhere; a node being emptied stays then', () => {
    const view = cluster(['n1', 'n2'], [pod('3', 'n1'), pod('3', 'n2')]);
    expect(shrink(view)).toEqual({ unneeded: [], begin: [], keep: [], held: [], pinned: [] });
    const draining = { ...view, nodes: view.nodes.map((one) => ({ ...one, isEmptying: one.name === 'n2' })) };
    expect(shrink(draining).keep).toEqual([{ node: 'n2', why: 'its pods have no room elsewhere' }]);
  });

  it('are removed only after their waiting time, and the time is reported', () => {
    const view = cluster(['n1'], [], { unneededSince: new Map([['n1', NOW - MINUTE]]) });
    expect(shrink(view)).toEqual({
      unneeded: ['n1'],
      begin: [],
      keep: [],
      held: [],
      pinned: [],
      next: NOW + 9 * MINUTE,
    });
    expect(shrink({ ...view, unneededSince: new Map() }).next).toBe(NOW + 10 * MINUTE);
  });

  it('leave the minimum and any floor', () => {
    expect(begun(cluster(['n1', 'n2', 'n3'], [], {}, { minimum: 2 }))).toEqual(['n1']);
    const mayShrink = (sizes: ReadonlyMap<string, number>) => sizes.get('a')! >= 2;
    expect(begun(cluster(['n1', 'n2', 'n3'], [], { mayShrink }))).toEqual(['n1']);
  });

  it('exclude nodes on which pending pods have room', () => {
    expect(begun(cluster(['n1'], [], { demands: [demand(1, '4')] }))).toEqual([]);
  });

  it('are only empty ones while pods or ordered nodes are pending', () => {
    const view = cluster(['n1', 'n2', 'n3'], [pod('4', 'n1'), pod('1', 'n2')], { demands: [demand(1, '1')] });
    expect(begun(view)).toEqual(['n3']);
  });

  it('include the last node: system pods alone keep no node', () => {
    const dns = pod('1', 'n1', { metadata: { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } } });
    expect(begun(cluster(['n1'], [dns], { hasWork: false }))).toEqual(['n1']);
    expect(begun(cluster(['n1'], [dns], { hasWork: true }))).toEqual([]);
  });

  it('are none where named nodes cannot be removed', () => {
    expect(shrink(cluster(['n1'], [], { mayTakeNodes: false }))).toEqual({
      unneeded: [],
      begin: [],
      keep: [],
      held: [],
      pinned: [],
    });
  });

  describe('the number of nodes that disruption budgets of a pool permit to be missing', () => {
    const of = (budgets: DisruptionBudget[], missing = 0, now = NOW) => ({
      disruption: { limits: budgetLimitsOf(budgets, 4, now).limits, missing },
    });
    const names = ['n1', 'n2', 'n3', 'n4'];

    it('limits empty nodes too, and the limiting budget is reported', () => {
      const view = cluster(names, [], {}, of([{ nodes: 3 }, { nodes: '26%' }]));
      expect(shrink(view)).toMatchObject({
        unneeded: names,
        begin: [{ node: 'n1' }, { node: 'n2' }],
        held: [{ pool: 'a', nodes: ['n3', 'n4'], limit: { nodes: 2, words: 'its disruption budget (nodes: 26%)' } }],
      });
    });

    it('is reduced by nodes that are missing or being emptied already', () => {
      expect(begun(cluster(names, [], {}, of([{ nodes: 2 }], 1)))).toEqual(['n1']);
      const view = cluster(names, [], {}, of([{ nodes: 2 }]));
      expect(begun({ ...view, nodes: view.nodes.map((one) => ({ ...one, isEmptying: one.name === 'n4' })) })).toEqual([
        'n1',
      ]);
    });

    it('depends on the reason of the removal', () => {
      const view = cluster(names, [pod('1', 'n1'), pod('1', 'n2')], {}, of([{ nodes: 0, reasons: ['Underutilized'] }]));
      expect(begun(view)).toEqual(['n3', 'n4']);
      const pods = names.map((name) => pod('1', name));
      const held = cluster(names, pods, {}, of([{ nodes: 0, reasons: ['Underutilized'] }]));
      expect(shrink(held)).toMatchObject({ begin: [], held: [{ nodes: ['n1'] }] });
      expect(begun(cluster(names, pods, {}, of([{ nodes: 0, reasons: ['Empty'] }])))).toEqual(['n1']);
    });

    it('keeps a node that is being emptied when a budget becomes tighter, unless its pods have left', () => {
      const pods = [pod('1', 'n1'), pod('1', 'n2')];
      const view = cluster(names, pods, {}, of([{ nodes: 0, schedule: '0 0 * * *', duration: '1h' }]));
      const emptying = { ...view, nodes: view.nodes.map((one) => ({ ...one, isEmptying: /n[23]/.test(one.name) })) };
      expect(shrink(emptying).keep).toEqual([
        {
          node: 'n2',
          why: 'its disruption budget (nodes: 0, until 2026-11-23T01:00:00Z) of pool a allows 0 nodes to be missing at once',
        },
      ]);
    });
  });

  const marks: [string, string | undefined, object, object][] = [
    ['nothing', undefined, {}, {}],
    [
      'Karpenter’s mark on the pod',
      'karpenter.sh/do-not-disrupt',
      { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } },
      {},
    ],
    [
      'the same for a time',
      'karpenter.sh/do-not-disrupt',
      { annotations: { 'karpenter.sh/do-not-disrupt': '4h' } },
      {},
    ],
    ['the same taken back', undefined, { annotations: { 'karpenter.sh/do-not-disrupt': 'false' } }, {}],
    [
      'Cluster Autoscaler’s mark on the pod',
      'safe-to-evict: "false"',
      { annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' } },
      {},
    ],
    ['a pod that nobody makes again', 'has no controller', { ownerReferences: [] }, {}],
    [
      'the same that may go all the same',
      undefined,
      { ownerReferences: [], annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true' } },
      {},
    ],
    [
      'a Job',
      'of a Job',
      { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j', controller: true }] },
      {},
    ],
    [
      'a mark on the node',
      'scale-down-disabled',
      {},
      { annotations: { 'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'true' } },
    ],
    ['Karpenter’s mark on the node', 'do-not-disrupt', {}, { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }],
  ];
  test.each(marks)('decides whether a node stays: %s', (_what, says, ofPod, ofNode) => {
    const why = whyNodeStays(node('n1', 'a', { metadata: { name: 'n1', ...ofNode } }), [
      pod('1', 'n1', { metadata: ofPod }),
    ]);
    if (says === undefined) expect(why).toBeUndefined();
    else expect(why).toContain(says);
  });
});

describe('a decision with a question limit', () => {
  /** Pods of which each differs from the others, and that only a new node takes. */
  const different = (count: number) =>
    Array.from({ length: count }, (_, index) => demand(1, `${3000 - index}m`, { keys: [`u${index}`] }));
  const full = Array.from({ length: 20 }, (_, index) => `n${String(index).padStart(2, '0')}`);
  const bounded = (left: number, pods: Pod[]) => {
    const state = stateOf(
      full.map((name) => node(name)),
      pods,
      { work: { left } },
    );
    return { ...cluster(full, pods), state };
  };
  const pods = full.map((name) => pod('2', name));

  it.each([400, 1_000, 2_000, 4_000, 8_000])('buys something in each run, with limit %i', (left) => {
    const view = bounded(left, pods);
    const more = { demands: different(300), pools: [poolView('a', { count: 20, present: 20, maximum: 1000 })] };
    const { sizes: bought } = planNodes({ ...view, ...more }).growth;
    expect(bought).toHaveLength(1);
    expect(bought[0]!.count).toBeGreaterThan(20);
    const isNew = planNodes({ ...bounded(left, pods), ...more, hasWork: false }).growth;
    expect(isNew.sizes[0]?.count).toBeGreaterThan(20);
  });

  it('opens no unused node, however few questions are left', () => {
    for (let left = 1; left < 200; left++) {
      const state = stateOf([], [], { work: { left } });
      for (const one of grow({ state, demands: different(50), pools: [poolView('a')] }).sizes)
        expect(one.count).toBeGreaterThan(0);
    }
  });

  it('removes unused nodes although unfitting pods use up the questions for growth', () => {
    const light = full.map((name) => pod('1', name));
    const impossible = Array.from({ length: 300 }, (_, index) => demand(1, `${900_000 - index}m`));
    const view = bounded(8_000, light);
    expect(begun({ ...view, demands: impossible })).toHaveLength(1);
  });
});

describe('an active disruption budget', () => {
  const HOUR = 60 * MINUTE;
  /** NOW is a Monday, midnight in UTC. */
  const workdays = { nodes: 0, schedule: '0 8 * * 1-5', duration: '10h' };
  const at = (now: number, budget: DisruptionBudget = workdays, total = 10) => {
    const { limits, changesAt } = budgetLimitsOf([budget], total, now);
    return { nodes: limits[0]?.nodes, changes: changesAt.map((time) => (time - NOW) / HOUR) };
  };

  it('applies in its hours, and the next change is reported', () => {
    expect(at(NOW)).toEqual({ nodes: undefined, changes: [8] });
    expect(at(NOW + 8 * HOUR)).toEqual({ nodes: 0, changes: [18] });
    expect(at(NOW + 18 * HOUR - 1)).toEqual({ nodes: 0, changes: [18] });
    expect(at(NOW + 18 * HOUR)).toEqual({ nodes: undefined, changes: [32] });
  });

  it('applies always without a schedule or with an unreadable one, and never with an impossible date', () => {
    expect(at(NOW, { nodes: 3 })).toEqual({ nodes: 3, changes: [] });
    expect(at(NOW, { ...workdays, schedule: '0 0 30 2 *' })).toEqual({ nodes: undefined, changes: [] });
    expect(at(NOW, { ...workdays, schedule: '0 8 * * 5-1' })).toEqual({ nodes: 0, changes: [] });
  });

  it('rounds a percentage up', () => {
    expect(['10%', '0%', '100%', '7'].map((nodes) => at(NOW, { nodes }, 11).nodes)).toEqual([2, 0, 11, 7]);
  });
});
