import { isDeepStrictEqual } from 'node:util';
import type { Machine, Pool } from '../../providers/contract.ts';
import type { Capacity } from '../../providers/machine-types.ts';
import { type Bucket, NO_USAGE, type Usage } from '../../providers/simulated/cloud-model.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ErrorCode } from '../api/errors.ts';
import { technicalID } from '../api/names.ts';
import type { Shoot } from '../api/shoot.ts';
import { profileNameOf, type WorkerCluster, type WorkerClusterSpec } from '../api/workercluster.ts';
import { DepletedOffers } from '../capacity/depleted-offers.ts';
import { type DecidedSize, within } from '../capacity/desired-sizes.ts';
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
import { WorkState } from './work.ts';

/** What a line of the timeline is about. */
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
  /** Machines and Ready nodes of the cluster from this moment on. */
  machines: number;
  ready: number;
}

/** Adds up how long how many of something were there. */
export interface Meter {
  count: number;
  since: number;
  /** Until `since`. */
  ms: number;
}

export const newMeter = (): Meter => ({ count: 0, since: 0, ms: 0 });

/** Count times milliseconds until now. */
export const metered = ({ count, since, ms }: Meter, now: number): number => ms + count * (now - since);

export function count(meter: Meter, change: number, now: number): void {
  meter.ms = metered(meter, now);
  meter.since = now;
  meter.count += change;
}

export interface SimulatedMachine {
  readonly machine: Machine;
  readonly index: number;
  readonly capacity: Capacity;
  readonly askedAt: number;
  /** Empty where the region has none. */
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
  /** The first one's. */
  message: string;
  times: number;
  first: number;
  last: number;
}

/** What was made of a cluster in one place. */
export interface Made {
  /** As it is written for that place. */
  readonly manifest: WorkerCluster;
  readonly profile: CloudProfile | undefined;
  readonly pools: readonly PoolState[];
  readonly controlPlane: Meter;
}

export interface ClusterState {
  /** namespace/name. */
  readonly key: string;
  readonly technicalID: string;
  readonly manifest: WorkerCluster;
  /** As it is written by now; the spec of `object` is the same as it would be written for the place that it is in. */
  spec: WorkerClusterSpec;
  /** 0: its own place; otherwise the number of the fallback. */
  place: number;
  /** Of that place. */
  profile: CloudProfile | undefined;
  /** All that it asked for was there once: from then on it stays in its place. */
  isMade: boolean;
  /** What was made of it in places that it has left. */
  readonly left: Made[];
  /** How often it was created: tells a cluster from an earlier one of the same name. */
  incarnation: number;
  /** Absent: it does not exist. */
  object?: WorkerCluster | undefined;
  shoot?: Shoot | undefined;
  orderedAt: number;
  /** Whether its control plane serves, and since when. */
  serves: boolean;
  servesSince: number;
  /** What a policy has it do, whatever its spec says. */
  sleepOrder?: SleepOrder | undefined;
  /** Whether it has had a Ready node since it was made here, or woken. */
  hasHadNode: boolean;
  /** Its control plane is stopped, as it sleeps and no cloud runs it. */
  isStopped: boolean;
  /** What was decided for its pools. */
  readonly decided: Map<string, DecidedSize>;
  /** What its autoscaler remembers. */
  autoscaler: ClusterMemory;
  /** The version of the work that its autoscaler saw last. */
  sizedFor: number;
  sizeAgainAt?: number | undefined;
  /** Of one that a policy has bought. */
  readonly candidate?: string | undefined;
  /** As the Shoot asks for them. */
  wanted: readonly Pool[];
  pools: Map<string, PoolState>;
  readonly machines: Map<string, SimulatedMachine>;
  /** Ready nodes by name. */
  readonly nodes: Map<string, Node>;
  /** Machines that were asked for on its behalf. */
  sequence: number;
  /** Failed tries since the last one that went well. */
  failures: number;
  retryAt?: number | undefined;
  /** When the operator looks again at what is sold out. */
  lookAgainAt?: number | undefined;
  /** What was refused last and not granted since, so that it is told once. */
  specRefusal?: string | undefined;
  machineRefusal?: string | undefined;
  machineRefusalCode?: ErrorCode | undefined;
  readonly refused: Map<ErrorCode, Refused>;
  readonly waits: WaitHistogram;
  controlPlane: Meter;
  peak: number;
}

/** Everything that changes in a rehearsal. */
export interface Simulation {
  readonly scenario: Scenario;
  /** Virtual clock, milliseconds. */
  now: number;
  /** What is added to the virtual clock to make a date of it. */
  readonly epoch: number;
  readonly events: EventQueue<void | Promise<void>>;
  readonly clusters: Map<string, ClusterState>;
  /** By profile; usage by region. */
  readonly clouds: Map<string, { bucket?: Bucket; usage: Map<string, Usage> }>;
  /** To be decided on anew, and to have their machines looked at. */
  readonly toPlan: Set<ClusterState>;
  readonly toReconcile: Set<ClusterState>;
  readonly machines: Meter;
  /** What the operator remembers of machines that were sold out. */
  readonly capacity: DepletedOffers;
  peak: number;
  /** Workloads and where they run; undefined: the trace has none. */
  readonly work: WorkState | undefined;
  /** What the policy of the scenario remembers; undefined: there is none. */
  rehearsed?: RehearsedPolicy | undefined;
  readonly standings: Standings;
  readonly tell: (entry: Entry) => void;
  /** See RehearsalOptions. */
  readonly worldOf?: ((simulated: BurstWorld, simulation: Simulation) => BurstWorld) | undefined;
  readonly nodesOf?:
    | ((simulated: NodesWorld, simulation: Simulation, cluster: ClusterState) => Promise<NodesWorld>)
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
    work: hasWork ? new WorkState(events) : undefined,
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
): ClusterState => ({
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

/** What the cloud of a profile has given out in a region, and its line of requests. */
export function cloudOf(simulation: Simulation, profile: CloudProfile) {
  const { name } = profile.metadata;
  let cloud = simulation.clouds.get(name);
  if (!cloud) {
    cloud = { usage: new Map() };
    simulation.clouds.set(name, cloud);
  }
  return cloud;
}

export const usageIn = (simulation: Simulation, profile: CloudProfile, region: string): Usage =>
  cloudOf(simulation, profile).usage.get(region) ?? NO_USAGE;

/** Stores what a pool should have, as an operator does: within its minimum and maximum, unless a person fixed its size. */
export function storeSize(
  simulation: Simulation,
  cluster: ClusterState,
  pool: Decision['pool'],
  size: DecidedSize,
): void {
  if (pool.sizedBy === 'person') return;
  const before = cluster.decided.get(pool.name);
  const memory = size.memory ?? before?.memory;
  const stored = { ...size, count: within(pool, size.count), ...(memory && { memory }) };
  cluster.decided.set(pool.name, stored);
  const isSame = before?.count === stored.count && isDeepStrictEqual(before.leaving, stored.leaving);
  if (!isSame) simulation.toPlan.add(cluster);
}

export function tell(simulation: Simulation, cluster: ClusterState, kind: EntryKind, message: string): void {
  const machines = cluster.machines.size;
  simulation.tell({ at: simulation.now, cluster: cluster.key, kind, message, machines, ready: cluster.nodes.size });
}

export function noteRefusal(simulation: Simulation, { refused }: ClusterState, code: ErrorCode, message: string): void {
  const known = refused.get(code);
  if (known) {
    known.times++;
    known.last = simulation.now;
  } else {
    refused.set(code, { code, message, times: 1, first: simulation.now, last: simulation.now });
  }
}
