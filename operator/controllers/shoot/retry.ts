import { CoppiceError, isRetryable } from '../../api/errors.ts';
import { backoff } from '../backoff.ts';

/** A task that failed in the run that has just ended. */
interface FailedTask {
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
    const wait = backoff(code, count, random, deleting);
    if (wait === undefined) return 'never';
    longest = Math.max(longest, wait);
  }
  return longest > 0 ? { afterMs: longest } : 'by-queue';
}
