import type { CloudProfile } from '../api/cloudprofile.ts';
import { parseDuration } from '../api/duration.ts';
import type { WorkerClusterSpec } from '../api/workercluster.ts';

/**
 * Median startup time of a cluster, or of a pool in an existing cluster, milliseconds.
 * @returns undefined where the profile names none
 */
export function startupMs(
  { spec }: CloudProfile,
  mode: WorkerClusterSpec['mode'],
  what: 'cluster' | 'pool',
): number | undefined {
  const known = spec.startupTimes?.find((one) => one.mode === (mode ?? spec.defaults?.mode ?? 'Hosted'))?.[what];
  return known === undefined ? undefined : parseDuration(known);
}
