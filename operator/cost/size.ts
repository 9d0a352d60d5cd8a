import type { CloudProfile } from '../api/cloudprofile.ts';
import { findCondition } from '../api/conditions.ts';
import type { ClusterSize } from '../api/cost.ts';
import { LABELS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { type DesiredPool, isSizedByCloud } from '../api/pools.ts';
import { controlPlaneWorker, type Shoot } from '../api/shoot.ts';
import { madeModeOf, type WorkerCluster } from '../api/workercluster.ts';

type SizedPool = ClusterSize['pools'][number];

/** The pool under which the machines of a SelfManaged control plane are counted; no pool of a cluster can have this name. */
export const CONTROL_PLANE_POOL = 'control-plane (machines)';

const sizedPool = (name: string, machineType: string, count: number, spot: boolean): SizedPool => ({
  name,
  machineType,
  count,
  ...(spot && { spot }),
});

/**
 * How large the cluster is asked to be. A pool whose machine type nobody names is left out: its spec is refused anyway.
 * The mode is the one asked for: a simulated cloud costs what the cloud would.
 * @param pools what each should have; divided among machine types, or whole: then everything is of the first choice
 */
export function askedSize(cluster: WorkerCluster, profile: CloudProfile, pools: readonly DesiredPool[]): ClusterSize {
  const { spec } = cluster;
  const mode = madeModeOf(spec) ?? profile.spec.defaults?.mode ?? 'Hosted';
  const region = spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name;
  const sized = pools.flatMap((pool) => {
    const { name, machineType, count, maximum, spot } = pool;
    // What a cloud's autoscaler may make without asking us is granted beforehand.
    const most = mode === 'Managed' && isSizedByCloud(pool) ? Math.max(count, maximum) : count;
    return machineType === undefined ? [] : [sizedPool(name, machineType, most, spot)];
  });
  const machineType = spec.machineType ?? spec.machineTypes?.[0] ?? profile.spec.defaults?.machineType;
  if (mode === 'SelfManaged' && machineType !== undefined)
    sized.push(sizedPool(CONTROL_PLANE_POOL, machineType, spec.controlPlaneNodes, false));
  return { ...(region && { region }), mode, pools: sized };
}

/** How large a Shoot is asked to be. */
export const shootSize = (shoot: Shoot): ClusterSize => ({
  region: shoot.spec.region,
  mode: controlPlaneWorker(shoot.spec) ? 'SelfManaged' : 'Hosted',
  pools: (shoot.spec.provider.workers ?? []).map((worker) =>
    sizedPool(worker.name, worker.machine.type, worker.minimum, false),
  ),
});

/**
 * The machines that there are, by what the Shoot counts; undefined while it cannot count them, which is no reason to think
 * that they are gone. A Shoot counts the machines of a pool that it no longer has only in their sum: these are taken to be
 * of the pools that `held` has besides.
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
  // Those of a control plane go last: until the cluster is gone they are there.
  const ofControlPlane = heldPools.find(({ name }) => name === CONTROL_PLANE_POOL);
  if (ofControlPlane) pools.push({ ...ofControlPlane, count: status.controlPlane?.desired ?? ofControlPlane.count });
  const mode = held?.mode ?? 'Hosted';
  return { region: shoot.spec.region, mode, pools: pools.filter((pool) => pool.count > 0) };
}

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';

/**
 * The machines that there are, by the nodes of a managed cluster and the well-known label that every cloud sets on them. A
 * node is taken to be of the pool that its label names, otherwise of the first pool with its machine type.
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
  // Sorted: nodes come in any order, and the same machines must be told in the same words.
  const pools = [...counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, pool]) => pool);
  return { ...(held?.region && { region: held.region }), mode: held?.mode ?? 'Managed', pools };
}

/** Whether some pool has more machines than before. */
export const isLarger = (size: ClusterSize, before: ClusterSize | undefined): boolean =>
  before === undefined || size.pools.some((pool) => pool.count > (before.pools.find(samePool(pool))?.count ?? 0));

const samePool = (pool: SizedPool) => (other: SizedPool) =>
  other.name === pool.name && other.machineType === pool.machineType && (other.spot ?? false) === (pool.spot ?? false);

/**
 * What a cluster holds once `asked` was granted: that, and of what it held before what is still there. Machines on their
 * way out cost money and room until they are gone, so nobody else gets their place before. `running` absent: all are there.
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
