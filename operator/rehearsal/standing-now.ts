import { LABELS } from '../api/group.ts';
import { madeModeOf } from '../api/workercluster.ts';
import { clusterWaitOf, isLeaving } from '../burst/clusters/purchases.ts';
import { clustersIn, wakesIn } from '../burst/clusters/receipt.ts';
import type { Wait } from '../burst/clusters/warm.ts';
import type { NodeState } from '../burst/fit/state.ts';
import { machinePrice, priceOf } from '../cost/price.ts';
import { type CurveAmounts, curveAmountsOf, type DemandSince } from './bound/demand-curve.ts';
import { fitNodeOf } from './members.ts';
import type { Meter, PoolState, RehearsedCluster, Simulation } from './state.ts';
import type { RehearsedWorkState } from './work.ts';

/** Waiting states of the policy's clusters by key; clusters with workloads are left out. */
function waitsOf({ rehearsed }: Simulation): ReadonlyMap<string, Wait> {
  const { policy, receipt } = rehearsed ?? {};
  const waits = (receipt ? clustersIn(receipt) : []).flatMap((one): [string, Wait][] => {
    const wait = clusterWaitOf(one);
    return wait && !isLeaving(one) ? [[`${policy!.metadata.namespace}/${one.name}`, wait]] : [];
  });
  return new Map(waits);
}

/** Records the present state. Skipped without workloads. */
export function noteStanding(simulation: Simulation): void {
  const { work } = simulation;
  if (!work) return;
  let [demand, running] = [0, 0];
  const ran = { at: simulation.now, count: 0, cpu: 0, memory: 0, gpu: 0 };
  for (const group of work.groups.values()) {
    if (group.cluster === undefined) addTimes(ran, curveAmountsOf(group.size), group.running);
    demand += group.millicores * (group.running + group.waitingCount);
    running += group.millicores * group.running;
  }
  simulation.standings.addRan(ran);
  let capacity = 0;
  const bought = new Set<string>();
  let [boughtPaid, boughtUsed, boughtHourly, boughtFees, boughtNodes] = [0, 0, 0, 0, 0];
  let [boughtStarting, boughtIdle, boughtSpare, boughtRoom] = [0, 0, 0, 0];
  const waiting = { warm: 0, asleep: 0, fees: 0 };
  let boughtWoken = 0;
  const { rehearsed } = simulation;
  const woken = new Set((rehearsed ? wakesIn(rehearsed.receipt) : []).map((one) => one.cluster));
  const waits = waitsOf(simulation);
  const nodes = nodesByPool(work);
  for (const cluster of simulation.clusters.values()) {
    if (!cluster.object) continue;
    const isBought = cluster.candidate !== undefined;
    const wait = waits.get(cluster.key);
    if (isBought) {
      const fee = cluster.isStopped ? 0 : feeOf(cluster);
      bought.add(cluster.key);
      boughtHourly += fee;
      boughtFees += fee;
      boughtNodes += cluster.machines.size;
      if (wait) {
        waiting[wait] += fee;
        waiting.fees += fee;
      }
    }
    for (const pool of cluster.pools.values()) {
      if (pool.taken.size === 0) continue;
      const { cpu, hourly } = nodeOf(cluster, pool);
      capacity += cpu * pool.ready;
      if (woken.has(cluster.key)) boughtWoken += hourly * pool.taken.size;
      if (!isBought) continue;
      boughtPaid += cpu * pool.taken.size;
      boughtHourly += hourly * pool.taken.size;
      if (wait) {
        waiting[wait] += hourly * pool.taken.size;
        continue;
      }
      const there = nodes.get(cluster.key)?.get(pool.name) ?? [];
      const working = there.filter(({ podCount }) => podCount > 0);
      const without = hourly * (there.length - working.length);
      boughtStarting += hourly * Math.max(0, pool.taken.size - there.length);
      if (isWorking(nodes.get(cluster.key))) boughtSpare += without;
      else boughtIdle += without;
      for (const at of working) {
        boughtUsed += at.used.cpu;
        boughtRoom += hourly * (1 - shareUsed(at));
      }
    }
  }
  const boughtClusters = bought.size;
  simulation.standings.add({
    at: simulation.now,
    ...{ demand, running, capacity, boughtPaid, boughtUsed, boughtHourly, boughtFees, boughtClusters, boughtNodes },
    ...{ boughtStarting, boughtIdle, boughtSpare, boughtRoom },
    ...{ boughtWarm: waiting.warm, boughtAsleep: waiting.asleep, boughtWaitingFees: waiting.fees, boughtWoken },
  });
}

function addTimes(sum: Mutable<DemandSince>, { cpu, memory, gpu }: CurveAmounts, count: number): void {
  sum.count += count;
  sum.cpu += count * cpu;
  sum.memory += count * memory;
  sum.gpu += count * gpu;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Ready nodes by cluster and pool. */
function nodesByPool(work: RehearsedWorkState): ReadonlyMap<string, ReadonlyMap<string, readonly NodeState[]>> {
  const found = new Map<string, Map<string, NodeState[]>>();
  for (const [name, { cluster }] of work.nodes) {
    const at = work.room.node(name);
    if (!at) continue;
    const ofCluster = found.get(cluster) ?? new Map<string, NodeState[]>();
    found.set(cluster, ofCluster);
    const pool = at.node.labels[LABELS.pool] ?? '';
    const ofPool = ofCluster.get(pool);
    if (ofPool) ofPool.push(at);
    else ofCluster.set(pool, [at]);
  }
  return found;
}

const isWorking = (pools: ReadonlyMap<string, readonly NodeState[]> = new Map()): boolean =>
  [...pools.values()].some((nodes) => nodes.some(({ podCount }) => podCount > 0));

/** Used share of a node: of CPU or memory, whichever is scarcer, since the rest of the other cannot be used. */
function shareUsed({ node: { allocatable }, used }: NodeState): number {
  const share = (of: 'cpu' | 'memory') => (allocatable[of] > 0 ? used[of] / allocatable[of] : 0);
  return Math.min(1, Math.max(share('cpu'), share('memory')));
}

interface NodeFigures {
  readonly cpu: number;
  readonly hourly: number;
}

/** Cached: read at each moment, and constant. */
const known = new WeakMap<PoolState, { readonly machineType: string; readonly figures: NodeFigures }>();

function nodeOf(cluster: RehearsedCluster, pool: PoolState): NodeFigures {
  const before = known.get(pool);
  if (before?.machineType === pool.machineType) return before.figures;
  const type = cluster.profile?.spec.machineTypes.find(({ name }) => name === pool.machineType);
  const price = type && machinePrice(type, cluster.shoot?.spec.region, pool.spot);
  const figures = { cpu: fitNodeOf(cluster, pool, '')?.allocatable.cpu ?? 0, hourly: Number(price ?? 0n) };
  known.set(pool, { machineType: pool.machineType, figures });
  return figures;
}

/** Control plane fees by meter: a cluster has another meter in each place. */
const fees = new WeakMap<Meter, number>();

function feeOf(cluster: RehearsedCluster): number {
  let fee = fees.get(cluster.controlPlane);
  if (fee === undefined) {
    const mode = madeModeOf(cluster.manifest.spec) ?? cluster.profile?.spec.defaults?.mode ?? 'Hosted';
    fee = cluster.profile ? Number(priceOf({ mode, pools: [] }, cluster.profile).hourly ?? 0n) : 0;
    fees.set(cluster.controlPlane, fee);
  }
  return fee;
}
