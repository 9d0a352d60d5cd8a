import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { daemonsOf } from '../autoscaling/nodes-seen.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import type { BurstSightDependencies } from './dependencies.ts';

/**
 * Expected DaemonSets of a new cluster: those of the bought member (else any member) of the hub whose DaemonSets take
 * most CPU. Agents are installed by the hub or by others, and unknown before.
 */
export type SiblingDaemons = () => readonly FitPod[];

/** Computed on first use, for one cycle: scans all pods of all members. */
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
