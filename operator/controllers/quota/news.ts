import { isDeepStrictEqual } from 'node:util';
import { findCondition } from '../../api/conditions.ts';
import type { Quota } from '../../api/quota.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resources.ts';
import type { ChangeEvent } from '../../kube/store.ts';
import type { WorkQueue } from '../../kube/workqueue.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { isRefused } from './claimants.ts';

/** Delay that groups changes of many clusters. */
const PACE_MS = 200;

/** Whether a cluster's change may let another one pass, or changes a quota's usage. */
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

/** Requeues a namespace's quotas after changed shares. */
export function sharesChanged(quotas: Informer<Quota>, queue: WorkQueue, namespace: string): void {
  for (const quota of quotas.byIndex(BY_NAMESPACE, namespace)) queue.addAfter(keyOf(quota), PACE_MS);
}

/** Requeues refused clusters after a changed or deleted quota. */
export function quotaChanged(clusters: Informer<WorkerCluster>, queue: WorkQueue, namespace: string): void {
  for (const cluster of clusters.byIndex(BY_NAMESPACE, namespace)) if (isRefused(cluster)) queue.add(keyOf(cluster));
}
