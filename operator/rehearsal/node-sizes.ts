import type { WorkerCluster } from '../api/workercluster.ts';
import { lookAtNodes } from '../controllers/autoscaling/look.ts';
import { isOpenToDecisions } from '../controllers/autoscaling/observe.ts';
import { simulatedNodes } from './nodes-world.ts';
import type { ClusterState, Simulation } from './state.ts';

/** Nothing refuses an eviction here. */
const PATIENCE_MS = Number.POSITIVE_INFINITY;

const NEVER = new AbortController().signal;

/** Has the autoscaler look at all clusters whose nodes or work have changed, or whose time has come. @returns whether it did anything */
export async function sizeClusters(simulation: Simulation): Promise<boolean> {
  const { work, scenario } = simulation;
  let hasDone = false;
  for (const cluster of simulation.clusters.values()) {
    if (!work || !mayBeSized(cluster)) continue;
    const version = work.versionOf(cluster.key) + (cluster.key === scenario.overflow ? work.versionOf() : 0);
    if (cluster.sizedFor === version) continue;
    cluster.sizedFor = version;
    hasDone = (await sizeCluster(simulation, cluster, cluster.object)) || hasDone;
  }
  return hasDone;
}

const mayBeSized = (cluster: ClusterState): cluster is ClusterState & { object: WorkerCluster } =>
  cluster.object !== undefined && cluster.profile !== undefined && cluster.serves && isOpenToDecisions(cluster.object);

async function sizeCluster(simulation: Simulation, cluster: ClusterState, object: WorkerCluster): Promise<boolean> {
  const acts = { count: 0 };
  const simulated = simulatedNodes(simulation, cluster, object, acts);
  const world = simulation.nodesOf ? await simulation.nodesOf(simulated, simulation, cluster) : simulated;
  const { next } = await lookAtNodes(world, cluster.autoscaler, PATIENCE_MS, NEVER);
  sizeAgain(simulation, cluster, next === undefined ? undefined : next - simulation.epoch);
  return acts.count > 0;
}

/** Each look says anew when the next is due. @param at on the virtual clock, milliseconds */
function sizeAgain(simulation: Simulation, cluster: ClusterState, at: number | undefined): void {
  const due = at === undefined ? undefined : Math.max(at, simulation.now + 1);
  if (cluster.sizeAgainAt === due) return;
  cluster.sizeAgainAt = due;
  if (due === undefined) return;
  simulation.events.add({
    at: due,
    isLive: () => cluster.sizeAgainAt === due && cluster.object !== undefined,
    run: () => {
      cluster.sizeAgainAt = undefined;
      cluster.sizedFor = -1;
    },
  });
}
