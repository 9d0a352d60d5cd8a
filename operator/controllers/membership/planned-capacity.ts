import type { CloudProfile } from '../../api/cloudprofile.ts';
import { formatBytes, formatCpu, readBytes, readCount, readCpu } from '../../api/quantity.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { CONTROL_PLANE_POOL } from '../../cost/size.ts';
import type { HubAmounts } from '../../hubs/contract.ts';

/** Granted worker pools, without control plane machines. Pure. */
export const poolsForWork = ({ status }: WorkerCluster) =>
  (status?.admitted?.pools ?? []).filter(({ name }) => name !== CONTROL_PLANE_POOL);

/** Planned capacity of a cluster without nodes: its pools at their granted size, or one node each. Pure. */
export function plannedCapacity(cluster: WorkerCluster, profile: CloudProfile): HubAmounts {
  const sum = { cpu: 0, memory: 0, gpu: 0 };
  for (const { name, machineType } of poolsForWork(cluster)) {
    const type = profile.spec.machineTypes.find((one) => one.name === machineType);
    const pool = cluster.spec.pools?.find((one) => one.name === name);
    const count = Math.max(1, pool?.maximum ?? 1);
    if (!type) continue;
    sum.cpu += count * readCpu(String(type.cpu));
    sum.memory += count * readBytes(String(type.memory));
    sum.gpu += count * readCount(String(type.gpu ?? 0));
  }
  return { cpu: formatCpu(sum.cpu), memory: formatBytes(sum.memory), gpu: String(sum.gpu) };
}

/** Planned size of one node per pool. Pure. */
export const plannedSizes = (cluster: WorkerCluster, profile: CloudProfile): HubAmounts[] =>
  poolsForWork(cluster).flatMap(({ machineType }) => {
    const type = profile.spec.machineTypes.find((one) => one.name === machineType);
    return type ? [{ cpu: String(type.cpu), memory: String(type.memory) }] : [];
  });
