import type { WorkerClusterSpec } from '../api/workercluster.ts';
import { demandProblem } from './admission.ts';
import { newMind, planLook } from './burst.ts';
import { note } from './ledger-entry.ts';
import { createCluster, deleteCluster } from './lifecycle.ts';
import { reconcileMachines } from './machines.ts';
import { sizeClusters } from './node-sizes.ts';
import { planCluster, sizeChanged } from './planning.ts';
import { type Report, reportOf } from './report.ts';
import type { Scenario } from './scenario.ts';
import { type ClusterState, type Entry, newWorld, noteRefusal, tell, type World } from './state.ts';
import { clusterOf, type Survey } from './survey.ts';
import type { TraceLine } from './trace-line.ts';
import { traceProblem } from './trace-text.ts';

export interface RehearsalOptions {
  /** When it ends on the virtual clock, in milliseconds. Absent: with the last line of the trace. */
  until?: number | undefined;
  /** The date at which a trace without dates begins, milliseconds since the epoch: Kubernetes versions expire. */
  epoch: number;
  /** Told the timeline as it comes about. */
  onEntry?(entry: Entry): void;
  /** Called before each moment of the virtual clock, and awaited where it gives a promise: the place to let time pass, or to throw. */
  pace?(at: number): Promise<void> | undefined;
}

/** Plays a surveyed trace against the operator's deciders and the simulated cloud. Equal inputs have equal results. */
export async function rehearse(
  scenario: Scenario,
  trace: AsyncIterable<TraceLine>,
  survey: Survey,
  options: RehearsalOptions,
): Promise<Report> {
  const end = options.until ?? survey.last;
  const world = newWorld(scenario, {
    start: survey.start,
    epoch: survey.dated ? 0 : options.epoch,
    hasWork: survey.hasWork,
    tell: (entry) => options.onEntry?.(entry),
  });
  if (scenario.policy && world.work) world.mind = newMind(scenario.policy);
  for (const cluster of world.clusters.values()) {
    if (!survey.created.has(cluster.key)) make(world, cluster, cluster.manifest.spec);
  }
  for await (const line of trace) {
    if (line.at > end) break;
    if (line.at > world.now) await advance(world, line.at, options);
    apply(world, line);
  }
  await advance(world, end, options);
  settle(world);
  return reportOf(world, survey.start);
}

/** Plays everything before this moment; what happens in it waits for the lines of the same time. */
async function advance(world: World, to: number, options: RehearsalOptions): Promise<void> {
  settle(world);
  for (let at = world.events.nextAt; at !== undefined && at < to; at = world.events.nextAt) {
    await moveTo(world, at, options);
    settle(world);
  }
  await moveTo(world, to, options);
}

async function moveTo(world: World, at: number, options: RehearsalOptions): Promise<void> {
  const wait = options.pace?.(at);
  if (wait) await wait;
  world.now = at;
}

/** Plays the present moment until nothing is left to be done in it. */
function settle(world: World): void {
  for (;;) {
    while ((world.events.nextAt ?? Number.POSITIVE_INFINITY) <= world.now) {
      const event = world.events.take()!;
      if (event.isLive()) event.run();
    }
    const [toPlan] = world.toPlan;
    const [toReconcile] = world.toReconcile;
    if (toPlan) {
      world.toPlan.delete(toPlan);
      planCluster(world, toPlan);
    } else if (toReconcile) {
      world.toReconcile.delete(toReconcile);
      if (reconcileMachines(world, toReconcile)) sizeChanged(world, toReconcile);
    } else if (!settleWork(world)) {
      note(world);
      return;
    }
  }
}

/** Places work, and decides about nodes and clusters for it. @returns whether something came of it that is to be settled */
function settleWork(world: World): boolean {
  if (!world.work) return false;
  const hasPlaced = world.work.place(world.now);
  const hasSized = sizeClusters(world);
  planLook(world);
  return hasPlaced || hasSized;
}

function make(world: World, cluster: ClusterState, spec: WorkerClusterSpec): void {
  // A cluster that is being deleted in this very moment goes before the new one comes.
  if (cluster.object) settle(world);
  createCluster(world, cluster, spec);
}

function apply(world: World, line: TraceLine): void {
  if (line.event === 'work') {
    const problem = world.work!.ask(
      line.work!,
      line.cluster === '' ? undefined : clusterOf(line, world.scenario),
      world.now,
    );
    if (problem !== undefined) throw traceProblem(line.where, problem);
    return;
  }
  const cluster = world.clusters.get(clusterOf(line, world.scenario))!;
  if (line.event === 'delete') {
    deleteCluster(world, cluster);
    return;
  }
  const before = line.event === 'create' ? cluster.manifest.spec : cluster.object!.spec;
  const spec = changed(before, line);
  const problem = demandProblem(spec);
  if (problem) {
    const message = `the API server refuses ${line.where}: ${problem}`;
    noteRefusal(world, cluster, 'ERR_CONFIGURATION_PROBLEM', message);
    tell(world, cluster, 'refused', message);
    // It was to exist, and later lines rely on that.
    if (line.event === 'create') make(world, cluster, before);
  } else if (line.event === 'create') {
    make(world, cluster, spec);
  } else {
    const { metadata } = cluster.object!;
    const generation = (metadata.generation ?? 1) + 1;
    cluster.object = { ...cluster.object!, spec, metadata: { ...metadata, generation } };
    world.toPlan.add(cluster);
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
