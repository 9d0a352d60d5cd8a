import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';

/**
 * Whether a cluster has to do with a real account. What was made without one stays so: credentials that are named later move
 * no simulated cluster into a cloud.
 */
export function hasAccount({ spec, status }: WorkerCluster, shoot: Shoot | undefined): boolean {
  if (shoot && status?.simulated !== undefined) return !status.simulated;
  return status?.mode === 'Managed' || spec.credentialsRef !== undefined;
}
