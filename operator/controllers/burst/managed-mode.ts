import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { BurstSight } from './world.ts';

/** Whether a cloud's service runs the cluster's control plane. */
export const isManaged = ({ profiles }: Pick<BurstSight, 'profiles'>, { spec, ...cluster }: WorkerCluster): boolean =>
  (cluster.status?.mode ?? spec.mode ?? profiles.get(profileNameOf({ spec, ...cluster }))?.spec.defaults?.mode) ===
  'Managed';
