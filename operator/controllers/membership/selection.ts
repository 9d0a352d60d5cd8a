import { ANNOTATIONS } from '../../api/group.ts';
import { EVERY_NAMESPACE, type Hub, type HubSpec } from '../../api/hub.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { keyOf } from '../../kube/resources.ts';

const MOST_LEAVES = 1;

/** Whether the hub is for this cluster. Pure. */
function selects(spec: HubSpec, { metadata }: Pick<WorkerCluster, 'metadata'>): boolean {
  const allowed = spec.allowedNamespaces ?? [];
  if (!allowed.includes(EVERY_NAMESPACE) && !allowed.includes(metadata.namespace ?? '')) return false;
  return matchesLabels(metadata.labels ?? {}, spec.clusterSelector ?? {});
}

export interface Selection {
  /** Clusters that join. */
  readonly join: readonly WorkerCluster[];
  /** Memberships that end because nothing selects their cluster any more. */
  readonly leave: readonly Membership[];
  /** Those that would end too, and wait for somebody to approve it. */
  readonly unapproved: readonly Membership[];
}

/**
 * Which clusters are to join a hub and which are to leave it. Pure. Of one that can never take work no Membership is made: it would wait for
 * good, and a thousand of them would be a thousand writes. A slip in a label or a selector must not empty a fleet: where more would
 * leave at once than the hub allows, none begins before it is approved. Clusters that are deleted are not counted.
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
