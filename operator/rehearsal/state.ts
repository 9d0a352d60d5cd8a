import { isDeepStrictEqual } from 'node:util';
import type { Machine, Pool } from '../../providers/contract.ts';
import type { Capacity } from '../../providers/machine-types.ts';
import { type Bucket, NO_USAGE, type QuotaUsage } from '../../providers/simulated/cloud-model.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ErrorCode } from '../api/errors.ts';
import { technicalID } from '../api/names.ts';
import type { Shoot } from '../api/shoot.ts';
import { profileNameOf, type WorkerCluster, type WorkerClusterSpec } from '../api/workercluster.ts';
import { DepletedOffers } from '../capacity/depleted-offers.ts';
import { boundSize, type DecidedSize } from '../capacity/desired-sizes.ts';
import type { SleepOrder } from '../capacity/sleep-order.ts';
import { ClusterMemory } from '../controllers/autoscaling/memory.ts';
import type { NodesWorld } from '../controllers/autoscaling/world.ts';
import type { BurstWorld } from '../controllers/burst/world.ts';
import type { Decision } from '../controllers/decided-sizes.ts';
import type { Node } from '../kube/resources.ts';
import { EventQueue } from './event-queue.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import type { Scenario } from './scenario.ts';
import { Standings } from './standings.ts';
import { emptyHistogram, emptyLine, type WaitHistogram, type WaitingLine } from './waits.ts';
import { RehearsedWorkState } from './work.ts';

/** Kind of a timeline entry. */
export type EntryKind =
  | 'created'
  | 'moved'
  | 'serves'
  | 'asked'
  | 'ready'
  | 'refused'
  | 'interrupted'
  | 'scaled-in'
  | 'deleted'
  | 'bought'
  | 'opened'
  | 'woken'
  | 'asleep'
  | 'put-to-sleep'
  | 'emptied'
  | 'cut'
  | 'kept'
  | 'given-back';

/** One line of the timeline. */
export interface Entry {
  /** Milliseconds on the virtual clock. */
  at: number;
  /** namespace/name. */
  cluster: string;
  kind: EntryKind;
  message: string;
  /** Machines and Ready nodes of the cluster from this time on. */
  machines: number;
  ready: number;
}

/** Integrates a count over time. */
export interface Meter {
  count: number;
  since: number;
  /** Sum until `since`. */
  ms: number;
}

export const newMeter = (): Meter => ({ count: 0, since: 0, ms: 0 });

/** Count times milliseconds until now. */
export const metered = ({ count, since, ms }: Meter, now: number): number => ms + count * (now - since);

export function countEvent(meter: Meter, change: number, now: number): void {
  meter.ms = metered(meter, now);
  meter.since = now;
  meter.count += change;
}

export interface SimulatedMachine {
  readonly machine: Machine;
  readonly index: number;
  readonly capacity: Capacity;
  readonly askedAt: number;
  /** Empty in a region without zones. */
  readonly zone: string;
  ready: boolean;
  gone: boolean;
}

export interface PoolState {
  readonly name: string;
  machineType: string;
  spot: boolean;
  wanted: number;
  ready: number;
  /** Numbers of its machines. */
  readonly taken: Set<number>;
  readonly line: WaitingLine;
  readonly meter: Meter;
}

/** Refusals with one error code. */
export interface Refused {
  code: ErrorCode;
  /** Message of the first one. */
  message: string;
  times: number;
  first: number;
  last: number;
}

/** Resources of a cluster in one place. */
export interface Made {
  /** The cluster's spec for that place. */
  readonly manifest: WorkerCluster;
  readonly profile: CloudProfile | undefined;
  readonly pools: readonly PoolState[];
  readonly controlPlane: Meter;
}

