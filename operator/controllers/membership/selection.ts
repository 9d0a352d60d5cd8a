import { ANNOTATIONS } from '../../api/group.ts';
import { EVERY_NAMESPACE, type Hub, type HubSpec } from '../../api/hub.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { keyOf } from '../../kube/resources.ts';

const MOST_LEAVES = 1;

/** Whether the hub selects the cluster. Pure. */
function selects(spec: HubSpec, { metadata }: Pick<WorkerCluster, 'metadata'>): boolean {
  const allowed = spec.allowedNamespaces ?? [];
  if (!allowed.includes(EVERY_NAMESPACE) && !allowed.includes(metadata.namespace ?? '')) return false;
  return matchesLabels(metadata.labels ?? {}, spec.clusterSelector ?? {});
}

export interface Selection {
  /** Clusters to join. */
  readonly join: readonly WorkerCluster[];
  /** Memberships to end because nothing selects their cluster. */
  readonly leave: readonly Membership[];
  /** Memberships that would end but need approval. */
  readonly unapproved: readonly Membership[];
}

/**
 * Clusters that should join and leave a hub. Pure. A cluster that can never take work gets no Membership, which would
 * wait for ever and cost a write. A mistaken label or selector must not empty a fleet: above the hub's limit no leave
 * begins without approval. Clusters being deleted do not count.
 */
export function selectMembers(
  { metadata, spec }: Hub,
  clusters: readonly WorkerCluster[],
  memberships: readonly Membership[],
  neverTakesWork: (cluster: WorkerCluster) => boolean = () => false,
): Selection {
  const byKey = new Map(clusters.map((cluster) => [keyOf(cluster), cluster]));
  const clusterOf = (membership: Membership) =>
    byKey.get(`${membership.metadata.namespace}/${membership.spec.cluster}`);
  const present = new Set(memberships.map((one) => `${one.metadata.namespace}/${one.spec.cluster}`));
  const join = clusters.filter(
    (cluster) =>
      !metadata.deletionTimestamp &&
      !cluster.metadata.deletionTimestamp &&
      !present.has(keyOf(cluster)) &&
      selects(spec, cluster) &&
      !neverTakesWork(cluster),
  );
  const living = memberships.filter((one) => {
    const cluster = clusterOf(one);
    return cluster !== undefined && !cluster.metadata.deletionTimestamp;
  });
  const leaving = living.filter((one) => one.metadata.deletionTimestamp);
  const unselected = living.filter((one) => !one.metadata.deletionTimestamp && !selects(spec, clusterOf(one)!));
  const isApproved = (one: Membership) => one.metadata.annotations?.[ANNOTATIONS.approveLeave] === 'true';
  const others = unselected.filter((one) => !isApproved(one));
  const fits = leaving.length + unselected.length <= (spec.maxConcurrentLeaves ?? MOST_LEAVES);
  return { join, leave: fits ? unselected : unselected.filter(isApproved), unapproved: fits ? [] : others };
}
