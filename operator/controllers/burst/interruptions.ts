import { profileNameOf } from '../../api/workercluster.ts';
import { keyOf } from '../../kube/resources.ts';
import { interruptedOffers } from '../interrupted-offers.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { Seen } from './own-clusters.ts';

/** Remembers what clouds take away of clusters that a policy has bought. Of pools that Coppice sizes the autoscaler does; of others nobody else. */
export function noteInterruptions(
  { openClusters, profiles, capacity }: Pick<BurstDependencies, 'openClusters' | 'profiles' | 'capacity'>,
  seen: readonly Seen[],
): void {
  for (const { cluster } of seen) {
    const profile = cluster && profiles.get(profileNameOf(cluster));
    const nodes = cluster && openClusters.get(keyOf(cluster))?.nodes.list();
    if (!profile || !nodes) continue;
    for (const offer of interruptedOffers(cluster, profile, nodes)) capacity.interrupted(offer);
  }
}
