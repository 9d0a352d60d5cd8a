import { controlPlaneCreation } from '../../providers/simulated/cloud-model.ts';
import { simulated } from '../../providers/simulated/index.ts';
import { simulationOf } from '../../providers/simulated/settings.ts';
import { findCondition } from '../api/conditions.ts';
import type { ErrorCode } from '../api/errors.ts';
import { FINALIZER, LABELS } from '../api/group.ts';
import type { LastError } from '../api/meta.ts';
import { spotPools } from '../api/pools.ts';
import { controlPlaneMembers, type Shoot, type ShootStatus } from '../api/shoot.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import { ClusterMemory } from '../controllers/autoscaling/memory.ts';
import { OVER_QUOTA } from '../controllers/quota/claimants.ts';
import { poolsOfShoot } from '../controllers/shoot/pools.ts';
import { planWorkerCluster, type WorkerClusterView } from '../controllers/workercluster/plan.ts';
import type { ProjectShare } from '../controllers/workercluster/view.ts';
import type { Claimant } from '../cost/admission.ts';
import { askedSize } from '../cost/size.ts';
import { removeMachines } from './machines.ts';
import { modeOf } from './members.ts';
import { fallbacksOf, goTo, nameOfPlace, placeInstead } from './places.ts';
import {
  countEvent,
  dateOf,
  newPool,
  noteRefusedWork,
  type RehearsedCluster,
  type Simulation,
  tellEvent,
} from './state.ts';
import { demandChanged } from './waits.ts';

/** Plans the cluster with the operator's own decider, and applies the plan. */
export function planCluster(simulation: Simulation, cluster: RehearsedCluster): void {
  const { object } = cluster;
  if (!object) return;
  const view = viewOf(simulation, cluster);
  const place = object.metadata.deletionTimestamp ? undefined : placeInstead(simulation, cluster, view);
  if (place !== undefined) {
    moveTo(simulation, cluster, place);
    return;
  }
  const plan = planWorkerCluster(view, dateOf(simulation));
  // The autoscaler reacts to each change of a cluster.
  cluster.sizedFor = -1;
  const finalizers = plan.finalizer === 'add' ? [FINALIZER] : object.metadata.finalizers;
  cluster.object = {
    ...object,
    metadata: { ...object.metadata, ...(finalizers && { finalizers }) },
    status: plan.status,
  };
  if (!object.metadata.deletionTimestamp) tellRefusal(simulation, cluster, plan.status.lastErrors ?? []);
  if (plan.shoot) followShoot(simulation, cluster, plan.shoot);
  simulation.capacity.settle(object.metadata.uid ?? '', ({ part }) => plan.filled?.includes(part) ?? false);
  if (plan.next) lookAgain(simulation, cluster, +plan.next - simulation.epoch);
  if (plan.deleteShoot) {
    end(simulation, cluster);
    // With nothing left, the decider removes the finalizer.
    simulation.toPlan.add(cluster);
  }
  // An object without finalizers is deleted at once, as by the API server.
  if (object.metadata.deletionTimestamp && (plan.finalizer === 'remove' || !finalizers?.length)) {
    cluster.object = undefined;
    tellEvent(simulation, cluster, 'deleted', 'the cluster is gone');
  }
}

/** To be called after a change of a cluster's machines: the quotas of its project are evaluated again. */
export function sizeChanged(simulation: Simulation, cluster: RehearsedCluster): void {
  // A sleeping cluster's cost follows from its machines.
  if (cluster.object?.status?.hibernation) simulation.toPlan.add(cluster);
  if (quotasOf(simulation, cluster).length === 0) return;
  simulation.toPlan.add(cluster);
  for (const other of neighbours(simulation, cluster)) if (waitsForQuota(other)) simulation.toPlan.add(other);
}

const quotasOf = ({ scenario }: Simulation, { manifest }: RehearsedCluster) =>
  scenario.quotas.filter((quota) => quota.metadata.namespace === manifest.metadata.namespace);

const neighbours = (simulation: Simulation, cluster: RehearsedCluster): RehearsedCluster[] =>
  [...simulation.clusters.values()].filter(
    (other) =>
      other !== cluster && other.object && other.manifest.metadata.namespace === cluster.manifest.metadata.namespace,
  );

const waitsForQuota = ({ object }: RehearsedCluster): boolean =>
  findCondition(object?.status?.conditions, 'SpecAccepted')?.reason === OVER_QUOTA;

