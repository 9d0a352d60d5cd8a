import type { Machine, Pool } from '../../providers/contract.ts';
import { type Capacity, capacityOf } from '../../providers/machine-types.ts';
import { added, type GivenMachine, type MachineRefusal } from '../../providers/simulated/cloud-model.ts';
import { growPool } from '../../providers/simulated/growth.ts';
import { draw } from '../../providers/simulated/random.ts';
import { simulationOf } from '../../providers/simulated/settings.ts';
import { CoppiceError } from '../api/errors.ts';
import { machineName } from '../api/names.ts';
import { planScaleIn } from '../controllers/shoot/machines/scale-in.ts';
import { retryOf } from '../controllers/shoot/retry.ts';
import { noteShortages } from '../controllers/shortages.ts';
import { billedMs, billingOf } from '../cost/billing.ts';
import type { Node, Pod } from '../kube/resources.ts';
import { backoffMs } from '../kube/workqueue.ts';
import { nodeJoins } from './members.ts';
import {
  cloudOf,
  countEvent,
  dateOf,
  noteRefusedWork,
  type PoolState,
  type RehearsedCluster,
  type SimulatedMachine,
  type Simulation,
  tellEvent,
  usageIn,
} from './state.ts';
import { nodesChanged } from './waits.ts';

/**
 * Node updates wake the operator, also after an error that it retries late or never; a kubelet reports at least this
 * often (nodeStatusReportFrequency, default 5 minutes).
 */
const NODE_NEWS_MS = 5 * 60_000;

const NO_PODS: ReadonlyMap<string, never[]> = new Map();

/**
 * Reconciles machines with the Shoot's spec in the order of the Shoot's task graph: pools in sequence, and no removal
 * while a creation fails.
 * @returns whether the number of machines changed
 */
export function reconcileMachines(simulation: Simulation, cluster: RehearsedCluster): boolean {
  if (!cluster.serves || !cluster.shoot) return false;
  let changed = false;
  for (const pool of cluster.wanted) {
    const state = cluster.pools.get(pool.name)!;
    if (state.taken.size >= pool.count) continue;
    const before = state.taken.size;
    const refusal = grow(simulation, cluster, pool, state);
    changed ||= state.taken.size > before;
    if (refusal) {
      if (refusal.code === 'ERR_INFRA_RESOURCES_DEPLETED') isShort(simulation, cluster, pool, refusal);
      failed(
        simulation,
        cluster,
        refusal,
        `pool ${pool.name} lacks ${pool.count - state.taken.size} of ${pool.count} machines`,
      );
      return changed;
    }
  }
  cluster.isMade = true;
  cluster.failures = 0;
  cluster.retryAt = undefined;
  cluster.machineRefusal = undefined;
  return scaleIn(simulation, cluster) || changed;
}

/** Reports a shortage to the operator, which may choose another offer for the pool. */
function isShort(
  simulation: Simulation,
  cluster: RehearsedCluster,
  { name, machineType, zones, spot = false }: Pool,
  refusal: MachineRefusal,
) {
  const pools = [{ name, machineType, zones, spot }];
  const told = { recordEvent: () => {}, cluster: cluster.object!, profile: cluster.profile!, pools };
  const error = { shortages: [{ pool: name }], message: refusal.message };
  // A repeated shortage is not new: planning for it would repeat the request in the same moment, for ever.
  if (noteShortages(simulation.capacity, told, error)) simulation.toPlan.add(cluster);
}

