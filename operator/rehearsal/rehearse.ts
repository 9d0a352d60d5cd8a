import type { WorkerCluster, WorkerClusterSpec } from '../api/workercluster.ts';
import { lookAtNodes } from '../controllers/autoscaling/look.ts';
import { isOpenToDecisions } from '../controllers/autoscaling/observe.ts';
import { demandProblem } from './admission.ts';
import { newRehearsedPolicy, planLook } from './burst.ts';
import { createCluster, deleteCluster } from './lifecycle.ts';
import { reconcileMachines } from './machines.ts';
import { simulatedNodes } from './nodes-world.ts';
import { rewrite } from './places.ts';
import { planCluster, sizeChanged } from './planning.ts';
import { type Report, reportOf } from './report.ts';
import type { Scenario } from './scenario.ts';
import { noteStanding } from './standing-now.ts';
import {
  type Entry,
  newSimulation,
  noteRefusedWork,
  type RehearsedCluster,
  type Simulation,
  tellEvent,
} from './state.ts';
import { clusterOfLine, type Survey } from './survey.ts';
import type { TraceLine } from './trace/trace-line.ts';
import { traceProblem } from './trace/trace-text.ts';

/** Simulated evictions are never refused. */
const PATIENCE_MS = Number.POSITIVE_INFINITY;

const NEVER = new AbortController().signal;

/**
 * Runs the autoscaler for clusters whose nodes or workloads changed, or whose next run is due. @returns whether it acted
 */
async function sizeClusters(simulation: Simulation): Promise<boolean> {
  const { work, scenario } = simulation;
  let hasDone = false;
  for (const cluster of simulation.clusters.values()) {
    if (!work || !mayBeSized(cluster)) continue;
    const version = work.versionOf(cluster.key) + (cluster.key === scenario.overflow ? work.versionOf() : 0);
    if (cluster.sizedFor === version) continue;
    cluster.sizedFor = version;
    hasDone = (await sizeCluster(simulation, cluster, cluster.object)) || hasDone;
  }
  return hasDone;
}

const mayBeSized = (cluster: RehearsedCluster): cluster is RehearsedCluster & { object: WorkerCluster } =>
  cluster.object !== undefined && cluster.profile !== undefined && cluster.serves && isOpenToDecisions(cluster.object);

async function sizeCluster(simulation: Simulation, cluster: RehearsedCluster, object: WorkerCluster): Promise<boolean> {
  const acts = { count: 0 };
  const simulated = simulatedNodes(simulation, cluster, object, acts);
  const world = simulation.nodesOf ? await simulation.nodesOf(simulated, simulation, cluster) : simulated;
  const { next } = await lookAtNodes(world, cluster.autoscaler, PATIENCE_MS, NEVER);
  sizeAgain(simulation, cluster, next === undefined ? undefined : next - simulation.epoch);
  return acts.count > 0;
}

/**
 * Schedules the autoscaler's next run for a cluster; each run schedules anew. @param at on the virtual clock,
 * milliseconds
 */
function sizeAgain(simulation: Simulation, cluster: RehearsedCluster, at: number | undefined): void {
  const due = at === undefined ? undefined : Math.max(at, simulation.now + 1);
  if (cluster.sizeAgainAt === due) return;
  cluster.sizeAgainAt = due;
  if (due === undefined) return;
  simulation.events.add({
    at: due,
    isLive: () => cluster.sizeAgainAt === due && cluster.object !== undefined,
    run: () => {
      cluster.sizeAgainAt = undefined;
      cluster.sizedFor = -1;
    },
  });
}

export interface RehearsalOptions {
  /** End on the virtual clock, in milliseconds. Absent: the last line of the trace. */
  until?: number | undefined;
  /** Date at which a trace without dates begins, milliseconds since the epoch: Kubernetes versions expire. */
  epoch: number;
  /** Receives the timeline as it develops. */
  onEntry?(entry: Entry): void;
  /** Replaces the world of the policy's evaluations; absent: the simulation itself. For comparisons. */
  worldOf?: Simulation['worldOf'];
  /** The same for the nodes of one cluster. */
  nodesOf?: Simulation['nodesOf'];
  /** Called before each moment of the virtual clock, and awaited where it returns a promise: may delay or throw. */
  pace?(at: number): Promise<void> | undefined;
}

