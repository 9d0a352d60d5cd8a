import { readFile } from 'node:fs/promises';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { load } from 'js-yaml';
import { profileManifests } from '../../api/profiles.ts';
import { rehearse } from '../../rehearsal/rehearse.ts';
import { scenarioOf } from '../../rehearsal/scenario.ts';
import type { Entry } from '../../rehearsal/state.ts';
import { type Survey, surveyTrace } from '../../rehearsal/survey.ts';
import { instant, readTrace } from '../../rehearsal/trace.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { printObject } from '../output.ts';
import { parseDuration } from '../parse.ts';
import { renderReport, timelineLines } from '../render/rehearsal.ts';
import { rehearsalDocument } from '../render/rehearsal-document.ts';
import { readManifests } from './apply.ts';

/** Lines of the timeline that are shown where nobody says how many. */
const TIMELINE_LINES = 200;
/** After so many moments of the virtual clock Ctrl-C gets its chance. */
const MOMENTS_BETWEEN_BREATHS = 1000;
/** Beyond this a timer overflows and fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** `coppice rehearse -f MANIFEST --trace FILE`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, terminal } = context;
  const files = options.list('filename');
  const trace = options.text('trace');
  const example = `${context.program} rehearse -f examples/rehearsal/clusters.yaml --trace examples/rehearsal/demand.csv`;
  if (files.length === 0) throw new UsageError('rehearse needs -f FILE with WorkerClusters', `for example: ${example}`);
  if (trace === undefined) throw new UsageError('rehearse needs --trace FILE', `for example: ${example}`);
  if (trace === '-') throw new UsageError('a trace is read twice, so it cannot be standard input', 'give it as a file');
  const seed = notNegative(context, 'seed');
  const speed = speedOf(context);
  const most = notNegative(context, 'timeline') ?? TIMELINE_LINES;

  const namespace = options.text('namespace') ?? 'default';
  const simulations = await simulationsOf(options.text('simulation'));
  const scenario = scenarioOf(await readManifests(files), await profileManifests(), { namespace, seed, simulations });
  const survey = await surveyTrace(traceLines(trace), scenario);
  const until = untilOf(context, survey);
  const form = { start: survey.start, dated: survey.dated };
  const clusters = [...scenario.clusters.keys()];
  const timeline = timelineLines({ ...form, end: until ?? survey.last, clusters, paint: terminal.paint });
  const format = options.text('output') ?? 'table';
  const kept: Entry[] = [];
  let entries = 0;
  const onEntry = (entry: Entry) => {
    entries++;
    if (entries > most) return;
    if (format !== 'table') kept.push(entry);
    else terminal.print(...(entries === 1 ? [timeline.header] : []), timeline.line(entry));
  };
  const report = await rehearse(scenario, traceLines(trace), survey, {
    until,
    epoch: Date.now(),
    onEntry,
    pace: paceOf(context.signal, survey.start, speed),
  });

  const omitted = Math.max(0, entries - most);
  if (format === 'table') {
    if (omitted > 0 && most > 0) terminal.print(`... ${omitted} more lines (--timeline ${entries} shows all)`);
    const width = terminal.width === undefined ? {} : { width: terminal.width };
    terminal.print(
      ...(entries > 0 && most > 0 ? [''] : []),
      ...renderReport(report, form, { ...width, paint: terminal.paint }),
    );
  } else {
    const { ignored } = scenario;
    await printObject(terminal, format as 'json' | 'yaml', rehearsalDocument(report, form, kept, { omitted, ignored }));
  }
  if (scenario.ignored.length > 0) terminal.note(`Not rehearsed: ${scenario.ignored.join(', ')}.`);
  if (report.end === report.start) terminal.note('No time passed: the trace has one moment. --until 1h looks further.');
  terminal.note(terminal.notePaint('loud', 'SIMULATED: nothing was made, nothing is paid for.'));
  return undefined;
}

/** The trace, with the system's errors said as this command line says them. */
async function* traceLines(file: string): ReturnType<typeof readTrace> {
  try {
    yield* readTrace(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new CliError(`there is no file ${file}`, { exitCode: EXIT.notFound });
    if (code?.startsWith('E') && !code.startsWith('ERR_')) throw new CliError(`cannot read ${file}: ${message}`);
    throw error;
  }
}

async function simulationsOf(file: string | undefined): Promise<Record<string, unknown> | undefined> {
  if (file === undefined) return undefined;
  let found: unknown;
  try {
    found = load(await readFile(file, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new CliError(`there is no file ${file}`, { exitCode: EXIT.notFound });
    throw new CliError(`cannot read ${file}: ${message.split('\n')[0]}`);
  }
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as Record<string, unknown>;
  throw new CliError(`${file} does not say how clouds behave`, {
    advice: 'write it like {aws: {machines: {failureRate: 0.01}}}',
  });
}

function notNegative({ options }: Context, name: string): number | undefined {
  const value = options.number(name);
  if (value !== undefined && value < 0) throw new UsageError(`--${name} cannot be negative, but is ${value}`);
  return value;
}

function speedOf({ options }: Context): number | undefined {
  const text = options.text('speed');
  if (text === undefined) return undefined;
  const speed = Number(text.replace(/x$/, ''));
  if (speed > 0 && Number.isFinite(speed)) return speed;
  throw new UsageError(`--speed needs a number above 0, but got "${text}"`, 'write 3600 for an hour in a second');
}

function untilOf({ options }: Context, survey: Survey): number | undefined {
  const text = options.text('until');
  if (text === undefined) return undefined;
  const date = instant(text);
  if (date?.dated && !survey.dated)
    throw new UsageError(`--until ${text} is a date, and the trace has none`, 'give a duration');
  const duration = parseDuration(text);
  const until = date?.dated ? date.at : duration === undefined ? undefined : survey.start + duration;
  // Beyond this dates cannot be told any more.
  if (until === undefined || until > 3e14)
    throw new UsageError(
      `--until needs a duration or a date, but got "${text}"`,
      'write it like 36h, 7d or 2026-11-12T00:00:00Z',
    );
  if (until < survey.start) throw new UsageError(`--until ${text} is before the trace begins`);
  return until;
}

/** Lets real time pass as --speed says, and Ctrl-C come through. */
function paceOf(signal: AbortSignal, start: number, speed: number | undefined) {
  const began = performance.now();
  let moments = 0;
  return (at: number): Promise<void> | undefined => {
    signal.throwIfAborted();
    const ahead = speed === undefined ? 0 : (at - start) / speed - (performance.now() - began);
    if (ahead > 1) return setTimeout(Math.min(ahead, LONGEST_TIMER_MS), undefined, { signal });
    moments++;
    return moments % MOMENTS_BETWEEN_BREATHS === 0 ? setImmediate(undefined, { signal }) : undefined;
  };
}
