import { PATTERNS } from './schema.ts';

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Milliseconds of a duration in Go's form (90s, 5m, 1h30m); undefined for invalid text. */
export function parseDuration(text: string): number | undefined {
  if (!PATTERNS.duration.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([0-9.]+)(ms|s|m|h)/g)) {
    total += Number(amount) * UNITS[unit as keyof typeof UNITS];
  }
  return total;
}
