import { expect, it } from 'vitest';
import { CRON, lastTime, nextTime, parseCron } from '../../../operator/api/cron.ts';

it.each<[string, string, string, string | undefined, string | undefined]>([
  ['0 20 * * 1-5', 'UTC', '2026-11-20T20:00:00Z', '2026-11-23T20:00:00.000Z', '2026-11-20T20:00:00.000Z'],
  ['0 20 * * MON,TUE', 'UTC', '2026-11-21T00:00:00Z', '2026-11-23T20:00:00.000Z', '2026-11-17T20:00:00.000Z'],
  ['*/20 9-10 * * *', 'UTC', '2026-11-21T10:45:00Z', '2026-11-22T09:00:00.000Z', '2026-11-21T10:40:00.000Z'],
  ['5/30 0 * * *', 'UTC', '2026-11-21T00:06:00Z', '2026-11-21T00:35:00.000Z', '2026-11-21T00:05:00.000Z'],
  ['0 0 1 * 0', 'UTC', '2026-11-21T00:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  ['0 0 29 FEB *', 'UTC', '2026-11-21T00:00:00Z', '2028-02-29T00:00:00.000Z', '2024-02-29T00:00:00.000Z'],
  ['0 0 31 2 *', 'UTC', '2026-11-21T00:00:00Z', undefined, undefined],
  ['0 0 * * 7', 'UTC', '2026-11-21T00:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  // One hour ahead of UTC in winter, two in summer.
  ['0 8 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-25T07:00:00.000Z', '2026-10-24T06:00:00.000Z'],
  // 02:30 does not come on that day: it is when it would have been.
  ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-29T01:30:00.000Z', '2026-03-28T01:30:00.000Z'],
  ['0 0 * * *', 'Asia/Kolkata', '2026-11-21T00:00:00Z', '2026-11-21T18:30:00.000Z', '2026-11-20T18:30:00.000Z'],
  ['0 0 * * *', 'Pacific/Kiritimati', '2026-11-21T10:00:00Z', '2026-11-22T10:00:00.000Z', '2026-11-21T10:00:00.000Z'],
])('%s in %s, from %s', (text, zone, from, next, last) => {
  const cron = parseCron(text)!;
  expect(text).toMatch(CRON);
  expect(nextTime(cron, zone, new Date(from))?.toISOString()).toBe(next);
  expect(lastTime(cron, zone, new Date(from))?.toISOString()).toBe(last);
});

it.each([
  '',
  '0 20 * *',
  '60 * * * *',
  '* 24 * * *',
  '* * 0 * *',
  '5-2 * * * *',
  '*/0 * * * *',
  '@daily',
  '* * * * XYZ',
  'a b c d e',
])('"%s" is none', (text) => {
  expect(parseCron(text)).toBeUndefined();
  // A pattern cannot compare two numbers: the operator says so then.
  if (text !== '5-2 * * * *') expect(text).not.toMatch(CRON);
});
