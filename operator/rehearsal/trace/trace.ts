import { z } from 'zod';
import { parseDuration } from '../../api/duration.ts';
import { configurationProblem } from '../../api/errors.ts';
import { MAX_NODES } from '../../api/worker-pool.ts';
import { type CurveOptions, curveOf } from './curves.ts';
import type { TraceLine } from './trace-line.ts';
import { csvCells, linesOf, traceProblem } from './trace-text.ts';
import { tracedWorkOf, workFields } from './trace-work.ts';

const COLUMNS = [
  'time',
  'cluster',
  'event',
  'dataPlaneNodes',
  'pool',
  'minimum',
  'maximum',
  'workload',
  'replicas',
  'jobs',
  'cpu',
  'memory',
  'gpu',
  'life',
  'priority',
  'clusterLabels',
  'kind',
  'kindLabels',
  'kindFrom',
  'nodeSelector',
  'tolerations',
] as const;
type Column = (typeof COLUMNS)[number];

const nodes = z.int().min(0).max(MAX_NODES);
const lineSchema = z.strictObject({
  time: z.union([z.string(), z.number()]),
  cluster: z.string().min(1).optional(),
  event: z.enum(['demand', 'create', 'delete']).default('demand'),
  dataPlaneNodes: nodes.optional(),
  pools: z
    .array(z.strictObject({ name: z.string().min(1), minimum: nodes.optional(), maximum: nodes.optional() }))
    .max(50)
    .default([]),
  ...workFields,
});

/**
 * Streams a demand trace, CSV with a header or one JSON object per line, in constant memory. Throws a configuration
 * problem that names file and line, and the system's error where the file cannot be read.
 * @param curve how a demand curve or arrivals become workloads
 */
export async function* readTrace(file: string, curve: CurveOptions = {}): AsyncGenerator<TraceLine> {
  let columns: Column[] | undefined;
  let ofCurve: ReturnType<typeof curveOf>;
  let json: boolean | undefined;
  let before: TraceLine | undefined;
  let hasYielded = false;
  for await (const { text, number } of linesOf(file)) {
    const where = `${file}:${number}`;
    json ??= text.startsWith('{');
    if (!json && !columns) {
      const names = csvCells(where, text);
      ofCurve = curveOf(names, where, curve);
      columns = ofCurve ? [] : header(where, names);
      continue;
    }
    const line = ofCurve
      ? ofCurve(where, csvCells(where, text))
      : parsed(where, json ? jsonObject(where, text) : csvObject(where, columns!, csvCells(where, text)));
    if (before && before.dated !== line.dated) {
      throw traceProblem(where, 'dates and durations in one trace', 'Write all times in the form of the first.');
    }
    if (before && line.at < before.at) {
      throw traceProblem(where, `time goes backwards: it is before that of ${before.where}`, 'Sort the trace by time.');
    }
    before = line;
    // A curve has a row every few minutes: an unchanged one is yielded only at the end of the trace.
    if (line.event === 'time') continue;
    hasYielded = true;
    yield line;
  }
  if (before && hasYielded && before.event === 'time') yield before;
  if (!hasYielded)
    throw configurationProblem(`${file}: the trace has no line`, `Its CSV header is ${COLUMNS.join(',')}.`);
}

