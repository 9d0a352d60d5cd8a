import { ANNOTATIONS } from '../api/group.ts';
import { MAX_NODES } from '../api/worker-pool.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { Demand } from '../burst/demand.ts';
import { ClusterState as FitState } from '../burst/fit/state.ts';
import type { NodeView, PoolView } from '../burst/nodes/model.ts';
import { planNodes } from '../burst/nodes/plan.ts';
import { whyNodeStays } from '../burst/nodes/stays.ts';
import { desiredSizes, isCoppices } from '../capacity/desired-sizes.ts';
import { disruptionsOf } from '../controllers/autoscaling/disruption.ts';
import { scaleInAfterMs } from '../controllers/autoscaling/observe.ts';
import { EMPTY } from '../controllers/empty-mark.ts';
import type { Node } from '../kube/resources.ts';
import { isLast, readyOf } from './growth.ts';
import { memberOf, offeredPools } from './members.ts';
import { type ClusterState, dateOf, type Simulation } from './state.ts';
import { mayGoTo } from './work-model.ts';

/** Why a pool has a size that nobody has changed. */
const NOTED = 'within its minimum and maximum';

/** Has the node planner look at all clusters whose work has changed, or whose time has come. @returns whether it decided anything */
export function sizeClusters(simulation: Simulation): boolean {
  let hasSized = false;
  for (const cluster of simulation.clusters.values()) {
    const { work } = simulation;
    if (!work || !cluster.object || cluster.object.metadata.deletionTimestamp || !cluster.serves) continue;
    if (cluster.sizedFor === work.version) continue;
    cluster.sizedFor = work.version;
    hasSized = sizeCluster(simulation, cluster) || hasSized;
  }
  return hasSized;
}

function sizeCluster(simulation: Simulation, cluster: ClusterState): boolean {
  const { object, profile, decided } = cluster;
  if (!object || !profile) return false;
  const sizes = desiredSizes({ cluster: object, profile, decided });
  const pools = sizes.filter(isCoppices);
  const others = sizes.filter((pool) => !isCoppices(pool)).reduce((sum, { count }) => sum + count, 0);
  if (pools.length === 0) return false;
  const now = simulation.epoch + simulation.now;
  const offers = offeredPools(object, profile);
  const budgets = budgetsOf(cluster, object, now);
  const views = pools.map((pool): PoolView => {
    const disruption = budgets.disruptions.get(pool.name);
    const offer = offers.find(({ name }) => name === pool.name);
    const at = decided.get(pool.name)?.at;
    const last = isLast(simulation, object, profile, pool) && { isLast: true as const };
    return {
      name: pool.name,
      count: pool.count,
      minimum: pool.minimum,
      maximum: pool.maximum,
      present: readyOf(cluster, pool),
      ...(at !== undefined && { decidedAt: Date.parse(at) }),
      ...(disruption && { disruption }),
      ...(offer
        ? { offer: { template: offer.template, price: Number(offer.price ?? 1n), ...last } }
        : { soldOut: 'the CloudProfile has no such machine type' }),
    };
  });
  const nodes = nodeViews(simulation, cluster, views);
  const { growth, shrinkage } = planNodes({
    state: stateOf(simulation, cluster),
    demands: demandsOf(simulation, cluster),
    pools: views,
    nodes,
    notReady: [],
    most: Math.min(MAX_NODES, profile.spec.limits?.maxNodesTotal ?? MAX_NODES) - others,
    refused: () => undefined,
    mayShrink: () => true,
    hasWork: nodes.some(({ pods }) => pods.length > 0),
    daemons: [],
    unneededSince: cluster.unneededSince,
    waitMs: (pool) => scaleInAfterMs(object.spec.pools?.find(({ name }) => name === pool)),
    mayTakeNodes: true,
    now,
  });
  noteUnneeded(cluster, shrinkage.unneeded, now);
  const at = dateOf(simulation).toISOString();
  // As the autoscaler of a garden does, which writes each size down before anything rests on it.
  for (const { name, count } of pools)
    if (count !== (decided.get(name)?.count ?? 0)) decided.set(name, { count, by: 'Coppice', why: NOTED, at });
  for (const { pool, count, why } of growth.sizes) decided.set(pool, { count, by: 'Coppice', why, at });
  for (const { node, why } of shrinkage.begin) empty(simulation, cluster, node, why, at);
  const next = Math.min(shrinkage.next ?? Number.POSITIVE_INFINITY, ...budgets.changesAt);
  if (Number.isFinite(next)) sizeAgain(simulation, cluster, next - simulation.epoch);
  const hasDecided = growth.sizes.length + shrinkage.begin.length > 0;
  if (hasDecided) simulation.toPlan.add(cluster);
  return hasDecided;
}

