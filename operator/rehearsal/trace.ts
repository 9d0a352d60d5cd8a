import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { parseDuration } from '../api/duration.ts';
import { type CoppiceError, configurationProblem } from '../api/errors.ts';
import { MAX_NODES } from '../api/worker-pool.ts';

/** What one line of a demand trace says. */
export interface TraceLine {
  /** file:line, for errors. */
  where: string;
  /** Milliseconds: since the beginning of the rehearsal, or since the epoch where the trace has dates. */
  at: number;
  dated: boolean;
  /** name, or namespace/name. */
  cluster: string;
  event: 'demand' | 'create' | 'delete';
  dataPlaneNodes?: number | undefined;
  /** Changes of pools that the cluster has. */
  pools: { name: string; minimum?: number | undefined; maximum?: number | undefined }[];
}

/** Longer lines are no trace, and must not be held in memory to find that out. */
const LONGEST_LINE = 65_536;
const COLUMNS = ['time', 'cluster', 'event', 'dataPlaneNodes', 'pool', 'minimum', 'maximum'] as const;
type Column = (typeof COLUMNS)[number];

const nodes = z.int().min(0).max(MAX_NODES);
const lineSchema = z.strictObject({
  time: z.union([z.string(), z.number()]),
  cluster: z.string().min(1),
  event: z.enum(['demand', 'create', 'delete']).default('demand'),
  dataPlaneNodes: nodes.optional(),
  pools: z
    .array(z.strictObject({ name: z.string().min(1), minimum: nodes.optional(), maximum: nodes.optional() }))
    .max(50)
    .default([]),
});

/** The error for a line of a trace. */
export const traceProblem = (where: string, message: string, advice?: string): CoppiceError =>
  configurationProblem(`${where}: ${message}`, advice ?? 'Correct the trace.');

/**
 * Reads a demand trace, CSV with a header or one JSON object a line, as a stream: memory does not grow with it. Throws a
 * configuration problem that names file and line, and the system's error where the file cannot be read.
 */
export async function* readTrace(file: string): AsyncGenerator<TraceLine> {
  let columns: Column[] | undefined;
  let json: boolean | undefined;
  let before: TraceLine | undefined;
  for await (const { text, number } of linesOf(file)) {
    const where = `${file}:${number}`;
    json ??= text.startsWith('{');
    if (!json && !columns) {
      columns = header(where, cells(where, text));
      continue;
    }
    const line = parsed(where, json ? jsonObject(where, text) : csvObject(where, columns!, cells(where, text)));
    if (before && before.dated !== line.dated) {
      throw traceProblem(where, 'dates and durations in one trace', 'Write all times in the form of the first.');
    }
    if (before && line.at < before.at) {
      throw traceProblem(where, `time goes backwards: it is before that of ${before.where}`, 'Sort the trace by time.');
    }
    yield line;
    before = line;
  }
  if (!before) throw configurationProblem(`${file}: the trace has no line`, `Its CSV header is ${COLUMNS.join(',')}.`);
}

/** Lines with their numbers; empty ones and comments (#) are left out. */
async function* linesOf(file: string): AsyncGenerator<{ text: string; number: number }> {
  let rest = '';
  let number = 0;
  const one = (line: string) => {
    number++;
    if (line.length > LONGEST_LINE)
      throw traceProblem(`${file}:${number}`, `the line has more than ${LONGEST_LINE} characters`);
    const text = (number === 1 ? line.replace(/^\uFEFF/, '') : line).trim();
    return text === '' || text.startsWith('#') ? undefined : { text, number };
  };
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const found = one(line);
      if (found) yield found;
    }
    if (rest.length > LONGEST_LINE) one(rest);
  }
  const found = one(rest);
  if (found) yield found;
}

/** The cells of a CSV line (RFC 4180, without line breaks in cells). */
function cells(where: string, text: string): string[] {
  if (!text.includes('"')) return text.split(',').map((cell) => cell.trim());
  const found: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/gy)) {
    found.push((quoted?.replaceAll('""', '"') ?? plain ?? '').trim());
    if (end === '') return found;
  }
  throw traceProblem(where, 'a quotation mark is not closed, or stands in the middle of a cell');
}

function header(where: string, names: readonly string[]): Column[] {
  const unknown = names.find((name) => !(COLUMNS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw traceProblem(where, `there is no column "${unknown}"`, `The header has some of ${COLUMNS.join(',')}.`);
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw traceProblem(where, `two columns are called ${twice}`);
  for (const needed of ['time', 'cluster']) {
    if (!names.includes(needed)) throw traceProblem(where, `the header has no column ${needed}`);
  }
  return names as Column[];
}

function csvObject(where: string, columns: readonly Column[], row: readonly string[]): object {
  if (row.length > columns.length) throw traceProblem(where, `${row.length} cells under ${columns.length} columns`);
  const said: Partial<Record<Column, string>> = {};
  columns.forEach((column, index) => {
    if (row[index]) said[column] = row[index];
  });
  const { pool, minimum, maximum, dataPlaneNodes, ...rest } = said;
  if (pool === undefined && (minimum !== undefined || maximum !== undefined)) {
    throw traceProblem(where, 'minimum and maximum are of a pool, and the line names none');
  }
  return {
    ...rest,
    ...(dataPlaneNodes !== undefined && { dataPlaneNodes: numberIn(dataPlaneNodes) }),
    ...(pool !== undefined && {
      pools: [
        {
          name: pool,
          ...(minimum !== undefined && { minimum: numberIn(minimum) }),
          ...(maximum !== undefined && { maximum: numberIn(maximum) }),
        },
      ],
    }),
  };
}

/** What is no number stays text: the schema says what is wrong with it. */
const numberIn = (cell: string): number | string => (/^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell);

function jsonObject(where: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw traceProblem(where, 'the line is no JSON object');
  }
}

function parsed(where: string, object: unknown): TraceLine {
  const result = lineSchema.safeParse(object);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    const path = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
    throw traceProblem(where, `${path}${issue.message.replace(/^Invalid input: /, '')}`);
  }
  const { time, cluster, event, dataPlaneNodes, pools } = result.data;
  if (event === 'demand' && dataPlaneNodes === undefined && pools.length === 0) {
    throw traceProblem(where, 'the line asks for nothing', 'Give dataPlaneNodes, a pool, or event create or delete.');
  }
  if (event === 'delete' && (dataPlaneNodes !== undefined || pools.length > 0)) {
    throw traceProblem(where, 'a line that deletes a cluster asks for no nodes');
  }
  return { where, ...timeOf(where, time), cluster, event, dataPlaneNodes, pools };
}

const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;

function timeOf(where: string, time: string | number): { at: number; dated: boolean } {
  const at = instant(time);
  if (at) return at;
  const forms = 'a date with its zone (2026-11-10T20:00:00Z), a duration (90s, 1h30m) or a number of seconds';
  throw traceProblem(where, `"${time}" is no time`, `Write ${forms}.`);
}

/** A moment as traces and --until write it; undefined when it is none. */
export function instant(time: string | number): { at: number; dated: boolean } | undefined {
  if (typeof time === 'string' && DATE.test(time)) {
    const at = Date.parse(time);
    return Number.isNaN(at) ? undefined : { at, dated: true };
  }
  const seconds = typeof time === 'number' || /^\d+(\.\d+)?$/.test(time) ? Number(time) : undefined;
  const at = seconds === undefined ? parseDuration(String(time)) : seconds * 1000;
  // Beyond ten thousand years dates cannot be written any more.
  return at === undefined || !(at >= 0 && at < 3e14) ? undefined : { at: Math.round(at), dated: false };
}
