import { madeModeOf } from '../api/workercluster.ts';
import { machinePrice, priceOf } from '../cost/price.ts';
import { fitNodeOf } from './members.ts';
import type { ClusterState, PoolState, World } from './state.ts';

/** Notes how things stand now. Without workloads nobody asks. */
export function note(world: World): void {
  const { work } = world;
  if (!work) return;
  let [demand, running] = [0, 0];
  for (const group of work.groups.values()) {
    demand += group.millicores * (group.running + group.waitingCount);
    running += group.millicores * group.running;
  }
  let capacity = 0;
  const bought = new Set<string>();
  let [boughtPaid, boughtUsed, boughtHourly, boughtFees, boughtNodes] = [0, 0, 0, 0, 0];
  for (const cluster of world.clusters.values()) {
    if (!cluster.object) continue;
    const isBought = cluster.candidate !== undefined;
    if (isBought) {
      bought.add(cluster.key);
      boughtHourly += feeOf(cluster);
      boughtFees += feeOf(cluster);
      boughtNodes += cluster.machines.size;
    }
    for (const pool of cluster.pools.values()) {
      if (pool.taken.size === 0) continue;
      const { cpu, hourly } = nodeOf(cluster, pool);
      capacity += cpu * pool.ready;
      if (!isBought) continue;
      boughtPaid += cpu * pool.taken.size;
      boughtHourly += hourly * pool.taken.size;
    }
  }
  for (const [name, node] of work.nodes)
    if (bought.has(node.cluster)) boughtUsed += work.room.node(name)?.used.cpu ?? 0;
  const boughtClusters = bought.size;
  world.ledger.add({
    at: world.now,
    ...{ demand, running, capacity, boughtPaid, boughtUsed, boughtHourly, boughtFees, boughtClusters, boughtNodes },
  });
}

interface NodeFigures {
  readonly cpu: number;
  readonly hourly: number;
}

/** It is asked at each moment, and always the same. */
const known = new WeakMap<PoolState, { readonly machineType: string; readonly figures: NodeFigures }>();

function nodeOf(cluster: ClusterState, pool: PoolState): NodeFigures {
  const before = known.get(pool);
  if (before?.machineType === pool.machineType) return before.figures;
  const type = cluster.profile?.spec.machineTypes.find(({ name }) => name === pool.machineType);
  const price = type && machinePrice(type, cluster.shoot?.spec.region, pool.spot);
  const figures = { cpu: fitNodeOf(cluster, pool, '')?.allocatable.cpu ?? 0, hourly: Number(price ?? 0n) };
  known.set(pool, { machineType: pool.machineType, figures });
  return figures;
}

const fees = new WeakMap<ClusterState, number>();

function feeOf(cluster: ClusterState): number {
  let fee = fees.get(cluster);
  if (fee === undefined) {
    const mode = madeModeOf(cluster.manifest.spec) ?? cluster.profile?.spec.defaults?.mode ?? 'Hosted';
    fee = cluster.profile ? Number(priceOf({ mode, pools: [] }, cluster.profile).hourly ?? 0n) : 0;
    fees.set(cluster, fee);
  }
  return fee;
}