/** Runs a surveyed trace against the operator's deciders and the simulated cloud. Equal inputs give equal results. */
export async function rehearse(
  scenario: Scenario,
  trace: AsyncIterable<TraceLine>,
  survey: Survey,
  options: RehearsalOptions,
): Promise<Report> {
  const end = options.until ?? survey.last;
  const simulation = newSimulation(scenario, {
    start: survey.start,
    epoch: survey.dated ? 0 : options.epoch,
    hasWork: survey.hasWork,
    tell: (entry) => options.onEntry?.(entry),
    worldOf: options.worldOf,
    nodesOf: options.nodesOf,
  });
  if (scenario.policy && simulation.work) simulation.rehearsed = newRehearsedPolicy(scenario.policy);
  for (const cluster of simulation.clusters.values()) {
    if (!survey.created.has(cluster.key)) await make(simulation, cluster, cluster.manifest.spec);
  }
  for await (const line of trace) {
    if (line.at > end) break;
    if (line.at > simulation.now) await advance(simulation, line.at, options);
    await apply(simulation, line);
  }
  await advance(simulation, end, options);
  await settle(simulation);
  return reportOf(simulation, survey.start);
}

/** Runs everything before this moment; events at the moment itself wait for trace lines of the same time. */
async function advance(simulation: Simulation, to: number, options: RehearsalOptions): Promise<void> {
  await settle(simulation);
  for (let at = simulation.events.nextAt; at !== undefined && at < to; at = simulation.events.nextAt) {
    await moveTo(simulation, at, options);
    await settle(simulation);
  }
  await moveTo(simulation, to, options);
}

async function moveTo(simulation: Simulation, at: number, options: RehearsalOptions): Promise<void> {
  const wait = options.pace?.(at);
  if (wait) await wait;
  simulation.now = at;
}

/** Runs the present moment until nothing remains to be done in it. */
async function settle(simulation: Simulation): Promise<void> {
  for (;;) {
    while ((simulation.events.nextAt ?? Number.POSITIVE_INFINITY) <= simulation.now) {
      const event = simulation.events.take()!;
      const wait = event.isLive() ? event.run() : undefined;
      if (wait) await wait;
    }
    const [toPlan] = simulation.toPlan;
    const [toReconcile] = simulation.toReconcile;
    if (toPlan) {
      simulation.toPlan.delete(toPlan);
      planCluster(simulation, toPlan);
    } else if (toReconcile) {
      simulation.toReconcile.delete(toReconcile);
      if (reconcileMachines(simulation, toReconcile)) sizeChanged(simulation, toReconcile);
    } else if (!(await settleWork(simulation))) {
      noteStanding(simulation);
      return;
    }
  }
}

/** Places workloads, and sizes nodes and clusters for them. @returns whether a change needs settling */
async function settleWork(simulation: Simulation): Promise<boolean> {
  if (!simulation.work) return false;
  const hasPlaced = simulation.work.place(simulation.now);
  const hasSized = await sizeClusters(simulation);
  planLook(simulation);
  return hasPlaced || hasSized;
}

async function make(simulation: Simulation, cluster: RehearsedCluster, spec: WorkerClusterSpec): Promise<void> {
  // A cluster deleted at this moment is settled before the new one is created.
  if (cluster.object) await settle(simulation);
  createCluster(simulation, cluster, spec);
}

async function apply(simulation: Simulation, line: TraceLine): Promise<void> {
  if (line.event === 'time') return;
  if (line.event === 'work') {
    const problem = simulation.work!.ask(
      line.work!,
      line.cluster === '' ? undefined : clusterOfLine(line, simulation.scenario),
      simulation.now,
    );
    if (problem !== undefined) throw traceProblem(line.where, problem);
    return;
  }
  const cluster = simulation.clusters.get(clusterOfLine(line, simulation.scenario))!;
  if (line.event === 'delete') {
    deleteCluster(simulation, cluster);
    return;
  }
  const before = line.event === 'create' ? cluster.manifest.spec : cluster.spec;
  const spec = changed(before, line);
  const problem = demandProblem(spec);
  if (problem) {
    const message = `the API server refuses ${line.where}: ${problem}`;
    noteRefusedWork(simulation, cluster, 'ERR_CONFIGURATION_PROBLEM', message);
    tellEvent(simulation, cluster, 'refused', message);
    // Later lines rely on the cluster's existence.
    if (line.event === 'create') await make(simulation, cluster, before);
  } else if (line.event === 'create') {
    await make(simulation, cluster, spec);
  } else {
    const { metadata } = cluster.object!;
    const generation = (metadata.generation ?? 1) + 1;
    cluster.object = { ...cluster.object!, metadata: { ...metadata, generation } };
    rewrite(simulation, cluster, spec);
  }
}

function changed(spec: WorkerClusterSpec, { dataPlaneNodes, pools }: TraceLine): WorkerClusterSpec {
  const change = (pool: NonNullable<WorkerClusterSpec['pools']>[number]) => {
    const { minimum, maximum } = pools.findLast(({ name }) => name === pool.name) ?? {};
    return { ...pool, ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
  };
  return {
    ...spec,
    ...(dataPlaneNodes !== undefined && { dataPlaneNodes }),
    ...(pools.length > 0 && spec.pools && { pools: spec.pools.map(change) }),
  };
}
