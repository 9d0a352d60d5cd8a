import { COMPONENTS } from '../../api/names.ts';
import { hasServed } from '../../api/shoot.ts';
import { ClusterConnection } from '../../clusters/cluster-connection.ts';
import { runWithin } from '../../flow/graph.ts';
import { KubeClient } from '../../kube/client.ts';
import { afterLoopTime } from '../../kube/clock.ts';
import { WaitTimeoutError, waitFor } from '../../kube/informer.ts';
import { conditionIsTrue, keyOf, type Pod } from '../../kube/resources.ts';
import { operatorKubeconfig } from '../../shoot/kubeconfigs.ts';
import { issueOperatorCertificate } from '../../shoot/pki.ts';
import { NOT_AT_FIRST } from '../../shoot/readiness.ts';
import { endpointURL } from '../../shoot/values.ts';
import { closeConnection } from './close-connection.ts';
import type { Operation } from './operation.ts';
import { IMAGE_IS_MADE, podProblems, problemsText } from './pod-problems.ts';
import { ELSEWHERE, IN_SEED, type ServeWait, untilServes } from './until-serves.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
export const USABLE = { ok: true, message: "the API server answers, and the admin's kubeconfig can write" };
/** Message when an API server that served stops answering. */
const SILENT = { ok: false, message: 'the API server does not answer' };

/**
 * Loop time in which a restarted operator expects an answer of an API server that served, counted from the first
 * request or from when its pod was found not to run; then it is reported as silent.
 */
const FIRST_ANSWER_MS = 10 * SECOND;

/** How to wait for an API server that may have yet to start. */
export interface APIServerWait {
  /**
   * Resolves as soon as a request can be answered. A packet to a Service that the seed does not know yet is lost, and
   * TCP resends after 1 s, 2 s, 4 s.
   */
  started(op: Operation, signal: AbortSignal): Promise<void>;
  /** Resolves when the state may have changed, or rejects; absent: no notifications. */
  news?(op: Operation, signal: AbortSignal): Promise<void>;
  /** Interval of the requests. */
  readonly patience: ServeWait;
  /** Time to serve after the start, ms. Absent: the time of the task. */
  readonly servesWithinMs?: number | undefined;
}

/**
 * Waits for an API server in a pod of the seed.
 * @param patienceMs time to start, without the build of its image
 * @param servesWithinMs time to serve after that; absent: the time of the task
 */
export const inPodOfSeed = (patienceMs: number, servesWithinMs?: number): APIServerWait => ({
  started: (op, signal) => untilRuns(op, patienceMs, signal),
  news: untilMoreReady,
  patience: IN_SEED,
  servesWithinMs,
});

/**
 * Compiling Kubernetes takes up to half an hour. Nothing is wrong meanwhile, and the status shows the remaining time.
 */
async function untilRuns(op: Operation, patienceMs: number, signal: AbortSignal): Promise<void> {
  const problems = () => podProblems(apiServers(op));
  const what = () => [`a pod of ${COMPONENTS.apiServer} to run`, problemsText(problems())].filter(Boolean).join(': ');
  for (;;) {
    try {
      await waitFor([op.seed.pods], () => apiServerRuns(op), { timeoutMs: patienceMs, signal, what });
      return;
    } catch (error) {
      const isMade = problems().some(({ reason }) => reason === IMAGE_IS_MADE);
      if (!(error instanceof WaitTimeoutError && isMade)) throw error;
    }
  }
}

/** Waits for an API server outside of the seed: its start shows in its first answer. */
export const outsideOfSeed: APIServerWait = { started: async () => {}, patience: ELSEWHERE };

const IN_POD = inPodOfSeed(4 * MINUTE, 5 * MINUTE);

/** A client of the shoot's API server; with the environment's proxy if it is outside of the garden's cluster. */
export function clientOf(
  { values, seed, provider, controlPlanePool }: Operation,
  kubeconfig: string,
  more: { reachMs?: number } = {},
): KubeClient {
  const { exposure = 'ClusterIP' } = values;
  const isInCloud = controlPlanePool !== undefined && provider.inCloud === true;
  const isOutside = isInCloud || (seed.isElsewhere && exposure !== 'ClusterIP');
  return KubeClient.fromKubeconfig(kubeconfig, undefined, isOutside ? more : { ...more, proxy: false });
}

