import type { BurstPolicy } from '../api/burstpolicy.ts';
import type { BurstRecord } from '../burst/clusters/record.ts';
import type { BurstMemory } from '../controllers/burst/memory.ts';

/** What the operator knows of a policy that is rehearsed. */
export interface BurstMind {
  readonly policy: BurstPolicy;
  readonly memory: BurstMemory;
  record: BurstRecord;
  /** The version of the work that was seen last. */
  seen: number;
  lookedAt: number;
  /** When it looks again; undefined: when something changes. */
  lookAt?: number | undefined;
  /** What was told of refusals last, by source. */
  refusals: Map<string, string>;
}
