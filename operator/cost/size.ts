import type { CloudProfile } from '../api/cloudprofile.ts';
import { findCondition } from '../api/conditions.ts';
import type { ClusterSize } from '../api/cost.ts';
import { LABELS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { type DesiredPool, isSizedByCloud } from '../api/pools.ts';
import { controlPlaneWorker, type Shoot } from '../api/shoot.ts';
import { madeModeOf, type WorkerCluster } from '../api/workercluster.ts';

type SizedPool = ClusterSize['pools'][number];

/**
 * Pool name under which machines of a SelfManaged control plane are counted; no pool of a cluster can have this name.
 */
export const CONTROL_PLANE_POOL = 'control-plane (machines)';

const sizedPool = (name: string, machineType: string, count: number, spot: boolean): SizedPool => ({
  name,
  machineType,
  count,
  ...(spot && { spot }),
});

/**
 * The requested size of a cluster. Pools without a machine type are left out: their spec is refused anyway. The
 * requested mode counts: a simulated cloud costs as much as the real one.
 * @param pools desired pools, divided into parts or whole: whole pools count as their first choice
 */
export function askedSize(cluster: WorkerCluster, profile: CloudProfile, pools: readonly DesiredPool[]): ClusterSize {
  const { spec } = cluster;
  const mode = madeModeOf(spec) ?? profile.spec.defaults?.mode ?? 'Hosted';
  const region = spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name;
  const sized = pools.flatMap((pool) => {
    const { name, machineType, count, maximum, spot } = pool;
    // Sizes that a cloud's autoscaler may reach without asking are granted beforehand.
    const most = mode === 'Managed' && isSizedByCloud(pool) ? Math.max(count, maximum) : count;
    return machineType === undefined ? [] : [sizedPool(name, machineType, most, spot)];
  });
  const machineType = spec.machineType ?? spec.machineTypes?.[0] ?? profile.spec.defaults?.machineType;
  if (mode === 'SelfManaged' && machineType !== undefined)
    sized.push(sizedPool(CONTROL_PLANE_POOL, machineType, spec.controlPlaneNodes, false));
  return { ...(region && { region }), mode, pools: sized };
}

/** The requested size of a Shoot. */
export const shootSize = (shoot: Shoot): ClusterSize => ({
  region: shoot.spec.region,
  mode: controlPlaneWorker(shoot.spec) ? 'SelfManaged' : 'Hosted',
  pools: (shoot.spec.provider.workers ?? []).map((worker) =>
    sizedPool(worker.name, worker.machine.type, worker.minimum, false),
  ),
});

/**
 * The existing machines, by the Shoot's counts; undefined while it cannot count them, which does not mean that they are
 * gone. A Shoot counts machines of removed pools only as a sum: they are attributed to the other pools of `held`.
 */
export function runningSize(shoot: Shoot, held: ClusterSize | undefined): ClusterSize | undefined {
  const { status } = shoot;
  if (!status?.nodes || findCondition(status.conditions, 'EveryNodeReady')?.reason === 'NotObserved') return undefined;
  const types = new Map((shoot.spec.provider.workers ?? []).map((worker) => [worker.name, worker.machine.type]));
  const counted = status.workers ?? [];
  const heldPools = held?.pools ?? [];
  const spot = (name: string) => heldPools.some((pool) => pool.name === name && pool.spot === true);
  const pools = counted.flatMap(({ name, current }) => {
    const type = types.get(name);
    return type === undefined ? [] : [sizedPool(name, type, current, spot(name))];
  });
  let stray = status.nodes.current - counted.reduce((sum, worker) => sum + worker.current, 0);
  for (const pool of heldPools.filter(({ name }) => !types.has(name) && name !== CONTROL_PLANE_POOL)) {
    const count = Math.max(0, Math.min(stray, pool.count));
    stray -= count;
    pools.push({ ...pool, count });
  }
  // Control plane machines are removed last: they count until the cluster is gone.
  const ofControlPlane = heldPools.find(({ name }) => name === CONTROL_PLANE_POOL);
  if (ofControlPlane) pools.push({ ...ofControlPlane, count: status.controlPlane?.desired ?? ofControlPlane.count });
  const mode = held?.mode ?? 'Hosted';
  return { region: shoot.spec.region, mode, pools: pools.filter((pool) => pool.count > 0) };
}

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';

/**
 * Machines of a managed cluster, derived from its nodes and their well-known labels. A node counts for the pool that
 * its label names, otherwise for the first pool with its machine type.
 */
export function nodesSize(nodes: readonly KubeObject[], held: ClusterSize | undefined): ClusterSize {
  const counts = new Map<string, SizedPool>();
  for (const { metadata } of nodes) {
    const type = metadata.labels?.[INSTANCE_TYPE];
    const named = metadata.labels?.[LABELS.pool];
    const pool =
      held?.pools.find(({ name }) => name === named) ?? held?.pools.find(({ machineType }) => machineType === type);
    const machineType = type ?? pool?.machineType ?? 'unknown';
    const name = pool?.name ?? named ?? 'unknown';
    const key = `${name} ${machineType}`;
    const before = counts.get(key);
    counts.set(key, sizedPool(name, machineType, (before?.count ?? 0) + 1, pool?.spot ?? false));
  }
  // Sorted: nodes come in any order, and equal machines must yield equal text.
  const pools = [...counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, pool]) => pool);
  return { ...(held?.region && { region: held.region }), mode: held?.mode ?? 'Managed', pools };
}

/** Whether some pool grew. */
export const isLarger = (size: ClusterSize, before: ClusterSize | undefined): boolean =>
  before === undefined || size.pools.some((pool) => pool.count > (before.pools.find(samePool(pool))?.count ?? 0));

const samePool = (pool: SizedPool) => (other: SizedPool) =>
  other.name === pool.name && other.machineType === pool.machineType && (other.spot ?? false) === (pool.spot ?? false);

/**
 * The size a cluster holds after `asked` was granted: that, plus machines of its previous size that still exist.
 * Machines being deleted cost money and quota until they are gone. `running` absent: all exist.
 */
export function settledSize(
  asked: ClusterSize,
  held: ClusterSize | undefined,
  running: ClusterSize | undefined,
): ClusterSize {
  const left = (pool: SizedPool): number => {
    const before = held?.pools.find(samePool(pool))?.count ?? 0;
    return running ? Math.min(before, running.pools.find(samePool(pool))?.count ?? 0) : before;
  };
  const going = (held?.pools ?? [])
    .filter((pool) => !asked.pools.some((other) => other.name === pool.name))
    .map((pool) => ({ ...pool, count: left(pool) }))
    .filter((pool) => pool.count > 0);
  return {
    ...asked,
    pools: [...asked.pools.map((pool) => ({ ...pool, count: Math.max(pool.count, left(pool)) })), ...going],
  };
}