function header(where: string, names: readonly string[]): Column[] {
  const unknown = names.find((name) => !(COLUMNS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw traceProblem(where, `there is no column "${unknown}"`, `The header has some of ${COLUMNS.join(',')}.`);
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw traceProblem(where, `two columns are called ${twice}`);
  if (!names.includes('time')) throw traceProblem(where, 'the header has no column time');
  if (!names.includes('cluster') && !names.includes('workload'))
    throw traceProblem(where, 'the header has no column cluster');
  return names as Column[];
}

function csvObject(where: string, columns: readonly Column[], row: readonly string[]): object {
  if (row.length > columns.length) throw traceProblem(where, `${row.length} cells under ${columns.length} columns`);
  const said: Partial<Record<Column, string>> = {};
  columns.forEach((column, index) => {
    if (row[index]) said[column] = row[index];
  });
  const { pool, minimum, maximum, dataPlaneNodes, replicas, jobs, priority, ...others } = said;
  const { clusterLabels, kindLabels, nodeSelector, tolerations, ...rest } = others;
  if (pool === undefined && (minimum !== undefined || maximum !== undefined)) {
    throw traceProblem(where, 'minimum and maximum are of a pool, and the line names none');
  }
  return {
    ...rest,
    ...(dataPlaneNodes !== undefined && { dataPlaneNodes: numberIn(dataPlaneNodes) }),
    ...(replicas !== undefined && { replicas: numberIn(replicas) }),
    ...(jobs !== undefined && { jobs: numberIn(jobs) }),
    ...(priority !== undefined && { priority: numberIn(priority) }),
    ...(clusterLabels !== undefined && { clusterLabels: labelsIn(where, 'clusterLabels', clusterLabels) }),
    ...(kindLabels !== undefined && { kindLabels: labelsIn(where, 'kindLabels', kindLabels) }),
    ...(nodeSelector !== undefined && { nodeSelector: labelsIn(where, 'nodeSelector', nodeSelector) }),
    ...(tolerations !== undefined && { tolerations: tolerationsIn(where, tolerations) }),
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

/** A cell that is no number stays text, which the schema reports. */
const numberIn = (cell: string): number | string => (/^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell);

/** Parses `key=value;key=value`. */
const labelsIn = (where: string, column: Column, cell: string): Record<string, string> =>
  Object.fromEntries(
    cell.split(';').map((pair) => {
      const [key = '', value, ...more] = pair.trim().split('=');
      if (key === '' || value === undefined || more.length > 0)
        throw traceProblem(where, `${column}: "${pair}" is no key=value`);
      return [key, value];
    }),
  );

/** Parses `key=value:Effect;key:Effect`; value and effect are optional. */
const tolerationsIn = (where: string, cell: string): object[] =>
  cell.split(';').map((text) => {
    const [, key, value, effect] = /^([^=:]+)(?:=([^=:]*))?(?::([A-Za-z]+))?$/.exec(text.trim()) ?? [];
    if (key === undefined) throw traceProblem(where, `tolerations: "${text}" is no key=value:Effect`);
    return {
      key,
      ...(value === undefined ? { operator: 'Exists' } : { operator: 'Equal', value }),
      ...(effect !== undefined && { effect }),
    };
  });

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
  const { time, cluster, event, dataPlaneNodes, pools, workload, ...work } = result.data;
  const asksForNodes = dataPlaneNodes !== undefined || pools.length > 0;
  if (workload !== undefined) {
    if (event !== 'demand' || asksForNodes) throw traceProblem(where, 'a line with a workload asks for nothing else');
    const said = tracedWorkOf(where, workload, work);
    return { where, ...timeOf(where, time), cluster: cluster ?? '', event: 'work', pools: [], work: said };
  }
  if (cluster === undefined) throw traceProblem(where, 'cluster: expected a name, as the line has no workload');
  if (Object.values(work).some((value) => value !== undefined))
    throw traceProblem(where, 'replicas, jobs and what they ask for are of a workload, and the line names none');
  if (event === 'demand' && !asksForNodes) {
    throw traceProblem(where, 'the line asks for nothing', 'Give dataPlaneNodes, a pool, or event create or delete.');
  }
  if (event === 'delete' && asksForNodes) {
    throw traceProblem(where, 'a line that deletes a cluster asks for no nodes');
  }
  return { where, ...timeOf(where, time), cluster, event, dataPlaneNodes, pools };
}

const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;

function timeOf(where: string, time: string | number): { at: number; dated: boolean } {
  const at = parseInstant(time);
  if (at) return at;
  const forms = 'a date with its zone (2026-11-10T20:00:00Z), a duration (90s, 1h30m) or a number of seconds';
  throw traceProblem(where, `"${time}" is no time`, `Write ${forms}.`);
}

/** A time as in traces and --until; undefined when invalid. */
export function parseInstant(time: string | number): { at: number; dated: boolean } | undefined {
  if (typeof time === 'string' && DATE.test(time)) {
    const at = Date.parse(time);
    return Number.isNaN(at) ? undefined : { at, dated: true };
  }
  const seconds = typeof time === 'number' || /^\d+(\.\d+)?$/.test(time) ? Number(time) : undefined;
  const at = seconds === undefined ? parseDuration(String(time)) : seconds * 1000;
  // Dates beyond ten thousand years cannot be formatted.
  return at === undefined || !(at >= 0 && at < 3e14) ? undefined : { at: Math.round(at), dated: false };
}
