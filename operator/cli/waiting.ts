import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerCluster } from '../api/workercluster.ts';
import { firstAction } from './actions.ts';
import {
  activityText,
  clusterFailureOf,
  inNamespace,
  isReady,
  isShownAsleep,
  isSimulated,
  simulatedWarning,
} from './clusterview.ts';
import { missingError, notFound } from './commands/get.ts';
import type { CliConnection } from './connect.ts';
import type { Context } from './context.ts';
import { CliError, EXIT, InterruptedError, oneLine } from './errors.ts';
import { type FollowedObject, follow } from './follow.ts';
import { WORKER_CLUSTER_KIND } from './kinds.ts';
import { formatAge } from './render/age.ts';
import { type ProgressView, progressLine } from './render/progress.ts';
import { type Paint, plain, truncate } from './render/text.ts';
import type { LiveRegion } from './terminal.ts';

export type Goal = 'Ready' | 'Hibernated' | 'Deleted';

export interface WaitOptions {
  name: string;
  goal: Goal;
  /** Milliseconds; absent: for ever. */
  timeoutMs?: number | undefined;
  /** Waits for the object with this UID only: a new object of the same name means that the first was deleted. */
  uid?: string | undefined;
  /** Milliseconds since the epoch from which log lines count; absent: from now. */
  since?: number;
  /** Waits for a cluster that does not exist yet, instead of failing. */
  mayAppear?: boolean;
  /** Stops waiting when the cluster hibernates, too. */
  maySleep?: boolean;
  /** Probe for a cluster whose status says Ready: after a stop of the garden the status may be stale. */
  serves?: ((cluster: WorkerCluster, signal: AbortSignal) => Promise<boolean>) | undefined;
}

const FRAME_MS = 120;
const ASK_MS = 300;
const SILENT = 'its API server does not answer yet';

interface ClusterProgress {
  name: string;
  goal: Goal;
  cluster: WorkerCluster | undefined;
  trouble?: string | undefined;
  /** The status says Ready, but the API server of the cluster does not answer. */
  isSilent?: boolean;
  elapsedMs: number;
  state: NonNullable<ProgressView['state']>;
}

/** Lines about a cluster in progress: state, counts, problems. */
export function clusterLines(progress: ClusterProgress, width: number, paint: Paint = plain): string[] {
  const { cluster, name, elapsedMs, state } = progress;
  const lines = [progressLine({ label: `WorkerCluster ${name}`, ...where(progress), elapsedMs, state }, width, paint)];
  if (cluster !== undefined && state !== 'done') {
    const counts = countsOf(cluster);
    if (counts !== '') lines.push(paint('dim', truncate(`  ${counts}`, width)));
    for (const error of cluster.status?.lastErrors ?? []) {
      const codes = error.codes?.length ? ` [${error.codes.join(', ')}]` : '';
      lines.push(paint('bad', truncate(`  ✘ ${oneLine(error.description)}${codes}`, width)));
    }
  }
  if (cluster !== undefined && isSimulated(cluster)) {
    lines.push(paint('loud', truncate(`  ${simulatedWarning(cluster)}`, width)));
  }
  return lines;
}

/** The same as one log line without a time, printed when it changes. */
export function clusterLogLine(progress: ClusterProgress): string {
  const { fraction, message } = where(progress);
  const percent = fraction === undefined || progress.state === 'done' ? '' : ` ${Math.floor(fraction * 100)} %`;
  const counts = progress.cluster === undefined || progress.state === 'done' ? '' : countsOf(progress.cluster);
  return `WorkerCluster ${progress.name}:${percent} ${message}${counts === '' ? '' : ` (${counts})`}`;
}

