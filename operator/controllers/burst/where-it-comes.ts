import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { comesTo } from '../../burst/clusters/sold-out.ts';
import type { ClusterInPlace } from '../where-it-is.ts';
import type { BurstSight } from './world.ts';

/**
 * A cluster in the place that it is in, or comes to by what is known to be sold out now. undefined: the CloudProfile of that is not known.
 */
export function whereItComes(
  { profiles, capacity, now }: Pick<BurstSight, 'profiles' | 'capacity' | 'now'>,
  written: WorkerCluster,
): ClusterInPlace | undefined {
  const cluster = comesTo(written, (name) => profiles.get(name), capacity.known(written.metadata), now());
  const profile = profiles.get(profileNameOf(cluster));
  return profile && { cluster, profile };
}
