import { findCondition } from '../api/conditions.ts';
import { CoppiceError, type ErrorCode, errorText } from '../api/errors.ts';
import type { Condition, KubeObject } from '../api/meta.ts';
import type { ConditionKind } from '../api/reasons.ts';
import type { KubeClient } from '../kube/client.ts';
import { isTransient } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/resources.ts';
import { say, withConditions } from './conditions.ts';
import { explainWebhook } from './problematic-webhook.ts';
import { writeStatus } from './status-writer.ts';
import { withoutNumbers } from './without-numbers.ts';

/** Condition of an object whose reconcile failed; the next success removes it. */
const RECONCILED = 'Reconciled';

/** Consecutive transient failures before they are reported. */
const TRANSIENT_FAILURES = 3;

interface FailureDependencies {
  readonly garden: KubeClient;
  now(): Date;
}

/** A `failed` callback for runController: writes a reconcile's error to the object's status. */
export const failuresOf =
  <T extends KubeObject>(deps: FailureDependencies, cache: Informer<T>) =>
  async (key: string, error: unknown, failures: number): Promise<void> => {
    const object = cache.get(key);
    if (object && (failures >= TRANSIENT_FAILURES || !isTransient(error)))
      await tellFailure(deps, cache, object, error);
  };

/**
 * Writes a reconcile's error with its code to the object's conditions, unless one reports it already, as many
 * reconciles do before they throw.
 */
export async function tellFailure<T extends KubeObject>(
  deps: FailureDependencies,
  cache: Informer<T>,
  object: T,
  error: unknown,
): Promise<void> {
  const newest = cache.get(keyOf(object));
  if (newest?.metadata.uid !== object.metadata.uid) return;
  const before: readonly Condition[] = newest?.status?.conditions ?? [];
  const known = explainWebhook(error);
  const text = errorText(known);
  if (before.some(({ message }) => withoutNumbers(message ?? '').includes(withoutNumbers(text)))) return;
  const message = `the operator failed to reconcile this ${object.kind}: ${text}. It tries again by itself`;
  const codes = [codeOf(known)];
  const failed = say(RECONCILED, false, 'ReconcileFailed', message, codes);
  // Earlier conditions stay; without any, nothing else says that it is not Ready.
  const ready = findCondition(before, 'Ready') ? undefined : say('Ready', false, 'ReconcileFailed', message, codes);
  const others = before.filter(({ type }) => type !== RECONCILED);
  const status = {
    ...newest!.status,
    conditions: [...others, ...withConditions<ConditionKind>(before, [ready, failed], deps.now())],
  };
  await writeStatus(deps.garden, cache, newest!, status);
}

/** Code of an error; without one a fault of the object, unless it came from the network. */
function codeOf(error: unknown): ErrorCode {
  if (error instanceof CoppiceError) return error.code;
  return isTransient(error) ? 'ERR_RETRYABLE_INFRA_DEPENDENCIES' : 'ERR_RETRYABLE_CONFIGURATION_PROBLEM';
}