/** Connects to the shoot's API server once it serves. */
export async function connectToShoot(op: Operation, signal: AbortSignal, wait = IN_POD): Promise<void> {
  const { state, deps } = op;
  const server = endpointURL(op.values);
  if (state.connection && state.connection.server === server && deps.now() < state.connection.renewAt) {
    const { client, health } = state.connection;
    if (health.answers && (await client.ready({ timeoutMs: 5 * SECOND }))) return;
  }
  const isRenewal = state.connection?.health.answers === true;
  await closeConnection(state, state.usable && SILENT);
  state.changed?.();
  const certificate = await issueOperatorCertificate(op.pki, deps.now());
  const { reachMs } = wait.patience;
  const kubeconfig = operatorKubeconfig(op.values, op.pki, certificate);
  const client = clientOf(op, kubeconfig, reachMs === undefined ? {} : { reachMs });
  let connection: ClusterConnection | undefined;
  // A waking API server has not been probed yet.
  const isExpected = hasServed(op.shoot) && state.operation?.type !== 'Wake';
  // A restarted operator does not know how long the API server has answered either.
  const noteAway = () => {
    if (isExpected && !isRenewal) state.awayAt = deps.now();
  };
  noteAway();
  let cancel = () => {};
  /** Restarts the timer: a busy operator asks late. */
  const countSilence = () => {
    cancel();
    if (isExpected) cancel = afterLoopTime(FIRST_ANSWER_MS, () => saySilent(state));
  };
  countSilence();
  try {
    await wait.started(op, signal);
    countSilence();
    const serving = (bounded: AbortSignal) =>
      untilServes(
        {
          serves: () => client.ready({ timeoutMs: 2 * SECOND, signal: bounded, apartFrom: NOT_AT_FIRST }),
          ...(wait.news && { news: (until) => wait.news!(op, until) }),
        },
        wait.patience,
        bounded,
      );
    await runWithin({ title: 'Waiting for the API server', timeoutMs: wait.servesWithinMs, run: serving }, signal);
    // The API server answers. Reading from now on may take long for a large cluster.
    cancel();
    const renewAt = new Date(+deps.now() + 12 * 60 * MINUTE);
    const opened = new ClusterConnection(
      client,
      { server, tenant: op.shoot.metadata.namespace ?? '', name: op.shoot.metadata.name },
      renewAt,
      deps.log,
      (object) => {
        state.changed?.();
        deps.insideChanged(op.shoot, object);
      },
      (answers) => {
        if (state.connection === opened) lineChanged(op, answers);
      },
    );
    connection = opened;
    noteAway();
    await connection.start(signal);
    state.connection = connection;
    deps.openClusters.add(keyOf(op.shoot), connection);
  } catch (error) {
    // Caches that were started would send requests on a closed client for ever.
    await (connection ? connection.stop() : client.close());
    throw error;
  } finally {
    cancel();
  }
}

/** Reports an API server that did not answer, or cannot be asked because it does not run. */
function saySilent(state: Operation['state']): void {
  state.usable ??= SILENT;
  state.changed?.();
}

/** Updates the status at once, even during a long task; the next operation acts on it. */
function lineChanged({ shoot, state, deps }: Operation, answers: boolean): void {
  state.awayAt = deps.now();
  if (!answers) state.usable &&= SILENT;
  else if (state.usable && state.usableFor !== undefined) state.usable = USABLE;
  state.changed?.();
  deps.again(shoot);
}

const apiServers = ({ seed, values }: Operation): Pod[] =>
  seed
    .podsOf(`${values.shoot.namespace}/${values.shoot.name}`)
    .filter((pod) => pod.metadata.labels?.app === COMPONENTS.apiServer);

const apiServerRuns = (op: Operation): boolean => apiServers(op).some(runsAPIServer);

/** Whether the API server's container runs; for a machine pod, whether the machine runs. */
export function runsAPIServer({ status }: Pick<Pod, 'status'>): boolean {
  const all = status?.containerStatuses ?? [];
  const own = all.filter(({ name }) => name === COMPONENTS.apiServer);
  return (own.length > 0 ? own : all).some(({ state }) => state?.running !== undefined);
}

/** Resolves when another pod of the API server becomes Ready. */
async function untilMoreReady(op: Operation, signal: AbortSignal): Promise<void> {
  const ready = () =>
    apiServers(op)
      .filter((pod) => conditionIsTrue(pod, 'Ready'))
      .map(({ metadata }) => metadata.uid);
  const before = new Set(ready());
  await op.seed.pods.waitFor(() => ready().some((uid) => !before.has(uid)), {
    signal,
    timeoutMs: MINUTE,
    what: 'an API server to be Ready',
  });
}
