import type { BurstPolicy } from '../api/burstpolicy.ts';
import type { BurstReceipt } from '../burst/clusters/receipt.ts';
import type { BurstMemory } from '../controllers/burst/memory.ts';
import type { Outcome } from '../controllers/burst/seen.ts';

/** The operator's memory of a rehearsed policy. */
export interface RehearsedPolicy {
  readonly policy: BurstPolicy;
  readonly memory: BurstMemory;
  receipt: BurstReceipt;
  /** Outcome of the last evaluation. */
  told?: Outcome | undefined;
  /** Version of the workloads at the last evaluation. */
  seen: number;
  lookedAt: number;
  /** Next evaluation; undefined: after a change. */
  lookAt?: number | undefined;
  /**
   * Why nothing was bought for workloads that waited long enough, by reason: which workloads, number of evaluations,
   * and times.
   */
  readonly refusals: Map<string, RefusedWork>;
}

/** A workload for which nothing was bought. Times on the virtual clock. */
export interface RefusedWork {
  readonly why: string;
  readonly source: string;
  looks: number;
  readonly first: number;
  last: number;
}
