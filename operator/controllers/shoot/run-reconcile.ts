import { findCondition } from '../../api/conditions.ts';
import type { ShootStatus } from '../../api/shoot.ts';
import { movedOperation } from '../status-writer.ts';
import { endDriftLook, lookForDrift, noteMended } from './drift/drift.ts';
import { MACHINE_KNOWN_MS } from './machines/serving-certificates.ts';
import type { Operation } from './operation.ts';
import { type OperationType, operationTypeOf } from './operation-type.ts';
import { runFlow } from './run-flow.ts';
import { refusedOf, type ShootState } from './state.ts';
import { NODES_LEAVING } from './status/node-conditions.ts';
import { whileAnswered } from './tasks/while-answered.ts';
import { tellFailures } from './tell-failures.ts';
import { tellStatus } from './tell-status.ts';

/** Delay of the next check of Nodes without a machine. */
const STRAYS_MS = 1_000;
/** Delay of the next check of an admin kubeconfig that does not work. */
const ACCESS_MS = 10_000;
/** Longest delay before retrying objects that the shoot's admission policy refused. */
const REFUSED_MS = 5 * 60_000;
/** Delay of the next check whether a blocked addon can run. */
const ADDON_MS = 60_000;

/** Reconciles the shoot, and returns when to check again. @throws the signal's reason on abort */
export async function runReconcile(
  op: Operation,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const { shoot, state, deps } = op;
  const last = shoot.status?.lastOperation;
  // A drift check would delay the change, and report the change as drift.
  if (op.mend || state.settledGeneration !== shoot.metadata.generation) endDriftLook(state);
  const type = operationTypeOf(op);
  const upToDate =
    shoot.status?.observedGeneration === shoot.metadata.generation &&
    last?.state === 'Succeeded' &&
    // A new shoot with hibernation enabled must be made first.
    op.sleeps === (last.type === 'Hibernate');
  // A check without findings is no operation: an idle fleet must not write.
  state.operation = upToDate
    ? last
    : movedOperation(last, { type, state: 'Processing', progress: 0, description: 'starting' }, deps.now());
  const tasks = whileAnswered(op, op.strategy.reconcileTasks(op));
  const result = await runFlow(op, { tasks, type, visible: !upToDate }, signal);
  if (signal.aborted) throw signal.reason;
  if (result.failures.length > 0) return tellFailures(op, result.failures, op);
  if (!upToDate) {
    const description = DONE[type].text;
    state.operation = movedOperation(
      state.operation,
      { type, state: 'Succeeded', progress: 100, description },
      deps.now(),
    );
  }
  state.errors.clear();
  state.failures.clear();
  state.settledGeneration = shoot.metadata.generation;
  lookForDrift(op);
  if (op.mend) await noteMended(op);
  noteRefusal(state, deps.now());
  const told = await tellStatus(op, signal);
  if (!upToDate) deps.recordEvent(shoot, 'Normal', DONE[type].reason, state.operation?.description ?? '');
  return { requeueAfterMs: nextLookMs(op, told) };
}

/** Reason and message of the Event after a successful operation. */
const DONE: Record<OperationType, { reason: string; text: string }> = {
  Create: { reason: 'Created', text: 'the cluster was made' },
  Reconcile: { reason: 'Reconciled', text: 'the cluster matches its spec' },
  Hibernate: { reason: 'Hibernated', text: 'the cluster sleeps' },
  Wake: { reason: 'Woken', text: 'the cluster has woken' },
};

/** Records since when something is refused, for nextLookMs. */
export function noteRefusal(state: ShootState, now: Date): void {
  state.refusedSince = refusedOf(state) === undefined ? undefined : (state.refusedSince ?? now);
}

/** Time until the next reconcile without a change. */
export function nextLookMs(op: Operation, told: ShootStatus | undefined): number {
  const { provider, shoot, state, strategy, deps } = op;
  // A running check requeues the shoot at its end.
  const recordsAt = state.dns?.running ? undefined : state.dns?.lookAt;
  const driftAt = state.drift?.running ? undefined : state.drift?.lookAt;
  // A sleeping API server needs no renewal; waking renews certificates.
  const renewalAt = op.sleeps ? undefined : state.nextRenewal;
  const sleeps = [renewalAt, state.machinesChangeAt, recordsAt, driftAt].flatMap((at) =>
    at ? [+at - +deps.now()] : [],
  );
  // Terminated machines' kubelets may linger: no event will trigger a check.
  const strays = findCondition(told?.conditions, 'EveryNodeReady')?.reason === NODES_LEAVING;
  if (strays) sleeps.push(provider.inCloud ? MACHINE_KNOWN_MS : STRAYS_MS);
  // The RBAC rules exist now: API servers can drop the older certificate's rights.
  const losesRights = op.kubeletsAsMaster && state.kubeletAccess;
  if (state.usable?.ok === false || losesRights) sleeps.push(ACCESS_MS);
  // Doubling interval: soon while somebody works on it, rarely otherwise.
  if (state.refusedSince) sleeps.push(Math.min(REFUSED_MS, Math.max(ACCESS_MS, +deps.now() - +state.refusedSince)));
  const { foreign, refused } = state.metricsServer;
  if (foreign !== undefined || refused !== undefined) sleeps.push(ADDON_MS);
  // The new shoot is completed and can sleep now.
  if (!op.sleeps && strategy.maySleep && shoot.spec.hibernation?.enabled) sleeps.push(0);
  return Math.max(1000, Math.min(strategy.longestSleepMs, ...sleeps));
}
