import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { daemonsOf } from '../autoscaling/nodes-seen.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import type { BurstSightDependencies } from './dependencies.ts';

/**
 * DaemonSets that a new cluster will have, by its siblings: of the members of the hub that policies have bought, or else of all, the one whose
 * DaemonSets take most CPU. Agents come by the hub or by whoever sets clusters up, and are not known before they are there.
 */
export type SiblingDaemons = () => readonly FitPod[];

/** Found when they are first asked for, and kept: all pods of all members are gone through. For one look. */
export function siblingDaemons(deps: BurstSightDependencies, hub: Hub): SiblingDaemons {
  let found: readonly FitPod[] | undefined;
  return () => {
    found ??= daemonsOfSiblings(deps, hub);
    return found;
  };
}

function daemonsOfSiblings(deps: BurstSightDependencies, hub: Hub): FitPod[] {
  const members = deps.memberships.byIndex(BY_HUB, hub.metadata.name).flatMap((membership) => {
    const cluster = deps.clusters.get(clusterOf(membership));
    const open = deps.openClusters.get(clusterOf(membership));
    if (membership.status?.state !== 'Joined' || !cluster || !open) return [];
    const daemons = daemonsOf(open.pods.list());
    const cpu = daemons.reduce((sum, { requests }) => sum + requests.cpu, 0);
    return [{ daemons, cpu, isBought: cluster.metadata.labels?.[LABELS.burst] === 'true' }];
  });
  const bought = members.filter(({ isBought }) => isBought);
  const most = (bought.length > 0 ? bought : members).sort((a, b) => b.cpu - a.cpu)[0];
  return most?.daemons ?? [];
}
