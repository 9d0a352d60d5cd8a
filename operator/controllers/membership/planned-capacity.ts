import type { CloudProfile } from '../../api/cloudprofile.ts';
import { formatBytes, formatCpu, parseBytes, parseCount, parseCpu } from '../../api/quantity.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Amounts } from '../../hubs/contract.ts';

/** What the nodes of a cluster will offer that has none now: its pools at their largest, or a node of each. Pure. */
export function planned({ spec, status }: WorkerCluster, profile: CloudProfile): Amounts {
  const granted = status?.admitted?.pools ?? [];
  const sum = { cpu: 0, memory: 0, gpu: 0 };
  for (const { name, machineType } of granted) {
    const type = profile.spec.machineTypes.find((one) => one.name === machineType);
    const pool = spec.pools?.find((one) => one.name === name);
    const count = Math.max(1, pool?.maximum ?? 1);
    if (!type) continue;
    sum.cpu += count * parseCpu(String(type.cpu));
    sum.memory += count * parseBytes(String(type.memory));
    sum.gpu += count * parseCount(String(type.gpu ?? 0));
  }
  return { cpu: formatCpu(sum.cpu), memory: formatBytes(sum.memory), gpu: String(sum.gpu) };
}