function viewOf(simulation: Simulation, cluster: RehearsedCluster): WorkerClusterView {
  const { object, profile, shoot } = cluster;
  return {
    cluster: object!,
    profile,
    profileNames: [...simulation.scenario.profiles.keys()],
    provider: profile && simulated,
    shoot: shoot && { ...shoot, status: shootStatus(cluster) },
    fallbacks: fallbacksOf(simulation, cluster),
    project: projectShare(simulation, cluster),
    capacity: simulation.capacity.known(object?.metadata ?? {}),
    ...(simulation.work && { decided: cluster.decided }),
    ...(cluster.sleepOrder && { sleepOrder: cluster.sleepOrder }),
  };
}

function projectShare(simulation: Simulation, cluster: RehearsedCluster): ProjectShare {
  const quotas = quotasOf(simulation, cluster);
  const held = cluster.object?.status?.admitted;
  // Without quotas no other cluster is read, as in the operator.
  const others = quotas.length > 0 ? neighbours(simulation, cluster).map((other) => claimant(simulation, other)) : [];
  return { quotas, held, others };
}

/** Claimants of a namespace's quotas. */
export const rehearsedClaimantsIn = (simulation: Simulation, namespace: string): Claimant[] =>
  [...simulation.clusters.values()]
    .filter(({ object, manifest }) => object && manifest.metadata.namespace === namespace)
    .map((cluster) => claimant(simulation, cluster));

function claimant(simulation: Simulation, cluster: RehearsedCluster): Claimant {
  const { key, object, profile } = cluster;
  const waiting = simulation.toPlan.has(cluster) || waitsForQuota(cluster);
  return {
    key,
    createdAt: object?.metadata.creationTimestamp ?? '',
    profile,
    held: object?.status?.admitted,
    asked:
      profile && object && waiting ? askedSize(object, profile, desiredSizes({ cluster: object, profile })) : undefined,
  };
}

/** The Shoot's status as its controller would write it, as far as deciders read it. */
function shootStatus({ shoot, serves, isStopped, pools, machines, nodes }: RehearsedCluster): ShootStatus {
  const workers = [...pools.values()];
  return {
    // A cluster that was never completed cannot sleep.
    ...((serves || isStopped) && { lastOperation: MADE }),
    ...(serves && shoot?.spec.kubernetes.version && { kubernetesVersion: shoot.spec.kubernetes.version }),
    nodes: {
      desired: workers.reduce((sum, pool) => sum + pool.wanted, 0),
      current: machines.size,
      ready: nodes.size,
    },
    workers: workers.map(({ name, wanted, taken, ready }) => ({ name, desired: wanted, current: taken.size, ready })),
  };
}

const MADE = { type: 'Create', state: 'Succeeded' } as NonNullable<ShootStatus['lastOperation']>;

/** Plans the cluster again when depleted offers are retried: no event announces that. */
function lookAgain(simulation: Simulation, cluster: RehearsedCluster, at: number): void {
  if (cluster.lookAgainAt === at) return;
  cluster.lookAgainAt = at;
  const isLive = () => cluster.lookAgainAt === at && cluster.object !== undefined;
  simulation.events.add({
    at: Math.max(at, simulation.now + 1),
    isLive,
    run: () => void simulation.toPlan.add(cluster),
  });
}

function tellRefusal(simulation: Simulation, cluster: RehearsedCluster, errors: readonly LastError[]): void {
  const ofSpec = errors.filter(({ taskID }) => taskID?.startsWith('spec.'));
  const message = ofSpec.map(({ taskID, description }) => `${taskID}: ${description}`).join('; ');
  if (message === cluster.specRefusal) return;
  cluster.specRefusal = message || undefined;
  if (message === '') return;
  const code = (ofSpec[0]!.codes?.[0] ?? 'ERR_CONFIGURATION_PROBLEM') as ErrorCode;
  noteRefusedWork(simulation, cluster, code, message);
  tellEvent(simulation, cluster, 'refused', `${message} (${code})`);
}