function grow(
  simulation: Simulation,
  cluster: RehearsedCluster,
  pool: Pool,
  state: PoolState,
): MachineRefusal | undefined {
  const profile = cluster.profile!;
  const { region } = cluster.shoot!.spec;
  const cloud = cloudOf(simulation, profile);
  const capacity = capacityOf(profile, pool.machineType);
  const grown = growPool(
    {
      profile,
      region,
      cluster: cluster.key,
      pool,
      missing: pool.count - state.taken.size,
      isTaken: (index) => state.taken.has(index),
      sequence: cluster.sequence,
      account: { usage: usageIn(simulation, profile, region), ...(cloud.bucket && { bucket: cloud.bucket }) },
    },
    simulation.now,
  );
  cluster.sequence = grown.sequence;
  cloud.usage.set(region, grown.account.usage);
  if (grown.account.bucket) cloud.bucket = grown.account.bucket;
  if (grown.machines.length > 0) {
    const before = state.taken.size;
    for (const given of grown.machines) addMachine(simulation, cluster, state, given, capacity);
    const what = `${grown.machines.length} x ${pool.spot ? 'spot ' : ''}${pool.machineType}`;
    tellEvent(simulation, cluster, 'asked', `pool ${pool.name}: ${what} (${before} -> ${state.taken.size})`);
  }
  return grown.refusal;
}

function addMachine(
  simulation: Simulation,
  cluster: RehearsedCluster,
  pool: PoolState,
  given: GivenMachine & { index: number },
  capacity: Capacity,
): void {
  const { index, readyAfterMs, lostAfterMs, zone = '' } = given;
  const name = machineName(cluster.technicalID, pool.name, index);
  const machine: Machine = {
    name,
    pool: pool.name,
    nodeName: name,
    phase: 'Pending',
    ready: false,
    createdAt: dateOf(simulation).toISOString(),
  };
  const made: SimulatedMachine = { machine, index, capacity, askedAt: simulation.now, zone, ready: false, gone: false };
  cluster.machines.set(name, made);
  pool.taken.add(index);
  meter(simulation, cluster, pool, 1);
  const isLive = () => !made.gone;
  simulation.events.add({
    at: simulation.now + readyAfterMs,
    isLive,
    run: () => nodeReady(simulation, cluster, pool, made),
  });
  if (lostAfterMs !== undefined) {
    simulation.events.add({
      at: simulation.now + lostAfterMs,
      isLive,
      run: () => machineLost(simulation, cluster, pool, made),
    });
  }
}

function nodeReady(simulation: Simulation, cluster: RehearsedCluster, pool: PoolState, made: SimulatedMachine): void {
  made.ready = true;
  Object.assign(made.machine, { phase: 'Running', ready: true });
  cluster.nodes.set(made.machine.nodeName, readyNode(made.machine, dateOf(simulation)));
  pool.ready++;
  nodeJoins(simulation, cluster, made);
  nodesChanged(pool.line, missing(pool), simulation.now, cluster.waits);
  simulation.toReconcile.add(cluster);
  if ([...cluster.pools.values()].every((other) => other.line.waiting === 0)) {
    tellEvent(simulation, cluster, 'ready', `all ${cluster.nodes.size} nodes are Ready`);
  }
}

function machineLost(simulation: Simulation, cluster: RehearsedCluster, pool: PoolState, made: SimulatedMachine): void {
  const { region } = cluster.shoot!.spec;
  const place = { profile: cluster.profile!.metadata.name, region, zone: made.zone };
  const { namespace } = cluster.manifest.metadata;
  simulation.capacity.interrupted({ ...place, machineType: pool.machineType, spot: pool.spot }, { namespace });
  removeMachines(simulation, cluster, [made]);
  tellEvent(
    simulation,
    cluster,
    'interrupted',
    `pool ${pool.name}: the cloud took spot machine ${made.machine.name} away`,
  );
  simulation.toReconcile.add(cluster);
}

function scaleIn(simulation: Simulation, cluster: RehearsedCluster): boolean {
  const surplus = [...cluster.pools.values()].filter((pool) => pool.taken.size > pool.wanted);
  if (surplus.length === 0) return false;
  const pools = surplus.map((pool) => ({ name: pool.name, count: pool.wanted }));
  const machines = [...cluster.machines.values()].map(({ machine }) => machine);
  for (const { pool, victims, remaining } of planScaleIn(pools, machines, cluster.nodes, podsOf(simulation, cluster))) {
    const before = cluster.pools.get(pool)!.taken.size;
    removeMachines(
      simulation,
      cluster,
      victims.map(({ name }) => cluster.machines.get(name)!),
    );
    tellEvent(
      simulation,
      cluster,
      'scaled-in',
      `pool ${pool}: ${victims.length} machines taken away (${before} -> ${remaining})`,
    );
  }
  return true;
}

