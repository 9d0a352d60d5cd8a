import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { BurstSight } from './world.ts';

/** Whether a cloud's own service runs the control plane of a cluster. */
export const isManaged = ({ profiles }: Pick<BurstSight, 'profiles'>, { spec, ...cluster }: WorkerCluster): boolean =>
  (cluster.status?.mode ?? spec.mode ?? profiles.get(profileNameOf({ spec, ...cluster }))?.spec.defaults?.mode) ===
  'Managed';
