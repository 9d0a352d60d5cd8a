import { findCondition } from '../../api/conditions.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { profileNameOf } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import type { HubType, Member } from '../../hubs/contract.ts';
import { BY_HUB, type MembershipDependencies } from './dependencies.ts';
import { clusterOf } from './holds.ts';
import type { LeaveView } from './judge.ts';
import { isAsleep, isEmptied, isSilent } from './member.ts';
import type { MembershipReceipt } from './receipt.ts';
import { whyNoRoom } from './room.ts';

/** The membership whose work is requested. */
interface Emptied {
  readonly membership: Membership;
  readonly spec: HubSpec;
  readonly type: HubType;
  readonly receipt: MembershipReceipt;
  readonly open: OpenCluster | undefined;
}

/** A hub's placements on a cluster to empty, and whether they can move. Room is checked before a drain begins. */
export function placedOn(
  deps: MembershipDependencies,
  { membership, spec, type, receipt, open }: Emptied,
  member: Member,
  seen: unknown,
): Pick<LeaveView, 'placements' | 'effect' | 'noRoom'> {
  const placements = receipt.opened ? type.placements?.(member, seen) : [];
  const effect = type.drains(spec, seen);
  const isDraining = findCondition(membership.status?.conditions, 'Drained') !== undefined;
  const isToMove = effect === 'Moves' && placements !== undefined && placements.length > 0 && !isDraining;
  const noRoom = isToMove
    ? whyNoRoomElsewhere(deps, { name: receipt.hub.name, spec }, clusterOf(membership), open)
    : undefined;
  return { placements, effect, noRoom };
}

/**
 * Why other members lack room for a cluster's work, a sentence; undefined: they have it.
 * @param clusterKey `namespace/name`. @param open absent: it does not answer, so its work is unknown
 */
function whyNoRoomElsewhere(
  deps: MembershipDependencies,
  hub: { readonly name: string; readonly spec: HubSpec },
  clusterKey: string,
  open: OpenCluster | undefined,
): string | undefined {
  if (!open) return undefined;
  const others = deps.memberships.byIndex(BY_HUB, hub.name).flatMap((one) => {
    const cluster = deps.clusters.get(clusterOf(one));
    const takesWork = one.status?.state === 'Joined' && !one.metadata.deletionTimestamp && cluster !== undefined;
    if (!takesWork || clusterOf(one) === clusterKey) return [];
    if (isAsleep(cluster) || isEmptied(cluster) || isSilent(cluster)) return [];
    return [{ cluster, profile: deps.profiles.get(profileNameOf(cluster)) }];
  });
  return whyNoRoom(hub, open.pods.list(), others);
}
