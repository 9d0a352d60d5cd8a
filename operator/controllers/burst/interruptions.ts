import { keyOf } from '../../kube/resources.ts';
import { noteInterrupted } from '../interrupted-offers.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { Seen } from './own-clusters.ts';

/**
 * Remembers what clouds take away of clusters that a policy has bought. Of pools that Coppice sizes the autoscaler does; of others nobody
 * else.
 */
export function noteInterruptions(
  deps: Pick<BurstDependencies, 'openClusters' | 'profiles' | 'capacity'>,
  seen: readonly Seen[],
): void {
  for (const { cluster } of seen) {
    const nodes = cluster && deps.openClusters.get(keyOf(cluster))?.nodes.list();
    if (nodes) noteInterrupted(deps, cluster, nodes);
  }
}
