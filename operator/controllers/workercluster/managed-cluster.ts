import type { CloudPool, ManagedCluster } from '../../../providers/cloud.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import { isSizedByCloud } from '../../api/pools.ts';
import type { WorkerClusterSpec } from '../../api/workercluster.ts';
import { adoptionOf } from '../managed/wish.ts';
import type { Settled } from './view.ts';

/** The pool without nodes, in which an autoscaler adds none either. */
const atZero = (pool: CloudPool): CloudPool => ({ ...pool, minimum: 0, desired: 0 });

/** A cluster for the clouds' programs. Pure. */
export function managedCluster(spec: WorkerClusterSpec, settled: Settled, asleep = false): ManagedCluster {
  const { region, zones, version, ranges, profile } = settled;
  const adopt = adoptionOf(spec);
  // An adopted cluster without stated nodes gets no pool of ours.
  const isPoolless = adopt !== undefined && spec.pools === undefined && spec.dataPlaneNodes === undefined;
  const pools = (isPoolless ? [] : settled.pools).map((pool): CloudPool => {
    const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
    const limited = Number.isFinite(pool.maximum);
    // A stated number is fixed; otherwise the cloud's autoscaler moves within the range.
    return {
      name: pool.name,
      machineType: pool.machineType,
      minimum: pool.minimum,
      maximum: Math.max(limited ? pool.maximum : 0, pool.count),
      ...(!isSizedByCloud(pool) && { desired: pool.count }),
      spot: pool.spot,
      gpu: gpusOf(type),
      architecture: type?.architecture === 'arm64' ? 'arm64' : 'amd64',
      // Identifies the pool, whatever the cloud calls its node groups.
      labels: { ...pool.labels, [LABELS.pool]: pool.name },
      taints: pool.taints,
      ...(pool.startupTaints?.length && { startupTaints: pool.startupTaints }),
      zones: pool.zones,
    };
  });
  return {
    region,
    zones: [...zones],
    // An adopted cluster without a stated version keeps its version.
    kubernetesVersion: adopt && !spec.kubernetes?.version ? '' : version,
    cidrs: { ...ranges },
    pools: asleep ? pools.map(atZero) : pools,
    authorizedNetworks: [...(spec.networking?.authorizedNetworks ?? [])],
    ...(adopt && { adopt }),
    ...(asleep && { asleep }),
  };
}
