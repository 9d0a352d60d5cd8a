import type { Pool } from '../../../providers/contract.ts';
import { LABELS } from '../../api/group.ts';
import { controlPlaneWorker, type Shoot } from '../../api/shoot.ts';
import type { Worker } from '../../api/shoot-worker.ts';
import { paceOf } from './machines/roll.ts';

/** The worker pools of a shoot, as providers take them; machines that run its control plane are none of these. */
export const poolsOfShoot = (shoot: Shoot): Pool[] =>
  (shoot.spec.provider.workers ?? [])
    .filter((worker) => worker.controlPlane === undefined)
    .map((worker) => poolOf(shoot, worker));

/** The pool of machines that run the control plane of a self-hosted shoot. */
export function controlPlanePoolOf(shoot: Shoot): Pool | undefined {
  const worker = controlPlaneWorker(shoot.spec);
  if (!worker) return undefined;
  const pool = poolOf(shoot, worker);
  // kubeadm sets it when all is done; a kubelet says it from its first moment, so that nothing else ever comes here.
  return { ...pool, taints: [CONTROL_PLANE_TAINT, ...pool.taints] };
}

/** Kubernetes' own taint of nodes that run a control plane. */
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