export interface RehearsedCluster {
  /** namespace/name. */
  readonly key: string;
  readonly technicalID: string;
  readonly manifest: WorkerCluster;
  /** The current spec as written; the spec of `object` is the one for its present place. */
  spec: WorkerClusterSpec;
  /** 0: its own place; otherwise the number of the fallback. */
  place: number;
  /** Profile of that place. */
  profile: CloudProfile | undefined;
  /** The cluster was complete once: from then on it keeps its place. */
  isMade: boolean;
  /** Resources in places it has left. */
  readonly left: Made[];
  /** Number of creations: distinguishes a cluster from an earlier one of the same name. */
  incarnation: number;
  /** Absent: it does not exist. */
  object?: WorkerCluster | undefined;
  shoot?: Shoot | undefined;
  orderedAt: number;
  /** Whether its control plane serves, and since when. */
  serves: boolean;
  servesSince: number;
  /** A policy's sleep order, which overrides the spec. */
  sleepOrder?: SleepOrder | undefined;
  /** Whether it has had a Ready node since it was created here or woken. */
  hasHadNode: boolean;
  /** Its hosted control plane is stopped during sleep. */
  isStopped: boolean;
  /** Sizes decided for its pools. */
  readonly decided: Map<string, DecidedSize>;
  /** Memory of its autoscaler. */
  autoscaler: ClusterMemory;
  /** Version of the workloads at its autoscaler's last run. */
  sizedFor: number;
  sizeAgainAt?: number | undefined;
  /** Candidate of a bought cluster. */
  readonly candidate?: string | undefined;
  /** Pools of the Shoot's spec. */
  wanted: readonly Pool[];
  pools: Map<string, PoolState>;
  readonly machines: Map<string, SimulatedMachine>;
  /** Ready nodes by name. */
  readonly nodes: Map<string, Node>;
  /** Number of machines requested for it. */
  sequence: number;
  /** Failed attempts since the last success. */
  failures: number;
  retryAt?: number | undefined;
  /** Next retry of depleted offers. */
  lookAgainAt?: number | undefined;
  /** The last refusal, kept until it is granted, so that it is reported once. */
  specRefusal?: string | undefined;
  machineRefusal?: string | undefined;
  machineRefusalCode?: ErrorCode | undefined;
  readonly refused: Map<ErrorCode, Refused>;
  readonly waits: WaitHistogram;
  controlPlane: Meter;
  peak: number;
}

/** Mutable state of a rehearsal. */
export interface Simulation {
  readonly scenario: Scenario;
  /** Virtual clock, milliseconds. */
  now: number;
  /** Offset from the virtual clock to dates. */
  readonly epoch: number;
  readonly events: EventQueue<void | Promise<void>>;
  readonly clusters: Map<string, RehearsedCluster>;
  /** By profile; usage by region. */
  readonly clouds: Map<string, { bucket?: Bucket; usage: Map<string, QuotaUsage> }>;
  /** Clusters to plan, and clusters whose machines are to be reconciled. */
  readonly toPlan: Set<RehearsedCluster>;
  readonly toReconcile: Set<RehearsedCluster>;
  readonly machines: Meter;
  /** The operator's memory of depleted offers. */
  readonly capacity: DepletedOffers;
  peak: number;
  /** Workloads and their nodes; undefined: the trace has none. */
  readonly work: RehearsedWorkState | undefined;
  /** The operator's memory of the scenario's policy; undefined: there is none. */
  rehearsed?: RehearsedPolicy | undefined;
  readonly standings: Standings;
  readonly tell: (entry: Entry) => void;
  /** See RehearsalOptions. */
  readonly worldOf?: ((simulated: BurstWorld, simulation: Simulation) => BurstWorld) | undefined;
  readonly nodesOf?:
    | ((simulated: NodesWorld, simulation: Simulation, cluster: RehearsedCluster) => Promise<NodesWorld>)
    | undefined;
}

interface SimulationOptions {
  readonly start: number;
  readonly epoch: number;
  /** Whether the trace has workloads. */
  readonly hasWork: boolean;
  readonly tell: (entry: Entry) => void;
  readonly worldOf?: Simulation['worldOf'];
  readonly nodesOf?: Simulation['nodesOf'];
}

