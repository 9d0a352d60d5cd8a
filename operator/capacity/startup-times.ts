import type { CloudProfile } from '../api/cloudprofile.ts';
import { parseDuration } from '../api/duration.ts';
import type { WorkerClusterSpec } from '../api/workercluster.ts';

/**
 * How long a cluster, or a pool in one that is there, takes to come: half of the times, milliseconds.
 * @returns undefined where the profile does not say
 */
export function startupMs(
  { spec }: CloudProfile,
  mode: WorkerClusterSpec['mode'],
  what: 'cluster' | 'pool',
): number | undefined {
  const known = spec.startupTimes?.find((one) => one.mode === (mode ?? spec.defaults?.mode ?? 'Hosted'))?.[what];
  return known === undefined ? undefined : parseDuration(known);
}
