import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';

/**
 * Whether a cluster uses a real cloud account. A cluster made without an account stays simulated: credentials named
 * later do not move it into a cloud.
 */
export function hasAccount({ spec, status }: WorkerCluster, shoot: Shoot | undefined): boolean {
  if (shoot && status?.simulated !== undefined) return !status.simulated;
  return status?.mode === 'Managed' || spec.credentialsRef !== undefined;
}
