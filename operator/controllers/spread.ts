import { shortHash } from '../api/names.ts';

/** In [0, 1), always the same for one key: what a fleet began together, it does not go on with together. */
const shareOf = (key: string): number => Number.parseInt(shortHash(key), 16) / 2 ** 32;

/** The interval in milliseconds, up to a tenth shorter and never longer. Pure; always the same for one key. */
export const spread = (everyMs: number, key: string): number => Math.round(everyMs * (0.9 + 0.1 * shareOf(key)));

/**
 * The next moment of this key: always the same ones in the day. So operators that start do not look at all clusters at once, and
 * need not write down when one was looked at. Pure.
 */
export function nextMoment(now: Date, everyMs: number, key: string): Date {
  const phase = Math.floor(everyMs * shareOf(key));
  return new Date((Math.floor((+now - phase) / everyMs) + 1) * everyMs + phase);
}