/** Without workloads nodes have no pods. */
const podsOf = ({ work }: Simulation, { key, nodes }: RehearsedCluster): ReadonlyMap<string, readonly Pod[]> =>
  work ? new Map([...nodes.keys()].map((node) => [node, work.podsOn(key, node)])) : NO_PODS;

export function removeMachines(
  simulation: Simulation,
  cluster: RehearsedCluster,
  gone: readonly SimulatedMachine[],
): void {
  for (const made of gone) {
    const { name, nodeName } = made.machine;
    const pool = cluster.pools.get(made.machine.pool)!;
    made.gone = true;
    cluster.machines.delete(name);
    cluster.nodes.delete(nodeName);
    simulation.work?.removeNode(cluster.key, nodeName, simulation.now);
    pool.taken.delete(made.index);
    if (made.ready) pool.ready--;
    payRest(simulation, cluster, pool, made);
    meter(simulation, cluster, pool, -1);
    nodesChanged(pool.line, missing(pool), simulation.now, cluster.waits);
    const profile = cluster.profile!;
    const { region } = cluster.shoot!.spec;
    const usage = added(usageIn(simulation, profile, region), made.capacity, -1);
    cloudOf(simulation, profile).usage.set(region, usage);
  }
}

const missing = ({ wanted, ready }: PoolState): number => Math.max(0, wanted - ready);

/** A cloud's charges for a machine beyond its life: the started billing step, and the minimum. */
function payRest(
  simulation: Simulation,
  { profile }: RehearsedCluster,
  pool: PoolState,
  { askedAt }: SimulatedMachine,
): void {
  const lifeMs = simulation.now - askedAt;
  const restMs = billedMs(lifeMs, billingOf(profile!, 'machines')) - lifeMs;
  pool.meter.ms += restMs;
  simulation.machines.ms += restMs;
}

function meter(simulation: Simulation, cluster: RehearsedCluster, pool: PoolState, change: 1 | -1): void {
  countEvent(pool.meter, change, simulation.now);
  countEvent(simulation.machines, change, simulation.now);
  cluster.peak = Math.max(cluster.peak, cluster.machines.size);
  simulation.peak = Math.max(simulation.peak, simulation.machines.count);
}

const readyNode = ({ nodeName, createdAt }: Machine, now: Date): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: nodeName, uid: `${nodeName} of ${createdAt}`, creationTimestamp: now.toISOString() },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});

/** Reports a refusal and schedules the operator's retry. */
function failed(
  simulation: Simulation,
  cluster: RehearsedCluster,
  { code, message }: MachineRefusal,
  what: string,
): void {
  noteRefusedWork(simulation, cluster, code, `${what}: ${message}`);
  const told = `${message} (${code})`;
  if (told !== cluster.machineRefusal) tellEvent(simulation, cluster, 'refused', `${what}: ${told}`);
  cluster.machineRefusal = told;
  cluster.machineRefusalCode = code;
  const { seed } = simulationOf(cluster.profile!);
  const jitter = draw(seed, 'back-off', cluster.key, cluster.sequence);
  const retry = retryOf([{ error: new CoppiceError(code, message), count: cluster.failures + 1 }], false, jitter);
  const news = cluster.machines.size > 0 ? NODE_NEWS_MS : Number.POSITIVE_INFINITY;
  const delay =
    retry === 'by-queue'
      ? Math.max(1, Math.round(backoffMs(cluster.failures, jitter)))
      : Math.min(news, retry === 'never' ? Number.POSITIVE_INFINITY : retry.afterMs);
  cluster.failures++;
  if (delay === Number.POSITIVE_INFINITY) return;
  const at = simulation.now + delay;
  // The shortest of several delays counts, as in the operator's queue.
  if (cluster.retryAt !== undefined && cluster.retryAt > simulation.now && cluster.retryAt <= at) return;
  cluster.retryAt = at;
  simulation.events.add({
    at,
    isLive: () => cluster.retryAt === at && cluster.shoot !== undefined,
    run: () => void simulation.toReconcile.add(cluster),
  });
}
