/**
 * How long changes of a cluster are collected before a decision. Same as Karpenter's batchIdleDuration and
 * batchMaxDuration.
 */
export interface BatchTimes {
  /** Without further changes, milliseconds. */
  readonly idleMs: number;
  /** With continuous changes, milliseconds. */
  readonly mostMs: number;
}

export const BATCH: BatchTimes = { idleMs: 1_000, mostMs: 10_000 };

/** Batches of changes: a hundred pods of one Deployment are one demand. */
export class Batches {
  readonly #times: BatchTimes;
  readonly #now: () => number;
  readonly #open = new Map<string, { first: number; last: number }>();

  /** @param now milliseconds */
  constructor(times: BatchTimes, now: () => number) {
    this.#times = times;
    this.#now = now;
  }

  /** @returns whether it is the first of its batch */
  note(key: string): boolean {
    const now = this.#now();
    const open = this.#open.get(key);
    if (open) open.last = now;
    else this.#open.set(key, { first: now, last: now });
    return open === undefined;
  }

  /** Remaining time of the key's batch, milliseconds; 0: it is over, and the next change starts another. */
  take(key: string): number {
    const open = this.#open.get(key);
    if (!open) return 0;
    const left = Math.min(open.first + this.#times.mostMs, open.last + this.#times.idleMs) - this.#now();
    if (left > 0) return left;
    this.#open.delete(key);
    return 0;
  }
}
