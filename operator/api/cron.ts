/** A cron expression, read: which minutes, hours, days of the month, months (1 to 12) and days of the week (0 is Sunday) it means. */
export interface Cron {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** Both days are limited: then either will do (crontab(5), POSIX). */
  readonly eitherDay: boolean;
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const cronField = (number: string, names: readonly string[] = []): string => {
  const inAnyCase = names.map((one) => one.replace(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`));
  const value = `(${[number, ...inAnyCase].join('|')})`;
  const part = `([*]|${value}(-${value})?)(/0*[1-9][0-9]*)?`;
  return `${part}(,${part})*`;
};

/** The form of what parseCron reads. Ranges that run backwards and dates that never come have it too. */
export const CRON = new RegExp(
  `^\\s*${[
    cronField('[0-5]?[0-9]'),
    cronField('[01]?[0-9]|2[0-3]'),
    cronField('0?[1-9]|[12][0-9]|3[01]'),
    cronField('0?[1-9]|1[0-2]', MONTHS),
    cronField('0?[0-7]', WEEKDAYS),
  ].join('\\s+')}\\s*$`,
);
/** 29 February comes after eight years at most (1896, 1904). */
const FAR_DAYS = 8 * 366 + 1;
const DAY_MS = 86_400_000;

/** Reads five fields: minute, hour, day of month, month, day of week, with `*`, lists, ranges, steps and English short names. undefined: it is none. */
export function parseCron(text: string): Cron | undefined {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== 5) return undefined;
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  const minutes = parseField(minute, 0, 59);
  const hours = parseField(hour, 0, 23);
  const days = parseField(day, 1, 31);
  const months = parseField(month, 1, 12, MONTHS);
  const weekdays = parseField(weekday, 0, 7, WEEKDAYS);
  if (!minutes || !hours || !days || !months || !weekdays) return undefined;
  const eitherDay = !day.startsWith('*') && !weekday.startsWith('*');
  return { minutes, hours, days, months, weekdays: new Set([...weekdays].map((one) => one % 7)), eitherDay };
}

function parseField(text: string, least: number, most: number, names: readonly string[] = []): Set<number> | undefined {
  const values = new Set<number>();
  const number = (word: string): number => {
    const at = names.indexOf(word.toUpperCase());
    if (at !== -1) return at + least;
    return /^\d{1,2}$/.test(word) ? Number(word) : Number.NaN;
  };
  for (const part of text.split(',')) {
    const match = /^(\*|[0-9A-Za-z]+(?:-[0-9A-Za-z]+)?)(?:\/(\d+))?$/.exec(part);
    if (!match) return undefined;
    const [, range = '', step = '1'] = match;
    const [first, last = match[2] === undefined ? first : undefined] = range === '*' ? [] : range.split('-');
    const from = first === undefined ? least : number(first);
    const to = last === undefined ? most : number(last);
    if (!(from >= least && to <= most && from <= to) || Number(step) === 0) return undefined;
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return values;
}

/** Whether this is a time zone that can be reckoned with, for example Europe/Berlin. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** The first time after `from`; undefined: there is none. */
export const nextTime = (cron: Cron, zone: string, from: Date): Date | undefined => nearest(cron, zone, from, 1);

/** The last time at or before `from`; undefined: there is none. */
export const lastTime = (cron: Cron, zone: string, from: Date): Date | undefined => nearest(cron, zone, from, -1);

function nearest(cron: Cron, zone: string, from: Date, direction: 1 | -1): Date | undefined {
  const offset = offsetIn(zone);
  const here = new Date(+from + offset(+from));
  const today = Date.UTC(here.getUTCFullYear(), here.getUTCMonth(), here.getUTCDate());
  for (let days = 0; days <= FAR_DAYS; days++) {
    const day = today + direction * days * DAY_MS;
    if (!isOnDay(cron, new Date(day))) continue;
    const times = timesOf(cron, day, offset).filter((time) => (direction === 1 ? time > +from : time <= +from));
    if (times.length > 0) return new Date(direction === 1 ? Math.min(...times) : Math.max(...times));
  }
  return undefined;
}

function isOnDay({ months, days, weekdays, eitherDay }: Cron, day: Date): boolean {
  if (!months.has(day.getUTCMonth() + 1)) return false;
  const [ofMonth, ofWeek] = [days.has(day.getUTCDate()), weekdays.has(day.getUTCDay())];
  return eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek;
}

/** What a clock on the wall shows at the cron's times of a day, as instants: what the clock leaps over comes as if it had not. */
function timesOf({ hours, minutes }: Cron, day: number, offset: (time: number) => number): number[] {
  return [...hours].flatMap((hour) =>
    [...minutes].map((minute) => {
      const wall = day + (hour * 60 + minute) * 60_000;
      const [before, after] = [offset(wall - DAY_MS), offset(wall + DAY_MS)];
      // On the day of a change, the offset that is right at the time that it gives; where neither is, the clock leaps over it.
      return offset(wall - before) !== before && offset(wall - after) === after ? wall - after : wall - before;
    }),
  );
}

/** How far a zone's clocks are ahead of UTC at an instant, ms. */
function offsetIn(zone: string): (time: number) => number {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (time) => {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1000) * 1000;
  };
}
