import type { CloudPool, ManagedCluster } from '../../../providers/cloud.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import { isSizedByCloud } from '../../api/pools.ts';
import type { WorkerClusterSpec } from '../../api/workercluster.ts';
import { adoptionOf } from '../managed/wish.ts';
import type { Settled } from './view.ts';

/** The pool without nodes: not even an autoscaler makes any. */
const atZero = (pool: CloudPool): CloudPool => ({ ...pool, minimum: 0, desired: 0 });

/** A cluster as the cloud's programs take it. Pure. */
export function managedCluster(spec: WorkerClusterSpec, settled: Settled, asleep = false): ManagedCluster {
  const { region, zones, version, ranges, profile } = settled;
  const adopt = adoptionOf(spec);
  // Of a cluster that exists nobody has to say how many nodes it has: without a word on it we add none.
  const isPoolless = adopt !== undefined && spec.pools === undefined && spec.dataPlaneNodes === undefined;
  const pools = (isPoolless ? [] : settled.pools).map((pool): CloudPool => {
    const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
    const limited = Number.isFinite(pool.maximum);
    // Where somebody said how many nodes there are, nobody else may; otherwise the cloud's autoscaler moves between the two.
    return {
      name: pool.name,
      machineType: pool.machineType,
      minimum: pool.minimum,
      maximum: Math.max(limited ? pool.maximum : 0, pool.count),
      ...(!isSizedByCloud(pool) && { desired: pool.count }),
      spot: pool.spot,
      gpu: gpusOf(type),
      architecture: type?.architecture === 'arm64' ? 'arm64' : 'amd64',
      // By it everybody tells pools apart, whatever a cloud calls its node groups.
      labels: { ...pool.labels, [LABELS.pool]: pool.name },
      taints: pool.taints,
      ...(pool.startupTaints?.length && { startupTaints: pool.startupTaints }),
      zones: pool.zones,
    };
  });
  return {
    region,
    zones: [...zones],
    // Without a wish, one that is taken over stays at what it runs.
    kubernetesVersion: adopt && !spec.kubernetes?.version ? '' : version,
    cidrs: { ...ranges },
    pools: asleep ? pools.map(atZero) : pools,
    authorizedNetworks: [...(spec.networking?.authorizedNetworks ?? [])],
    ...(adopt && { adopt }),
    ...(asleep && { asleep }),
  };
}
