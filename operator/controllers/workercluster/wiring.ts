import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { profileNamesOf } from '../../capacity/places.ts';
import { keyOf } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { clusterOfDecided } from '../decided-sizes.ts';
import { failuresOf } from '../failure.ts';
import { quotaChanged } from '../quota/news.ts';
import { othersOfSameID } from '../same-technical-id.ts';
import { concernsUsers, onlyStatusChanged } from '../status-writer.ts';
import { reconcileWorkerCluster, type WorkerClusterDependencies } from './controller.ts';
import { fleetMetrics } from './fleet-metrics.ts';

/** Creates the controller of WorkerClusters, for all modes. */
export function wireWorkerClusters(
  core: Core,
  others: Pick<WorkerClusterDependencies, 'managed' | 'attached' | 'granted' | 'holds' | 'keepsAwake' | 'autoscaler'>,
): Part {
  const { capacity, clusters, shoots, profiles, quotas } = core;
  const queue = core.queues.clusters;
  const deps: WorkerClusterDependencies = { ...core, ...others };
  /** Requeues clusters that were refused as duplicates of this technical id. */
  const letGo = (gone: WorkerCluster | Shoot) => {
    for (const other of othersOfSameID(gone, clusters, shoots).clusters) queue.add(keyOf(other));
  };
  clusters.onChange(({ type, object }) => {
    queue.add(keyOf(object));
    if (type !== 'deleted') return;
    capacity.forget(object.metadata.uid ?? '');
    letGo(object);
  });
  shoots.onChange(({ type, object }) => {
    queue.add(keyOf(object));
    if (type === 'deleted') letGo(object);
  });
  quotas.onChange((event) => {
    if (!onlyStatusChanged(event)) quotaChanged(clusters, queue, event.object.metadata.namespace ?? '');
  });
  // Also after a forced deletion, so that the receipt is removed.
  core.decidedSecrets.onChange(({ object }) => {
    const key = clusterOfDecided(object);
    if (key) queue.add(key);
  });
  profiles.onChange((event) => {
    if (!concernsUsers(event)) return;
    const { name } = event.object.metadata;
    for (const cluster of clusters.list()) if (profileNamesOf(cluster).includes(name)) queue.add(keyOf(cluster));
  });
  const endMetrics = fleetMetrics(core.metrics, core);
  return {
    controllers: [
      {
        name: 'workercluster',
        queue,
        concurrency: 32,
        reconcile: (key, stop) => reconcileWorkerCluster(deps, key, stop),
        failed: failuresOf(core, clusters),
      },
    ],
    close: async () => endMetrics(),
  };
}
