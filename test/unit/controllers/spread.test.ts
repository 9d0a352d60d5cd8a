import { expect, it } from 'vitest';
import { nextMoment, spreadInterval } from '../../../operator/controllers/spread.ts';

const HOUR_MS = 3600_000;

it('a fleet does not check for drift at one moment', () => {
  const moments = Array.from({ length: 200 }, (_, n) => spreadInterval(6 * HOUR_MS, `00000000-0000-4000-8000-${n}`));
  expect(Math.min(...moments)).toBeGreaterThanOrEqual(5.4 * HOUR_MS);
  expect(Math.max(...moments)).toBeLessThanOrEqual(6 * HOUR_MS);
  expect(new Set(moments).size).toBeGreaterThan(100);
});

it("a fleet's checks are spread over the interval, whenever its operator starts", () => {
  const now = new Date('2026-01-01T00:00:00Z');
  const moments = Array.from({ length: 600 }, (_, i) => +nextMoment(now, 6 * HOUR_MS, `uid-${i}`) - +now);
  expect(Math.min(...moments)).toBeGreaterThan(0);
  expect(Math.max(...moments)).toBeLessThanOrEqual(6 * HOUR_MS);
  for (let hour = 0; hour < 6; hour++) {
    const inHour = moments.filter((ms) => Math.floor(ms / HOUR_MS) === hour).length;
    expect(inHour).toBeGreaterThan(60);
  }
  const first = nextMoment(now, 6 * HOUR_MS, 'uid');
  expect(nextMoment(new Date(+first - 1), 6 * HOUR_MS, 'uid')).toEqual(first);
  expect(+nextMoment(first, 6 * HOUR_MS, 'uid')).toBe(+first + 6 * HOUR_MS);
});
