import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { type BackoffWaits, waitOf } from '../backoff.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** How to poll an API server. */
export interface ServeWait {
  readonly waits: BackoffWaits;
  /** Usual time to serve, ms; until then the interval does not grow. */
  readonly usualMs: number;
  /** Timeout of one connection attempt, ms. Absent: the default. */
  readonly reachMs?: number;
}

/**
 * Short connection attempts: one that began before the seed knew the Service never succeeds, however often TCP resends,
 * which delayed clusters by four to ten seconds. A merely lost packet is resent after one second.
 */
export const IN_SEED: ServeWait = {
  waits: { first: 100, longest: 5 * SECOND },
  usualMs: 15 * SECOND,
  reachMs: 1.5 * SECOND,
};
/** For API servers on machines that a cloud has yet to make. */
export const ELSEWHERE: ServeWait = { waits: { first: SECOND, longest: 10 * SECOND }, usualMs: 5 * MINUTE };

/** What to poll, and the clock. */
interface Asked {
  /** Whether the API server serves now; an error counts as no. */
  readonly serves: () => Promise<boolean>;
  /** Resolves when the state may have changed, or on abort. Absent: no notifications. */
  readonly news?: (signal: AbortSignal) => Promise<void>;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/**
 * Resolves when the API server serves, rejects on abort. Back off: when a seed is down, every shoot on it is probing.
 */
export async function untilServes(
  { serves, news, clock = systemClock, random = Math.random }: Asked,
  { waits, usualMs }: ServeWait,
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
