import type { WorkerCluster, WorkerClusterSpec } from '../api/workercluster.ts';
import { playedSpec } from './members.ts';
import { type ClusterState, dateOf, type Simulation } from './state.ts';

/** The cluster is there from now on, and the operator hears of it. */
export function createCluster(simulation: Simulation, cluster: ClusterState, spec: WorkerClusterSpec): void {
  const { manifest, key } = cluster;
  cluster.incarnation++;
  const metadata: WorkerCluster['metadata'] = {
    ...manifest.metadata,
    uid: `${key}/${cluster.incarnation}`,
    generation: 1,
    creationTimestamp: dateOf(simulation).toISOString(),
  };
  const { status: _, ...rest } = manifest;
  cluster.object = { ...rest, metadata, spec: simulation.work ? playedSpec({ ...rest, spec }, cluster.profile) : spec };
  cluster.specRefusal = undefined;
  cluster.orderedAt = simulation.now;
  simulation.toPlan.add(cluster);
}

/** Somebody deletes it. */
export function deleteCluster(simulation: Simulation, cluster: ClusterState): void {
  const metadata = { ...cluster.object!.metadata, deletionTimestamp: dateOf(simulation).toISOString() };
  cluster.object = { ...cluster.object!, metadata };
  simulation.toPlan.add(cluster);
}
