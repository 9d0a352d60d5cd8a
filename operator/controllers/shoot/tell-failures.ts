import { rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { isToSleep, type Shoot } from '../../api/shoot.ts';
import { keyOf } from '../../kube/resources.ts';
import { explainWebhook } from '../problematic-webhook.ts';
import { movedOperation, writeStatus } from '../status-writer.ts';
import { bareStatus } from './bare-status.ts';
import { isBeingDeleted } from './deletion/deletion-path.ts';
import type { ShootDependencies } from './dependencies.ts';
import type { Operation } from './operation.ts';
import { operationTypeOf } from './operation-type.ts';
import { retryOf } from './retry.ts';
import type { ShootState } from './state.ts';
import { tellStatus } from './tell-status.ts';

/** A failed task with its error. */
interface Failure {
  readonly taskID: string;
  readonly error: unknown;
}

/**
 * Writes errors to the status; throws when a retry is sensible, so that the queue backs off.
 * @param op the failed operation; absent: it did not begin
 */
export async function tellFailures(
  { deps, shoot, state }: { readonly deps: ShootDependencies; readonly shoot: Shoot; readonly state: ShootState },
  failures: readonly Failure[],
  op?: Operation,
): Promise<{ requeueAfterMs: number } | undefined> {
  const now = deps.now();
  const deleting = isBeingDeleted(shoot, state);
  const known = failures.map(({ taskID, error }) => ({ taskID, error: explainWebhook(error) }));
  for (const { taskID, error } of known) {
    state.failures.set(taskID, (state.failures.get(taskID) ?? 0) + 1);
    if (error instanceof CoppiceError && error.code === 'ERR_INFRA_RESOURCES_DEPLETED') deps.depleted(shoot, error);
    const before = state.errors.get(taskID);
    const description = errorText(error);
    const codes = error instanceof CoppiceError ? [error.code] : [];
    const same = before?.description === description;
    state.errors.set(taskID, same ? before : { taskID, description, codes, lastUpdateTime: rfc3339(now) });
    if (!same) deps.recordEvent(shoot, 'Warning', deleting ? 'DeleteFailed' : 'ReconcileFailed', description);
    deps.log.warn({ shoot: keyOf(shoot), task: taskID, err: error }, 'task failed');
  }
  const errors = [...state.errors.values()];
  const failed = known.map(({ taskID, error }) => ({ error, count: state.failures.get(taskID) ?? 1 }));
  const retry = retryOf(failed, deleting, Math.random());
  // A check of a finished cluster keeps the type of the last operation, which would say that it is made again.
  const type = deleting ? 'Delete' : operationTypeOf({ shoot, sleeps: op?.sleeps ?? isToSleep(shoot) });
  const description = errors.map((error) => error.description).join('; ');
  state.operation = movedOperation(
    state.operation,
    { type, state: retry === 'never' ? 'Failed' : 'Error', progress: state.operation?.progress ?? 0, description },
    now,
  );
  if (op) await tellStatus(op);
  else {
    // Earlier progress updates are written first.
    const status = bareStatus(shoot, state.operation, errors, now);
    await state.statusWrites.run(() => writeStatus(deps.garden, deps.shoots, shoot, status));
  }
  if (retry === 'by-queue') throw failures[0]!.error;
  return retry === 'never' ? undefined : { requeueAfterMs: retry.afterMs };
}
