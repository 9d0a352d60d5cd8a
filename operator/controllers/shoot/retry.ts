import { CoppiceError, isRetryable } from '../../api/errors.ts';
import { retryDelayMs } from '../backoff.ts';

/** A task that failed in the last run. */
interface FailedTask {
  readonly error: unknown;
  /** Consecutive failures. */
  readonly count: number;
}

/** When to retry a failed operation: by the queue's back-off, after a delay in ms, or only on a change. */
type Retry = 'by-queue' | { readonly afterMs: number } | 'never';

/**
 * Retry of an operation by its failed tasks. Pure. The longest delay wins: a throttling cloud is not asked sooner
 * because something else failed.
 * @param random in [0, 1)
 */
export function retryOf(failed: readonly FailedTask[], deleting: boolean, random: number): Retry {
  let longest = 0;
  for (const { error, count } of failed) {
    const code = error instanceof CoppiceError ? error.code : undefined;
    if (code === undefined || isRetryable([code])) continue;
    const wait = retryDelayMs(code, count, random, deleting);
    if (wait === undefined) return 'never';
    longest = Math.max(longest, wait);
  }
  return longest > 0 ? { afterMs: longest } : 'by-queue';
}