function followShoot(simulation: Simulation, cluster: RehearsedCluster, shoot: Shoot): void {
  const before = cluster.shoot;
  const isNew = before === undefined;
  cluster.shoot = shoot;
  const spot = spotPools(cluster.object!);
  const isAsleep = shoot.spec.hibernation?.enabled === true;
  cluster.wanted = poolsOfShoot(shoot).map((pool) => ({
    ...pool,
    ...(isAsleep && { count: 0 }),
    spot: spot.has(pool.labels[LABELS.alternativeOf] ?? pool.name),
  }));
  for (const state of cluster.pools.values()) {
    if (cluster.wanted.some(({ name }) => name === state.name)) continue;
    state.wanted = 0;
    demandChanged(state.line, 0, simulation.now);
  }
  for (const pool of cluster.wanted) {
    const state = cluster.pools.get(pool.name) ?? newPool(pool.name);
    cluster.pools.set(pool.name, state);
    Object.assign(state, { machineType: pool.machineType, spot: pool.spot, wanted: pool.count });
    demandChanged(state.line, Math.max(0, state.wanted - state.ready), simulation.now);
  }
  if (isNew) {
    const { spec } = shoot;
    const nodes = cluster.wanted.reduce((sum, pool) => sum + pool.count, 0);
    const what = `Kubernetes ${spec.kubernetes.version}, control plane of ${controlPlaneMembers(spec)}`;
    tellEvent(simulation, cluster, 'created', `${spec.region}, ${what}, wants ${nodes} nodes`);
    startControlPlane(simulation, cluster);
    return;
  }
  simulation.toReconcile.add(cluster);
  if (isAsleep !== (before.spec.hibernation?.enabled === true)) followSleep(simulation, cluster, isAsleep);
}

/**
 * A hosted control plane stops while its cluster sleeps, and takes as long as a new one to start. A managed one keeps
 * running and is billed.
 */
function followSleep(simulation: Simulation, cluster: RehearsedCluster, isAsleep: boolean): void {
  const isHosted = modeOf(cluster.manifest, cluster.profile) === 'Hosted';
  if (!isAsleep) {
    // Workloads that the cluster is woken for wait from now on.
    cluster.orderedAt = simulation.now;
    if (cluster.isStopped) startControlPlane(simulation, cluster);
    cluster.isStopped = false;
    return;
  }
  tellEvent(
    simulation,
    cluster,
    'asleep',
    isHosted ? 'it sleeps' : 'it sleeps; its control plane stays, and is paid for',
  );
  if (!isHosted) return;
  removeMachines(simulation, cluster, [...cluster.machines.values()]);
  countEvent(cluster.controlPlane, -1, simulation.now);
  Object.assign(cluster, { serves: false, isStopped: true });
  sizeChanged(simulation, cluster);
}

function startControlPlane(simulation: Simulation, cluster: RehearsedCluster): void {
  const { incarnation, key, place } = cluster;
  countEvent(cluster.controlPlane, 1, simulation.now);
  simulation.events.add({
    at: simulation.now + controlPlaneCreation(simulationOf(cluster.profile!), key, incarnation),
    isLive: () => cluster.incarnation === incarnation && cluster.place === place && cluster.shoot !== undefined,
    run: () => {
      cluster.serves = true;
      cluster.servesSince = simulation.now;
      tellEvent(simulation, cluster, 'serves', 'the control plane serves');
      // A cluster that shall sleep does so once completed, before its machines come.
      if (cluster.object?.status?.hibernation) simulation.toPlan.add(cluster);
      simulation.toReconcile.add(cluster);
    },
  });
}

/** Moves the cluster to another place after its offers were depleted. */
function moveTo(simulation: Simulation, cluster: RehearsedCluster, place: number): void {
  const [from, to] = [cluster.place, place].map((one) => nameOfPlace(simulation, cluster, one));
  simulation.capacity.left(cluster.object!.metadata.uid ?? '', cluster.place);
  takeAway(simulation, cluster);
  goTo(simulation, cluster, place);
  tellEvent(simulation, cluster, 'moved', `no machines are left for it in ${from}: it is made in ${to} instead`);
}

/** Ends a deleted cluster: its waiting requests are cancelled. */
function end(simulation: Simulation, cluster: RehearsedCluster): void {
  for (const pool of cluster.pools.values()) {
    pool.wanted = 0;
    demandChanged(pool.line, 0, simulation.now);
  }
  takeAway(simulation, cluster);
  cluster.decided.clear();
}

/** Removes a cluster's machines and control plane; the simulated cloud takes no time for it. */
function takeAway(simulation: Simulation, cluster: RehearsedCluster): void {
  removeMachines(simulation, cluster, [...cluster.machines.values()]);
  if (cluster.shoot && !cluster.isStopped) countEvent(cluster.controlPlane, -1, simulation.now);
  Object.assign(cluster, {
    shoot: undefined,
    serves: false,
    servesSince: 0,
    isStopped: false,
    wanted: [],
    failures: 0,
  });
  cluster.autoscaler = new ClusterMemory(cluster.autoscaler.uid);
  cluster.retryAt = undefined;
  cluster.machineRefusal = undefined;
  sizeChanged(simulation, cluster);
}