/** Disruption budgets of the pools. A node that was emptied leaves, until its machine is gone. */
function budgetsOf({ nodes, machines }: ClusterState, { spec }: WorkerCluster, now: number) {
  const ofPool = new Map<string, Node[]>();
  const leaving = new Map<string, string[]>();
  for (const [name, node] of nodes) {
    const { pool } = machines.get(name)!.machine;
    ofPool.set(pool, [...(ofPool.get(pool) ?? []), node]);
    if (node.metadata.annotations?.[ANNOTATIONS.emptiedSince]) leaving.set(pool, [...(leaving.get(pool) ?? []), name]);
  }
  return disruptionsOf(spec.pools ?? [], ofPool, { leaving, interrupted: new Set(), now });
}

function nodeViews({ work }: Simulation, cluster: ClusterState, pools: readonly PoolView[]): NodeView[] {
  return [...cluster.nodes].map(([name, node]) => {
    const { pool } = cluster.machines.get(name)!.machine;
    const pods = work!.podsOn(cluster.key, name);
    const stays = whyNodeStays(node, pods);
    const price = pools.find((one) => one.name === pool)?.offer?.price ?? 0;
    return { name, pool, price, pods, isEmptying: false, ...(stays !== undefined && { stays }) };
  });
}

function stateOf({ work }: Simulation, cluster: ClusterState): FitState {
  const state = new FitState();
  for (const name of cluster.nodes.keys()) {
    const there = work!.room.node(work!.nameOf(cluster.key, name));
    if (!there) continue;
    state.addNode({ ...there.node, name });
    for (const [pod, count] of there.pods) state.place(pod, name, count);
  }
  return state;
}

/** Pods that wait in this cluster: its own work; and all that a hub has no place for, where that is all that may grow. */
function demandsOf({ work, scenario, epoch }: Simulation, { key, object, profile }: ClusterState): Demand[] {
  const overflowing = scenario.overflow === key ? memberOf(object!, profile) : undefined;
  return [...work!.groups.values()].flatMap((group, index): Demand[] => {
    const isHubs = group.cluster === undefined && overflowing !== undefined && mayGoTo(group, overflowing);
    const isHere = group.cluster === key || isHubs;
    if (!isHere || group.waitingCount === 0) return [];
    return [
      {
        who: group.name,
        replica: group.pod,
        keys: Array.from({ length: group.waitingCount }, (_, replica) => `${index}/${replica}`),
        since: new Date(epoch + group.waiting[0]!.since).toISOString(),
        source: 'PendingPods',
        isSystem: false,
      },
    ];
  });
}

function noteUnneeded({ unneededSince }: ClusterState, unneeded: readonly string[], now: number): void {
  const still = new Set(unneeded);
  for (const name of unneededSince.keys()) if (!still.has(name)) unneededSince.delete(name);
  for (const name of unneeded) if (!unneededSince.has(name)) unneededSince.set(name, now);
}

/** Its pods move at once: there is room elsewhere, or it would not be emptied. */
function empty(simulation: Simulation, cluster: ClusterState, name: string, why: string, at: string): void {
  const node = cluster.nodes.get(name)!;
  const { pool } = cluster.machines.get(name)!.machine;
  const annotations = { ...node.metadata.annotations, [ANNOTATIONS.emptiedSince]: `${at}${EMPTY}` };
  cluster.nodes.set(name, { ...node, metadata: { ...node.metadata, annotations } });
  simulation.work!.removeNode(cluster.key, name, simulation.now);
  const count = cluster.wanted.find((one) => one.name === pool)?.count ?? 0;
  const known = cluster.decided.get(pool)?.count ?? count;
  cluster.decided.set(pool, { count: Math.max(0, known - 1), by: 'Coppice', why, at });
}

function sizeAgain(simulation: Simulation, cluster: ClusterState, at: number): void {
  if (cluster.sizeAgainAt !== undefined && cluster.sizeAgainAt > simulation.now && cluster.sizeAgainAt <= at) return;
  cluster.sizeAgainAt = at;
  simulation.events.add({
    at: Math.max(at, simulation.now + 1),
    isLive: () => cluster.sizeAgainAt === at && cluster.object !== undefined,
    run: () => {
      cluster.sizedFor = -1;
    },
  });
}
