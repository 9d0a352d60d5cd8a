import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { type Waits, waitOf } from '../backoff.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** How an API server is asked whether it serves. */
export interface Patience {
  readonly waits: Waits;
  /** One that works serves by then, in ms; until then the waits do not grow, so that nobody waits for us. */
  readonly usualMs: number;
  /** How long one connection to it is tried, in ms, before the next. Absent: as long as any. */
  readonly reachMs?: number;
}

/**
 * A connection that was tried just before the seed knew where the Service leads never comes about, however often its first packet is sent
 * again: clusters were usable four to ten seconds later than they could be. What is merely lost is sent again after one second.
 */
export const IN_SEED: Patience = {
  waits: { first: 100, longest: 5 * SECOND },
  usualMs: 15 * SECOND,
  reachMs: 1.5 * SECOND,
};
/** On machines that a cloud makes first. */
export const ELSEWHERE: Patience = { waits: { first: SECOND, longest: 10 * SECOND }, usualMs: 5 * MINUTE };

/** What is waited for, and by which clock. */
interface Asked {
  /** Whether it serves now; a failure is a no. */
  readonly serves: () => Promise<boolean>;
  /** Resolves as soon as there is news of it, at the latest when the signal aborts. Absent: no news come. */
  readonly news?: (signal: AbortSignal) => Promise<void>;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/**
 * Resolves when the API server serves, rejects when aborted. One that is dead is asked less and less: of a seed that is, all shoots ask
 * theirs, and each try is a connection.
 */
export async function untilServes(
  { serves, news, clock = systemClock, random = Math.random }: Asked,
  { waits, usualMs }: Patience,
  signal: AbortSignal,
): Promise<void> {
  const began = clock.now();
  for (let late = 0; !(await serves().catch(() => false)); ) {
    signal.throwIfAborted();
    if (clock.now() - began > usualMs) late++;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    try {
      const waited = sleep(waitOf(waits, Math.max(1, late), random()), either, clock);
      await (news ? Promise.race([waited, news(either).catch(() => waited)]) : waited);
    } finally {
      over.abort();
    }
  }
}
