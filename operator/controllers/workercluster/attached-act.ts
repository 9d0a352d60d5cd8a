import { findCondition } from '../../api/conditions.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { HoldsOf } from '../../clusters/deletion-gate.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, WORKERCLUSTERS } from '../../kube/resources.ts';
import { ownerOf, tenantSteps } from '../../kube/tenant-steps.ts';
import type { AttachedController } from '../attached/controller.ts';
import { hold } from '../finalizer.ts';
import { writeStatus } from '../status-writer.ts';
import { type AttachedPlan, planAttached } from './attached.ts';

/** Dependencies for attached clusters. */
export interface AttachedClusterDependencies {
  readonly garden: KubeClient;
  readonly clusters: Informer<WorkerCluster>;
  /** Absent: this operator attaches no clusters. */
  readonly attached?: Pick<AttachedController, 'facts' | 'release'> | undefined;
  /** Holds of a cluster: see judgeDeletion. */
  readonly holds: HoldsOf;
  now(): Date;
  readonly recordEvent: RecordEvent;
}

/**
 * Observes, plans and acts for a WorkerCluster of mode Attached. @returns when to reconcile again; undefined: on a
 * change
 */
export async function reconcileAttached(
  deps: AttachedClusterDependencies,
  cluster: WorkerCluster,
  signal: AbortSignal,
): Promise<Date | undefined> {
  const key = keyOf(cluster);
  const { name, namespace = '', uid = '', deletionTimestamp } = cluster.metadata;
  const holds = deletionTimestamp ? deps.holds(namespace, name) : [];
  const view = { cluster, facts: deps.attached?.facts(key, uid), holds };
  const plan = tenantSteps.measure(ownerOf(cluster, 'status'), () => planAttached(view, deps.now()));
  if (plan.finalizer === 'add') await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, true, { signal });
  if (plan.release) {
    await deps.attached?.release(key, uid, signal);
    await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, false, { signal });
    return undefined;
  }
  await writeStatus(deps.garden, deps.clusters, cluster, plan.status, signal);
  tell(deps, cluster, plan);
  if (plan.expire)
    await deps.garden.delete(WORKERCLUSTERS, name, namespace, { ...(uid && { preconditions: { uid } }), signal });
  return plan.next;
}

/** Records Events when the cluster becomes usable or unusable. */
function tell(deps: AttachedClusterDependencies, cluster: WorkerCluster, { status }: AttachedPlan): void {
  const serves = findCondition(status.conditions, 'APIServerAvailable');
  const known = findCondition(cluster.status?.conditions, 'APIServerAvailable');
  if (!serves || (serves.status === known?.status && serves.reason === known.reason)) return;
  deps.recordEvent(cluster, serves.status === 'True' ? 'Normal' : 'Warning', serves.reason ?? '', serves.message ?? '');
}
