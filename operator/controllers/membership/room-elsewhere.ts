import { profileNameOf } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { clusterOf } from './holds.ts';
import { isAsleep, isSilent } from './member.ts';
import { whyNoRoom } from './room.ts';
import { BY_HUB, type MembershipWorld } from './world.ts';

/**
 * Why the other members of a hub cannot take what runs on a cluster, a sentence; undefined: they can.
 * @param clusterKey of the cluster, `namespace/name`. @param open absent: it does not answer, and nobody knows what it runs
 */
export function whyNoRoomElsewhere(
  world: MembershipWorld,
  hubName: string,
  clusterKey: string,
  open: OpenCluster | undefined,
): string | undefined {
  if (!open) return undefined;
  const others = world.memberships.byIndex(BY_HUB, hubName).flatMap((one) => {
    const cluster = world.clusters.get(clusterOf(one));
    const takesWork = one.status?.state === 'Joined' && !one.metadata.deletionTimestamp && cluster !== undefined;
    if (!takesWork || clusterOf(one) === clusterKey || isAsleep(cluster) || isSilent(cluster)) return [];
    return [{ cluster, profile: world.profiles.get(profileNameOf(cluster)) }];
  });
  return whyNoRoom(hubName, open.pods.list(), others);
}
