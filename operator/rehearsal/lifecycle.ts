import type { WorkerCluster, WorkerClusterSpec } from '../api/workercluster.ts';
import { playedSpec } from './members.ts';
import { goTo, rewrite } from './places.ts';
import { dateOf, type RehearsedCluster, type Simulation } from './state.ts';

/** Creates the cluster and notifies the operator. */
export function createCluster(simulation: Simulation, cluster: RehearsedCluster, spec: WorkerClusterSpec): void {
  const { manifest, key } = cluster;
  cluster.incarnation++;
  const metadata: WorkerCluster['metadata'] = {
    ...manifest.metadata,
    uid: `${key}/${cluster.incarnation}`,
    generation: 1,
    creationTimestamp: dateOf(simulation).toISOString(),
  };
  const { status: _, ...rest } = manifest;
  cluster.spec = spec;
  cluster.object = { ...rest, metadata, spec };
  if (cluster.place > 0) goTo(simulation, cluster, 0);
  cluster.isMade = false;
  cluster.hasHadNode = false;
  cluster.specRefusal = undefined;
  cluster.orderedAt = simulation.now;
  rewrite(simulation, cluster, simulation.work ? playedSpec(cluster.object, cluster.profile) : spec);
}

/** Deletes the cluster, as a person would. */
export function deleteCluster(simulation: Simulation, cluster: RehearsedCluster): void {
  const metadata = { ...cluster.object!.metadata, deletionTimestamp: dateOf(simulation).toISOString() };
  cluster.object = { ...cluster.object!, metadata };
  simulation.toPlan.add(cluster);
}
