import { profileNamesOf } from '../../capacity/places.ts';
import { keyOf } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { clusterOfDecided } from '../decided-sizes.ts';
import { failuresOf } from '../failure.ts';
import { quotaChanged } from '../quota/news.ts';
import { concernsUsers, onlyStatusChanged } from '../status-writer.ts';
import { reconcileWorkerCluster, type WorkerClusterWorld } from './controller.ts';

/** Makes the controller of WorkerClusters, in all modes. */
export function wireWorkerClusters(
  core: Core,
  others: Pick<WorkerClusterWorld, 'managed' | 'granted' | 'holds'>,
): Part {
  const { capacity, clusters, shoots, profiles, quotas } = core;
  const queue = core.queues.clusters;
  const world: WorkerClusterWorld = { ...core, ...others };
  clusters.onChange(({ type, object }) => {
    queue.add(keyOf(object));
    if (type === 'deleted') capacity.forget(object.metadata.uid ?? '');
  });
  shoots.onChange(({ object }) => queue.add(keyOf(object)));
  quotas.onChange((event) => {
    if (!onlyStatusChanged(event)) quotaChanged(clusters, queue, event.object.metadata.namespace ?? '');
  });
  // Of a cluster that was deleted by force, too: its record goes.
  core.decidedSecrets.onChange(({ object }) => {
    const key = clusterOfDecided(object);
    if (key) queue.add(key);
  });
  profiles.onChange((event) => {
    if (!concernsUsers(event)) return;
    const { name } = event.object.metadata;
    for (const cluster of clusters.list()) if (profileNamesOf(cluster).includes(name)) queue.add(keyOf(cluster));
  });
  return {
    controllers: [
      {
        name: 'workercluster',
        queue,
        concurrency: 32,
        reconcile: (key, stop) => reconcileWorkerCluster(world, key, stop),
        failed: failuresOf(core, clusters),
      },
    ],
  };
}
