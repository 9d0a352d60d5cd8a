import { shortHash } from '../api/names.ts';

/** A hash in [0, 1), constant per key, that spreads a fleet's periodic work. */
const shareOf = (key: string): number => Number.parseInt(shortHash(key), 16) / 2 ** 32;

/** The interval in milliseconds, up to a tenth shorter. Pure; constant per key. */
export const spreadInterval = (everyMs: number, key: string): number =>
  Math.round(everyMs * (0.9 + 0.1 * shareOf(key)));

/**
 * Next moment of this key, at constant times of the day, so that restarted operators do not check all clusters at once,
 * and need no stored times. Pure.
 */
export function nextMoment(now: Date, everyMs: number, key: string): Date {
  const phase = Math.floor(everyMs * shareOf(key));
  return new Date((Math.floor((+now - phase) / everyMs) + 1) * everyMs + phase);
}