export function newSimulation(
  scenario: Scenario,
  { start, epoch, hasWork, tell, worldOf, nodesOf }: SimulationOptions,
): Simulation {
  const events = new EventQueue<void | Promise<void>>();
  const clusters = new Map(
    [...scenario.clusters].map(
      ([key, manifest]) =>
        [key, newCluster(key, manifest, scenario, key === scenario.overflow ? 'autoscaled' : undefined)] as const,
    ),
  );
  const simulation: Simulation = {
    scenario,
    now: start,
    epoch,
    events,
    clusters,
    clouds: new Map(),
    toPlan: new Set(),
    toReconcile: new Set(),
    machines: newMeter(),
    capacity: new DepletedOffers(() => dateOf(simulation)),
    peak: 0,
    work: hasWork ? new RehearsedWorkState(events) : undefined,
    standings: new Standings(),
    tell,
    worldOf,
    nodesOf,
  };
  return simulation;
}

export const newCluster = (
  key: string,
  manifest: WorkerCluster,
  { profiles }: Scenario,
  candidate?: string,
): RehearsedCluster => ({
  key,
  technicalID: technicalID(manifest.metadata.namespace ?? '', manifest.metadata.name),
  manifest,
  spec: manifest.spec,
  place: 0,
  profile: profiles.get(profileNameOf(manifest)),
  isMade: false,
  left: [],
  incarnation: 0,
  orderedAt: 0,
  serves: false,
  servesSince: 0,
  hasHadNode: false,
  isStopped: false,
  decided: new Map(),
  autoscaler: new ClusterMemory(''),
  sizedFor: -1,
  candidate,
  wanted: [],
  pools: new Map(),
  machines: new Map(),
  nodes: new Map(),
  sequence: 0,
  failures: 0,
  refused: new Map(),
  waits: emptyHistogram(),
  controlPlane: newMeter(),
  peak: 0,
});

export const newPool = (name: string): PoolState => ({
  name,
  machineType: '',
  spot: false,
  wanted: 0,
  ready: 0,
  taken: new Set(),
  line: emptyLine(),
  meter: newMeter(),
});

export const dateOf = (simulation: Simulation): Date => new Date(simulation.epoch + simulation.now);

/** A simulated cloud's usage in a region, and its rate limit. */
export function cloudOf(simulation: Simulation, profile: CloudProfile) {
  const { name } = profile.metadata;
  let cloud = simulation.clouds.get(name);
  if (!cloud) {
    cloud = { usage: new Map() };
    simulation.clouds.set(name, cloud);
  }
  return cloud;
}

export const usageIn = (simulation: Simulation, profile: CloudProfile, region: string): QuotaUsage =>
  cloudOf(simulation, profile).usage.get(region) ?? NO_USAGE;

/** Stores a pool's desired size as the operator does: within its minimum and maximum, unless a person fixed it. */
export function storeSize(
  simulation: Simulation,
  cluster: RehearsedCluster,
  pool: Decision['pool'],
  size: DecidedSize,
): void {
  if (pool.sizedBy === 'person') return;
  const before = cluster.decided.get(pool.name);
  const memory = size.memory ?? before?.memory;
  const stored = { ...size, count: boundSize(pool, size.count), ...(memory && { memory }) };
  cluster.decided.set(pool.name, stored);
  const isSame = before?.count === stored.count && isDeepStrictEqual(before.leaving, stored.leaving);
  if (!isSame) simulation.toPlan.add(cluster);
}

export function tellEvent(simulation: Simulation, cluster: RehearsedCluster, kind: EntryKind, message: string): void {
  const machines = cluster.machines.size;
  simulation.tell({ at: simulation.now, cluster: cluster.key, kind, message, machines, ready: cluster.nodes.size });
}

export function noteRefusedWork(
  simulation: Simulation,
  { refused }: RehearsedCluster,
  code: ErrorCode,
  message: string,
): void {
  const known = refused.get(code);
  if (known) {
    known.times++;
    known.last = simulation.now;
  } else {
    refused.set(code, { code, message, times: 1, first: simulation.now, last: simulation.now });
  }
}
