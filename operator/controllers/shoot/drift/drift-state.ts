import type { Change } from '../../../../providers/cloud.ts';

/** Memory about drift in a shoot's account between reconciles. */
export interface DriftState {
  readonly abort: AbortController;
  /** Result of the last check. Absent: none succeeded since the restart. */
  found?: readonly Change[];
  /** Advice after an incomplete repair, a sentence: no retry before the next check. */
  advice?: string | undefined;
  /** Why the last check failed. */
  problem?: { message: string; codes: string[] };
  /** Consecutive failed checks. */
  failures: number;
  lookAt: Date;
  /** Settles when the running check has ended. */
  running?: Promise<void> | undefined;
}