function where({
  cluster,
  goal,
  trouble,
  isSilent,
  state,
  name,
}: ClusterProgress): Pick<ProgressView, 'fraction' | 'message'> {
  if (state === 'done') return { message: goal === 'Deleted' ? 'is gone' : outcome(cluster) };
  if (trouble !== undefined) return { message: `cannot read it: ${oneLine(trouble)}` };
  if (cluster === undefined) return { message: `waiting for ${name} to be created` };
  if (isSilent) return { message: SILENT };
  const operation = cluster.status?.lastOperation;
  const current = (operation?.type === 'Delete') === (cluster.metadata.deletionTimestamp !== undefined);
  if (operation === undefined || !current || operation.state === 'Succeeded') return { message: activityText(cluster) };
  return { fraction: operation.progress / 100, message: activityText(cluster) };
}

const outcome = (cluster: WorkerCluster | undefined): string =>
  cluster && isShownAsleep(cluster) ? 'sleeps, as its spec asks' : 'is Ready';

function countsOf(cluster: WorkerCluster): string {
  const { controlPlane, nodes } = cluster.status ?? {};
  const parts: string[] = [];
  if (controlPlane) parts.push(`control plane ${controlPlane.ready}/${controlPlane.desired}`);
  if (nodes) parts.push(`nodes ${nodes.ready}/${nodes.desired}`);
  return parts.join(', ');
}

/**
 * Waits for a cluster with a live view. Resolves with the cluster; undefined once it is deleted.
 * Throws CliError: not found (3), timed out (4), failed for good or deleted meanwhile (1); the signal's reason when aborted.
 */
export async function waitForCluster(
  { client, namespace }: CliConnection,
  { terminal, signal }: Pick<Context, 'terminal' | 'signal'>,
  options: WaitOptions,
): Promise<WorkerCluster | undefined> {
  const { name, goal, timeoutMs } = options;
  const started = Date.now();
  const region = terminal.live();
  const stop = new AbortController();
  const over = AbortSignal.any([signal, stop.signal]);
  let seen: FollowedObject<WorkerCluster> | undefined;
  let lastLogged = '';
  let existed = false;
  let isSilent = false;

  const draw = (state: ClusterProgress['state']) => {
    const progress: ClusterProgress = {
      name,
      goal,
      cluster: seen?.object,
      trouble: seen?.trouble,
      isSilent,
      elapsedMs: Date.now() - started,
      state,
    };
    if (region.animated) {
      region.update(clusterLines(progress, region.width, terminal.notePaint));
      return;
    }
    const line = clusterLogLine(progress);
    if (line !== lastLogged) logLine(region, line, Date.now() - (options.since ?? started));
    lastLogged = line;
  };

  const result = await new Promise<{ cluster: WorkerCluster | undefined }>((resolve, reject) => {
    const timers: NodeJS.Timeout[] = [];
    const settle = (act: () => void) => {
      for (const timer of timers) clearTimeout(timer);
      stop.abort(new Error('done'));
      act();
    };
    const finish = (cluster: WorkerCluster | undefined) =>
      settle(() => {
        draw('done');
        resolve({ cluster });
      });
    const fail = (error: unknown) =>
      settle(() => {
        if (seen !== undefined) draw(error instanceof InterruptedError ? 'left' : 'failed');
        reject(error);
      });

    if (region.animated) timers.push(setInterval(() => seen && draw('busy'), FRAME_MS));
    if (timeoutMs !== undefined) {
      timers.push(
        setTimeout(
          () => fail(timedOut(options, namespace, { ...seen, isSilent }, timeoutMs)),
          Math.min(timeoutMs, 2 ** 31 - 1),
        ),
      );
    }
    const finishOnceServes = async (cluster: WorkerCluster) => {
      while (options.serves && !(await options.serves(cluster, over))) {
        // A newer version of the cluster is probed by itself, or is not Ready.
        if (seen?.object !== cluster) return;
        isSilent = true;
        draw('busy');
        await sleep(ASK_MS, undefined, { signal: over });
      }
      if (seen?.object === cluster) finish(cluster);
    };
    const onSight = (sight: FollowedObject<WorkerCluster>) => {
      if (stop.signal.aborted) return;
      const { object } = sight;
      const isOther = object !== undefined && options.uid !== undefined && object.metadata.uid !== options.uid;
      const cluster = isOther ? undefined : object;
      seen = { ...sight, object: cluster };
      isSilent = false;
      if (sight.trouble !== undefined) return draw('busy');
      const verdict = judgeWait(cluster, existed, namespace, options);
      // Draw nothing for a cluster that never existed.
      const wasNever = verdict instanceof CliError && cluster === undefined && !existed;
      if (wasNever) {
        seen = undefined;
        void missingError(client, WORKER_CLUSTER_KIND, name, namespace, over).then(fail);
        return;
      }
      existed = cluster !== undefined;
      if (verdict instanceof CliError) return fail(verdict);
      if (verdict === 'finish') return finish(cluster);
      if (verdict === 'wait') return draw('busy');
      void finishOnceServes(cluster!).catch((error) => over.aborted || fail(error));
    };
    follow<WorkerCluster>(client, WORKER_CLUSTER_KIND.resource, { name, namespace }, onSight, over).then(
      // The wait has ended otherwise.
      () => stop.signal.aborted || fail(signal.reason),
      (error) => stop.signal.aborted || fail(signal.aborted ? signal.reason : error),
    );
  }).finally(() => region.finish());
  return result.cluster;
}

