import { Cron as Croner, CronPattern } from 'croner';

/** A cron expression of five fields that was found to be one. */
export interface Cron {
  readonly text: string;
  /** A day has to fit both of its fields; where both are limited, either will do (crontab(5), POSIX). */
  readonly bothDays: boolean;
  /** No year has such a date (30 February), and nobody has to look for it. */
  readonly isNever: boolean;
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const cronField = (number: string, names: readonly string[] = []): string => {
  const value = `(${[number, ...names].join('|')})`;
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
  'i',
);

/** Days that months have at most. */
const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** Largest value of each field, and how many it has. */
const LAST = [59, 23, 31, 12, 7];
const COUNT = [60, 24, 31, 12, 7];

/**
 * Reads five fields: minute, hour, day of month, month, day of week, with `*`, lists, ranges, steps and English short names. undefined: it
 * is none.
 */
export function parseCron(text: string): Cron | undefined {
  // croner also takes nicknames (@daily), dates, L, W and #, which an API server that knows the form alone refuses.
  if (!CRON.test(text)) return undefined;
  const fields = text
    .trim()
    .split(/\s+/)
    .map((field, index) => field.replace(/([^,]+)\/(\d+)/g, (_, range, step) => stepped(range, Number(step), index)));
  const [, , day = '', , weekday = ''] = fields;
  const bothDays = day.startsWith('*') || weekday.startsWith('*');
  try {
    const pattern = new CronPattern(fields.join(' '), undefined, { mode: '5-part' });
    const isDate = LONGEST.some((days, month) => pattern.month[month] && pattern.day.slice(0, days).includes(1));
    return { text: fields.join(' '), bothDays, isNever: bothDays && !isDate };
  } catch {
    // A range that runs backwards.
    return undefined;
  }
}

/** As croner writes steps: a number alone begins a range up to the end, and a step is no longer than its field. */
const stepped = (range: string, step: number, index: number): string =>
  `${/[-*]/.test(range) ? range : `${range}-${LAST[index]}`}/${Math.min(step, COUNT[index]!)}`;

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
export const nextTime = (cron: Cron, zone: string, from: Date): Date | undefined =>
  cron.isNever ? undefined : (inZone(cron, zone).nextRun(from) ?? undefined);

/** The last time at or before `from`; undefined: there is none. */
export const lastTime = (cron: Cron, zone: string, from: Date): Date | undefined =>
  // croner looks before an instant, and times are whole seconds.
  cron.isNever ? undefined : inZone(cron, zone).previousRuns(1, new Date(Math.floor(+from / 1000) * 1000 + 1000))[0];

/**
 * Where a clock leaps ahead, what is at hours that were written as such comes at once after the leap, and what comes all the time is left
 * out; where it goes back, the former comes once, the latter twice.
 */
const inZone = ({ text, bothDays }: Cron, timezone: string): Croner =>
  new Croner(text, { timezone, mode: '5-part', domAndDow: bothDays, fixedTimeRule: 'no-wildcard' });
