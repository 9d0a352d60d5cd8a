import { describe, expect, it } from 'vitest';
import { CRON, lastTime, nextTime, parseCron } from '../../../operator/api/cron.ts';
import { type Draw, holds } from '../../kit/property.ts';

it.each<[string, string, string, string | undefined, string | undefined]>([
  ['0 20 * * 1-5', 'UTC', '2026-11-20T20:00:00Z', '2026-11-23T20:00:00.000Z', '2026-11-20T20:00:00.000Z'],
  ['0 20 * * MON,TUE', 'UTC', '2026-11-21T00:00:00Z', '2026-11-23T20:00:00.000Z', '2026-11-17T20:00:00.000Z'],
  ['*/20 9-10 * * *', 'UTC', '2026-11-21T10:45:00Z', '2026-11-22T09:00:00.000Z', '2026-11-21T10:40:00.000Z'],
  ['5/30 0 * * *', 'UTC', '2026-11-21T00:06:00Z', '2026-11-21T00:35:00.000Z', '2026-11-21T00:05:00.000Z'],
  ['0 0 1 * 0', 'UTC', '2026-11-21T00:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  ['0 0 29 FEB *', 'UTC', '2026-11-21T00:00:00Z', '2028-02-29T00:00:00.000Z', '2024-02-29T00:00:00.000Z'],
  // No leap year between these two.
  ['0 0 29 2 *', 'UTC', '2097-01-01T00:00:00Z', '2104-02-29T00:00:00.000Z', '2096-02-29T00:00:00.000Z'],
  // Seconds and less: a time counts from its own instant on.
  ['0 12 * * *', 'UTC', '2026-11-21T11:59:59.999Z', '2026-11-21T12:00:00.000Z', '2026-11-20T12:00:00.000Z'],
  ['0 12 * * *', 'UTC', '2026-11-21T12:00:00.001Z', '2026-11-22T12:00:00.000Z', '2026-11-21T12:00:00.000Z'],
  // A step is no limit to days (crontab(5)): both have to fit. A step longer than its field leaves the first.
  ['0 0 */2 * 1', 'UTC', '2026-11-21T00:00:00Z', '2026-11-23T00:00:00.000Z', '2026-11-09T00:00:00.000Z'],
  ['*/120 * */40 * *', 'UTC', '2026-11-21T00:06:00Z', '2026-12-01T00:00:00.000Z', '2026-11-01T23:00:00.000Z'],
  ['0 0 * * FRI-SUN', 'UTC', '2026-11-23T00:00:00Z', '2026-11-27T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
  ['0 0 * * 5/2', 'UTC', '2026-11-20T00:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-20T00:00:00.000Z'],
  ['0 8 * * *', '+05:30', '2026-11-21T00:00:00Z', '2026-11-21T02:30:00.000Z', '2026-11-20T02:30:00.000Z'],
  ['0 0 31 2 *', 'UTC', '2026-11-21T00:00:00Z', undefined, undefined],
  ['0 0 * * 7', 'UTC', '2026-11-21T00:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  // One hour ahead of UTC in winter, two in summer.
  ['0 8 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-25T07:00:00.000Z', '2026-10-24T06:00:00.000Z'],
  // 02:30 does not come on that day: it is as soon as the clock has leapt over it, and the last time until the next.
  ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-29T01:00:00.000Z', '2026-03-28T01:30:00.000Z'],
  ['30 2,14 * * *', 'Europe/Berlin', '2026-03-29T01:00:00Z', '2026-03-29T12:30:00.000Z', '2026-03-29T01:00:00.000Z'],
  ['*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:45:00Z', '2026-03-29T01:00:00.000Z', '2026-03-29T00:30:00.000Z'],
  // 02:30 comes twice on that day: it is the first; what comes each half hour goes on.
  ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-25T00:30:00.000Z', '2026-10-24T00:30:00.000Z'],
  ['30 2 * * *', 'Europe/Berlin', '2026-10-25T00:45:00Z', '2026-10-26T01:30:00.000Z', '2026-10-25T00:30:00.000Z'],
  ['*/30 * * * *', 'Europe/Berlin', '2026-10-25T00:45:00Z', '2026-10-25T01:00:00.000Z', '2026-10-25T00:30:00.000Z'],
  // A clock that leaps by half an hour, and one that leaps over midnight.
  ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T12:00:00Z', '2026-10-03T15:30:00.000Z', '2026-10-02T15:45:00.000Z'],
  ['0 0 * * *', 'America/Sao_Paulo', '2018-11-03T12:00:00Z', '2018-11-04T03:00:00.000Z', '2018-11-03T03:00:00.000Z'],
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
  '2026-01-01T00:00:00',
  '0 0 L * *',
  '0 0 15W * *',
  '0 0 * * 5#2',
  '? * * * *',
  '0 0 1,,2 * *',
  '* * * * * *',
  '* * * * XYZ',
  'a b c d e',
])('"%s" is none', (text) => {
  expect(parseCron(text)).toBeUndefined();
  // A pattern cannot compare two numbers: the operator says so then.
  if (text !== '5-2 * * * *') expect(text).not.toMatch(CRON);
});

it.each([
  ['* * 31 2,4,6,9,11 *', true],
  ['0 0 30 FEB */2', true],
  ['0 0 29 2 *', false],
  // On Mondays of February.
  ['0 0 31 2 1', false],
])('%s is known to have no date before any year is looked at: %s', (text, expected) => {
  expect(parseCron(text)!.isNever).toBe(expected);
  expect(nextTime(parseCron(text)!, 'UTC', new Date('2026-11-21T00:00:00Z')) === undefined).toBe(expected);
});

/** What one field says, by hand. */
const says = (field: string, value: number, least: number, most: number): boolean =>
  field.split(',').some((part) => {
    const [range = '', step] = part.split('/');
    const [from, to = step === undefined ? from : most] = range === '*' ? [least, most] : range.split('-').map(Number);
    return value >= from! && value <= to! && (value - from!) % Number(step ?? 1) === 0;
  });

function isTime(text: string, at: Date): boolean {
  const [minute, hour, day, month, weekday] = text.split(' ') as [string, string, string, string, string];
  const ofMonth = says(day, at.getUTCDate(), 1, 31);
  const ofWeek = says(weekday, at.getUTCDay(), 0, 7) || (at.getUTCDay() === 0 && says(weekday, 7, 0, 7));
  const isDay = day.startsWith('*') || weekday.startsWith('*') ? ofMonth && ofWeek : ofMonth || ofWeek;
  return (
    isDay &&
    says(month, at.getUTCMonth() + 1, 1, 12) &&
    says(hour, at.getUTCHours(), 0, 23) &&
    says(minute, at.getUTCMinutes(), 0, 59)
  );
}

function field(choose: Draw, least: number, most: number): string {
  const [a, b] = [choose.integer(least, most), choose.integer(least, most)].sort((one, other) => one - other);
  const step = choose.integer(1, most + 3);
  return choose.pick([
    '*',
    '*',
    '*',
    `${a}`,
    `${a},${b}`,
    `${a}-${b}`,
    `${a}-${b}/${step}`,
    `${a}/${step}`,
    `*/${step}`,
  ]);
}

describe('parseCron of any expression', () => {
  const MINUTE = 60_000;
  holds(
    'means the minutes that crontab(5) says',
    (choose) => {
      const text = [
        field(choose, 0, 59),
        field(choose, 0, 23),
        field(choose, 1, 31),
        field(choose, 1, 12),
        field(choose, 0, 7),
      ].join(' ');
      const cron = parseCron(text)!;
      const from = Date.UTC(2026, 0, 1) + choose.integer(0, 3 * 365 * 1440) * MINUTE;
      const [last, next] = [lastTime(cron, 'UTC', new Date(from)), nextTime(cron, 'UTC', new Date(from))];
      const within = (time: Date | undefined) => time && Math.abs(+time - from) <= 2000 * MINUTE && time.toISOString();
      let [before, after]: (Date | undefined)[] = [];
      for (let minutes = 1; minutes <= 2000; minutes++) {
        const [earlier, later] = [new Date(from - (minutes - 1) * MINUTE), new Date(from + minutes * MINUTE)];
        if (!before && isTime(text, earlier)) before = earlier;
        if (!after && isTime(text, later)) after = later;
        if (before && after) break;
      }
      expect(within(next), `${text} after ${new Date(from).toISOString()}`).toBe(
        after?.toISOString() ?? (next && false),
      );
      if (before || within(last)) expect(last, `${text} before ${new Date(from).toISOString()}`).toEqual(before);
    },
    { runs: 25 },
  );
  holds(
    'has each of its times as the last one when it comes, in any zone',
    (choose) => {
      const zone = choose.pick(['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC']);
      const cron = parseCron(`${field(choose, 0, 59)} ${field(choose, 0, 23)} * * *`)!;
      let at = new Date(Date.UTC(2026, choose.pick([2, 9]), choose.integer(20, 31), choose.integer(0, 23)));
      for (let step = 0; step < 5; step++) {
        const next = nextTime(cron, zone, at)!;
        expect(+next, zone).toBeGreaterThan(+at);
        expect(lastTime(cron, zone, next), `${cron.text} in ${zone}`).toEqual(next);
        at = next;
      }
    },
    { runs: 25 },
  );
});
