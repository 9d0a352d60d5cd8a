import type { Change } from '../../../../providers/cloud.ts';

/** What the operator remembers between reconciles of what others changed in a shoot's account. */
export interface DriftState {
  readonly abort: AbortController;
  /** What the last look found. Absent: none has ended well since the operator started. */
  found?: readonly Change[];
  /** What to do about that, a sentence, after mending has left it: it is not tried again before the next look. */
  advice?: string | undefined;
  /** Why the last look was in vain. */
  problem?: { message: string; codes: string[] };
  /** Looks in vain in a row. */
  failures: number;
  lookAt: Date;
  /** Settles when the look that is under way has ended. */
  running?: Promise<void> | undefined;
}
