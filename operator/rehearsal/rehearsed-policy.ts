import type { BurstPolicy } from '../api/burstpolicy.ts';
import type { BurstReceipt } from '../burst/clusters/receipt.ts';
import type { BurstMemory } from '../controllers/burst/memory.ts';
import type { Outcome } from '../controllers/burst/seen.ts';

/** What the operator knows of a policy that is rehearsed. */
export interface RehearsedPolicy {
  readonly policy: BurstPolicy;
  readonly memory: BurstMemory;
  receipt: BurstReceipt;
  /** What its last look has come to. */
  told?: Outcome | undefined;
  /** The version of the work that was seen last. */
  seen: number;
  lookedAt: number;
  /** When it looks again; undefined: when something changes. */
  lookAt?: number | undefined;
  /** Why nothing was bought for work that waited long enough, by reason: whose, in how many looks, and when. */
  readonly refusals: Map<string, Refusal>;
}

/** Work that nothing was bought for. Times on the virtual clock. */
export interface Refusal {
  readonly why: string;
  readonly source: string;
  looks: number;
  readonly first: number;
  last: number;
}
