import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { comesTo } from '../../burst/clusters/sold-out.ts';
import type { ClusterInPlace } from '../where-it-is.ts';
import type { BurstSight } from './world.ts';

/**
 * A cluster in its present place, or in the one that it would get now. undefined: that place's CloudProfile is unknown.
 */
export function whereItComes(
  { profiles, capacity, now }: Pick<BurstSight, 'profiles' | 'capacity' | 'now'>,
  written: WorkerCluster,
): ClusterInPlace | undefined {
  const cluster = comesTo(written, (name) => profiles.get(name), capacity.known(written.metadata), now());
  const profile = profiles.get(profileNameOf(cluster));
  return profile && { cluster, profile };
}
