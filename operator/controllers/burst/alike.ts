import { findCondition } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import type { BurstSightDependencies } from './dependencies.ts';

/** Within this time a new cluster's APIs are installed and known to its hub, or no longer expected. */
export const SETTLE_MS = 5 * 60_000;

/**
 * Names of members from the same candidate that the hub has known long enough.
 * @param membership of the cluster in this hub, if any
 * @returns undefined: the hub knows the cluster itself long enough
 */
export function alikeTo(
  deps: Pick<BurstSightDependencies, 'memberships' | 'clusters' | 'now'>,
  hub: Hub,
  cluster: WorkerCluster,
  membership: Membership | undefined,
): readonly string[] | undefined {
  const now = deps.now().getTime();
  if (membership && isSettled(membership, now)) return undefined;
  const { namespace, labels = {} } = cluster.metadata;
  if (!labels[LABELS.burstCandidate]) return [];
  return deps.memberships.byIndex(BY_HUB, hub.metadata.name).flatMap((other) => {
    const { metadata } = deps.clusters.get(clusterOf(other)) ?? {};
    const isAlike =
      metadata?.namespace === namespace &&
      [LABELS.burstPolicy, LABELS.burstCandidate].every((label) => metadata?.labels?.[label] === labels[label]);
    return isAlike && isSettled(other, now) ? (other.status?.memberName ?? []) : [];
  });
}

function isSettled({ status }: Membership, now: number): boolean {
  const seen = findCondition(status?.conditions, 'CapacityVisible')?.lastTransitionTime;
  return status?.state === 'Joined' && (seen === undefined || Date.parse(seen) + SETTLE_MS <= now);
}
