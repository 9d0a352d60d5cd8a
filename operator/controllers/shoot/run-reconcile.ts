import { findCondition } from '../../api/conditions.ts';
import type { ShootStatus } from '../../api/shoot.ts';
import { operation } from '../status-writer.ts';
import { endDriftLook, lookForDrift, noteMended } from './drift/drift.ts';
import { MACHINE_KNOWN_MS } from './machines/serving-certificates.ts';
import type { Operation } from './operation.ts';
import { type OperationType, typeOf } from './operation-type.ts';
import { runFlow } from './run-flow.ts';
import { refusedOf, type ShootState } from './state.ts';
import { NODES_LEAVING } from './status/node-conditions.ts';
import { whileAnswered } from './tasks/while-answered.ts';
import { tellFailures } from './tell-failures.ts';
import { tellStatus } from './tell-status.ts';

/** How soon Nodes without a machine are looked at again. */
const STRAYS_MS = 1_000;
/** How soon it is looked again whether the admin's kubeconfig works, where it did not. */
const ACCESS_MS = 10_000;
/** The longest that is waited until what an admission policy of the shoot refused is tried again. */
const REFUSED_MS = 5 * 60_000;
/** How soon it is looked again whether an addon may be run that others kept from it. */
const ADDON_MS = 60_000;

/** Makes the shoot what it should be, and says when to look again. @throws the signal's reason when it was aborted */
export async function runReconcile(
  op: Operation,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const { shoot, state, deps } = op;
  const last = shoot.status?.lastOperation;
  // It would hold up what the change asks for, and tell of it as if others had made it.
  if (op.mend || state.settledGeneration !== shoot.metadata.generation) endDriftLook(state);
  const type = typeOf(op);
  const upToDate =
    shoot.status?.observedGeneration === shoot.metadata.generation &&
    last?.state === 'Succeeded' &&
    // One that was made with the wish to sleep has to be made first.
    op.sleeps === (last.type === 'Hibernate');
  // A look that finds all in order is no operation: it leaves no trace, or an idle fleet would write.
  state.operation = upToDate
    ? last
    : operation(last, { type, state: 'Processing', progress: 0, description: 'starting' }, deps.now());
  const tasks = whileAnswered(op, op.strategy.reconcileTasks(op));
  const result = await runFlow(op, { tasks, type, visible: !upToDate }, signal);
  if (signal.aborted) throw signal.reason;
  if (result.failures.length > 0) return tellFailures(op, result.failures, op);
  if (!upToDate) {
    const description = DONE[type].text;
    state.operation = operation(state.operation, { type, state: 'Succeeded', progress: 100, description }, deps.now());
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

/** Reason of the Event when an operation has ended well, and what it says. */
const DONE: Record<OperationType, { reason: string; text: string }> = {
  Create: { reason: 'Created', text: 'the cluster was made' },
  Reconcile: { reason: 'Reconciled', text: 'the cluster matches its spec' },
  Hibernate: { reason: 'Hibernated', text: 'the cluster sleeps' },
  Wake: { reason: 'Woken', text: 'the cluster has woken' },
};

/** Keeps since when something has been refused, for nextLookMs. */
export function noteRefusal(state: ShootState, now: Date): void {
  state.refusedSince = refusedOf(state) === undefined ? undefined : (state.refusedSince ?? now);
}

/** How long it may take until somebody looks again, though nothing changes. */
export function nextLookMs(op: Operation, told: ShootStatus | undefined): number {
  const { provider, shoot, state, strategy, deps } = op;
  // A look that is under way queues the shoot when it ends.
  const recordsAt = state.dns?.running ? undefined : state.dns?.lookAt;
  const driftAt = state.drift?.running ? undefined : state.drift?.lookAt;
  // Nothing that sleeps shows its certificate to anybody: it is renewed on waking.
  const renewalAt = op.sleeps ? undefined : state.nextRenewal;
  const sleeps = [renewalAt, state.machinesChangeAt, recordsAt, driftAt].flatMap((at) =>
    at ? [+at - +deps.now()] : [],
  );
  // Their kubelets outlived their machines: nothing else will happen that would tell us to look.
  const strays = findCondition(told?.conditions, 'EveryNodeReady')?.reason === NODES_LEAVING;
  if (strays) sleeps.push(provider.inCloud ? MACHINE_KNOWN_MS : STRAYS_MS);
  // What gives API servers their rights at kubelets is there now: they need no others.
  const losesRights = op.kubeletsAsMaster && state.kubeletAccess;
  if (state.usable?.ok === false || losesRights) sleeps.push(ACCESS_MS);
  // As long again as it has been refused: soon where somebody is at it, and seldom where nobody is.
  if (state.refusedSince) sleeps.push(Math.min(REFUSED_MS, Math.max(ACCESS_MS, +deps.now() - +state.refusedSince)));
  const { foreign, refused } = state.metricsServer;
  if (foreign !== undefined || refused !== undefined) sleeps.push(ADDON_MS);
  // It was made in spite of that, and can do so now.
  if (!op.sleeps && strategy.maySleep && shoot.spec.hibernation?.enabled) sleeps.push(0);
  return Math.max(1000, Math.min(strategy.longestSleepMs, ...sleeps));
}
