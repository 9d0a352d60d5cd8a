import { isDeepStrictEqual } from 'node:util';
import { findCondition } from '../../api/conditions.ts';
import type { Quota } from '../../api/quota.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resources.ts';
import type { ChangeEvent } from '../../kube/store.ts';
import type { WorkQueue } from '../../kube/workqueue.ts';
import { BY_NAMESPACE, isRefused } from './claimants.ts';

/** Many clusters are granted something in a burst: a quota's status follows at this pace. */
const STATUS_PACE_MS = 200;

/** Whether the change of a cluster can let another one pass, or changes what a quota shows as used. */
export function concernsOthers(event: ChangeEvent<WorkerCluster>): boolean {
  if (event.type !== 'updated') return event.type === 'deleted';
  const { old, object } = event;
  const accepted = (cluster: WorkerCluster) => findCondition(cluster.status?.conditions, 'SpecAccepted');
  return (
    old.metadata.generation !== object.metadata.generation ||
    old.metadata.deletionTimestamp !== object.metadata.deletionTimestamp ||
    accepted(old)?.reason !== accepted(object)?.reason ||
    !isDeepStrictEqual(old.status?.admitted, object.status?.admitted)
  );
}

export interface QuotaNews {
  readonly quotas: Informer<Quota>;
  readonly clusters: Informer<WorkerCluster>;
  readonly quotaQueue: WorkQueue;
  readonly clusterQueue: WorkQueue;
}

/** The shares of a namespace have changed: its quotas show it, and clusters that were refused are looked at again. */
export function sharesChanged({ quotas, clusters, quotaQueue, clusterQueue }: QuotaNews, namespace: string): void {
  const concerned = quotas.byIndex(BY_NAMESPACE, namespace);
  if (concerned.length === 0) return;
  for (const quota of concerned) quotaQueue.addAfter(keyOf(quota), STATUS_PACE_MS);
  wakeRefused(clusters, clusterQueue, namespace);
}

/** Clusters of the namespace that were refused are looked at again: by event, so nobody has to ask every few seconds. */
export function wakeRefused(clusters: Informer<WorkerCluster>, queue: WorkQueue, namespace: string): void {
  for (const cluster of clusters.byIndex(BY_NAMESPACE, namespace)) if (isRefused(cluster)) queue.add(keyOf(cluster));
}
