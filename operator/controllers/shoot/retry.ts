import { CoppiceError, type ErrorCode, isRetryable } from '../../api/errors.ts';
import { backoff, type Waits, waitOf } from '../backoff.ts';

const MINUTE = 60_000;
/** What ends by itself, though Gardener leaves it to a person. */
const PATIENCE: Partial<Record<ErrorCode, Waits>> = {
  // What stands in the way is often on its way out itself: an address, a network interface, a load balancer.
  ERR_INFRA_DEPENDENCIES: { first: MINUTE, longest: 30 * MINUTE },
  // Others of the account may free something at any time, and nobody tells us when a quota was raised.
  ERR_INFRA_QUOTA_EXCEEDED: { first: 5 * MINUTE, longest: 60 * MINUTE },
};
/** Where only a person can help: a deletion is tried again all the same, since nobody may look at it any more. */
const DELETION: Waits = { first: MINUTE, longest: 30 * MINUTE };

/** A task that failed in the run that has just ended. */
export interface FailedTask {
  readonly error: unknown;
  /** How often in a row. */
  readonly count: number;
}

/** When an operation that failed is tried again: by the queue's own back-off, after so many ms, or not before something changes. */
export type Retry = 'by-queue' | { readonly afterMs: number } | 'never';

/**
 * What becomes of an operation whose tasks failed, pure. The failure that needs most patience decides: a cloud that throttles is not asked
 * sooner because something else failed as well.
 * @param random in [0, 1)
 */
export function retryOf(failed: readonly FailedTask[], deleting: boolean, random: number): Retry {
  let longest = 0;
  for (const { error, count } of failed) {
    const code = error instanceof CoppiceError ? error.code : undefined;
    if (code === undefined || isRetryable([code])) continue;
    const patience = PATIENCE[code] ?? (deleting ? DELETION : undefined);
    const wait = backoff(code, count, random) ?? (patience && waitOf(patience, count, random));
    if (wait === undefined) return 'never';
    longest = Math.max(longest, wait);
  }
  return longest > 0 ? { afterMs: longest } : 'by-queue';
}
