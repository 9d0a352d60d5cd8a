import type { Pool } from '../../../providers/contract.ts';
import { LABELS } from '../../api/group.ts';
import { controlPlaneWorker, type Shoot } from '../../api/shoot.ts';
import type { Worker } from '../../api/shoot-worker.ts';
import { paceOf } from './machines/roll.ts';

/** Worker pools of a shoot for providers, without control plane machines. */
export const poolsOfShoot = (shoot: Shoot): Pool[] =>
  (shoot.spec.provider.workers ?? [])
    .filter((worker) => worker.controlPlane === undefined)
    .map((worker) => poolOf(shoot, worker));

/** Control plane pool of a self-hosted shoot. */
export function controlPlanePoolOf(shoot: Shoot): Pool | undefined {
  const worker = controlPlaneWorker(shoot.spec);
  if (!worker) return undefined;
  const pool = poolOf(shoot, worker);
  // kubeadm adds the taint at the end; kubelet registers with it, so that no other pod is scheduled before.
  return { ...pool, taints: [CONTROL_PLANE_TAINT, ...pool.taints] };
}

/** Kubernetes' taint of control plane nodes. */
const CONTROL_PLANE_TAINT = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' } as const;

const poolOf = (shoot: Shoot, worker: Worker): Pool => ({
  name: worker.name,
  machineType: worker.machine.type,
  count: worker.minimum,
  maxSurge: paceOf(worker).surge,
  labels: { ...worker.labels, [LABELS.pool]: worker.name, [LABELS.workerCluster]: shoot.metadata.name },
  taints: worker.taints ?? [],
  ...(worker.startupTaints && { startupTaints: worker.startupTaints }),
  zones: worker.zones ?? [],
  ...((worker.providerConfig as { spot?: boolean } | undefined)?.spot === true && { spot: true }),
});
