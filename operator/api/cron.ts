import { Cron as Croner, CronPattern } from 'croner';

/** A parsed cron expression of five fields. */
export interface Cron {
  readonly text: string;
  /** Whether a day must match both of its fields; when both are limited, either suffices (crontab(5), POSIX). */
  readonly bothDays: boolean;
  /** Whether the date never occurs (30 February), which saves the search. */
  readonly isNever: boolean;
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const cronField = (number: string, names: readonly string[] = []): string => {
  const value = `(${[number, ...names].join('|')})`;
  const part = `([*]|${value}(-${value})?)(/0*[1-9][0-9]*)?`;
  return `${part}(,${part})*`;
};

/** Pattern of a cron expression. Backward ranges and impossible dates match too. */
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

/** Longest length of each month, in days. */
const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** Largest value of each field, and number of values. */
const LAST = [59, 23, 31, 12, 7];
const COUNT = [60, 24, 31, 12, 7];

/**
 * Parses five fields: minute, hour, day of month, month, day of week, with `*`, lists, ranges, steps and English short
 * names. undefined for an invalid expression.
 */
export function parseCron(text: string): Cron | undefined {
  // croner also accepts nicknames (@daily), dates, L, W and #, which the CRD's pattern refuses.
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
    // A backward range.
    return undefined;
  }
}

/** A step in croner's form: a single number becomes a range to the end, and a step is at most the size of its field. */
const stepped = (range: string, step: number, index: number): string =>
  `${/[-*]/.test(range) ? range : `${range}-${LAST[index]}`}/${Math.min(step, COUNT[index]!)}`;

/** Whether the runtime knows the time zone, for example Europe/Berlin. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** First time after `from`; undefined: none. */
export const nextTime = (cron: Cron, zone: string, from: Date): Date | undefined =>
  cron.isNever ? undefined : (inZone(cron, zone).nextRun(from) ?? undefined);

/** Last time at or before `from`; undefined: none. */
export const lastTime = (cron: Cron, zone: string, from: Date): Date | undefined =>
  // croner searches strictly before an instant, and times are whole seconds.
  cron.isNever ? undefined : inZone(cron, zone).previousRuns(1, new Date(Math.floor(+from / 1000) * 1000 + 1000))[0];

/**
 * croner at clock changes: when the clock leaps ahead, fixed hours in the gap run at once after it and wildcard times
 * are skipped; when it goes back, fixed hours run once and wildcard times twice.
 */
const inZone = ({ text, bothDays }: Cron, timezone: string): Croner =>
  new Croner(text, { timezone, mode: '5-part', domAndDow: bothDays, fixedTimeRule: 'no-wildcard' });
