import type { WorkerCluster, WorkerClusterSpec } from '../api/workercluster.ts';
import { playedSpec } from './members.ts';
import { type ClusterState, dateOf, type World } from './state.ts';

/** The cluster is there from now on, and the operator hears of it. */
export function createCluster(world: World, cluster: ClusterState, spec: WorkerClusterSpec): void {
  const { manifest, key } = cluster;
  cluster.incarnation++;
  const metadata: WorkerCluster['metadata'] = {
    ...manifest.metadata,
    uid: `${key}/${cluster.incarnation}`,
    generation: 1,
    creationTimestamp: dateOf(world).toISOString(),
  };
  const { status: _, ...rest } = manifest;
  cluster.object = { ...rest, metadata, spec: world.work ? playedSpec({ ...rest, spec }, cluster.profile) : spec };
  cluster.specRefusal = undefined;
  cluster.orderedAt = world.now;
  world.toPlan.add(cluster);
}

/** Somebody deletes it. */
export function deleteCluster(world: World, cluster: ClusterState): void {
  const metadata = { ...cluster.object!.metadata, deletionTimestamp: dateOf(world).toISOString() };
  cluster.object = { ...cluster.object!, metadata };
  world.toPlan.add(cluster);
}