/**
 * Verdict on the current cluster: keep waiting, finish, finish once it `serves`, or fail. Pure.
 * @param existed whether the cluster existed when last read
 */
export function judgeWait(
  cluster: WorkerCluster | undefined,
  existed: boolean,
  namespace: string,
  { name, goal, mayAppear, maySleep }: Pick<WaitOptions, 'name' | 'goal' | 'mayAppear' | 'maySleep'>,
): 'wait' | 'finish' | 'serves' | CliError {
  if (goal === 'Deleted') return cluster === undefined ? 'finish' : 'wait';
  if (cluster === undefined) {
    if (existed) return new CliError(`WorkerCluster "${name}" was deleted in the meantime`);
    return mayAppear ? 'wait' : notFound(WORKER_CLUSTER_KIND, name, namespace);
  }
  // First: a cluster whose change was refused stays Ready, and a script must not take that for success.
  const failure = clusterFailureOf(cluster);
  if (failure !== undefined)
    return new CliError(`WorkerCluster "${name}" failed: ${failure}`, {
      advice: [firstAction(cluster), `See "coppice describe ${name}${inNamespace(namespace)}"`]
        .filter(Boolean)
        .join(' '),
    });
  if ((maySleep || goal === 'Hibernated') && isShownAsleep(cluster)) return 'finish';
  if (goal === 'Hibernated') return 'wait';
  return isReady(cluster) ? 'serves' : 'wait';
}

function timedOut(
  options: WaitOptions,
  namespace: string,
  seen: Partial<FollowedObject<WorkerCluster>> & { isSilent: boolean },
  timeoutMs: number,
): CliError {
  const { name, goal } = options;
  const { object, trouble, isSilent } = seen;
  const why = object === undefined ? (trouble ?? 'it does not exist yet') : isSilent ? SILENT : activityText(object);
  const not = { Ready: 'is not Ready', Hibernated: 'does not sleep', Deleted: 'is not gone' }[goal];
  const isSleeping = goal === 'Ready' && object !== undefined && isShownAsleep(object);
  return new CliError(
    `WorkerCluster "${name}" in namespace ${namespace} ${not} after ${formatAge(timeoutMs)}: ${oneLine(why)}`,
    {
      exitCode: EXIT.timedOut,
      advice: isSleeping
        ? `to wake it: coppice wake ${name}${inNamespace(namespace)}`
        : [`"coppice describe ${name}${inNamespace(namespace)}" shows why`, object && firstAction(object)]
            .filter(Boolean)
            .join('. '),
    },
  );
}

/** Prints one log line of progress with the time since the start. */
export function logLine(region: LiveRegion, line: string, elapsedMs: number): void {
  region.update([`[${formatAge(elapsedMs).padStart(5)}] ${line}`]);
}
