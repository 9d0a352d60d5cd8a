import { access, constants, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { burstClusterName } from '../../api/names.ts';
import { profileManifests } from '../../api/profiles.ts';
import { policyLimitsOf } from '../../controllers/burst/limits.ts';
import { yamlDocument } from '../../kube/yaml.ts';
import { nodesAlone, otherWaits } from '../../rehearsal/baselines.ts';
import { boundOf } from '../../rehearsal/bound/bound.ts';
import type { WorkReport } from '../../rehearsal/burst-report.ts';
import { type RehearsalOptions, rehearse } from '../../rehearsal/rehearse.ts';
import type { Report } from '../../rehearsal/report.ts';
import { type Scenario, scenarioOf } from '../../rehearsal/scenario.ts';
import type { Entry } from '../../rehearsal/state.ts';
import { type Survey, surveyTrace } from '../../rehearsal/survey.ts';
import type { CurveOptions } from '../../rehearsal/trace/curves.ts';
import { parseInstant, readTrace } from '../../rehearsal/trace/trace.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { readManifests } from '../manifests.ts';
import { printObject } from '../output.ts';
import { parseCliDuration } from '../parse.ts';
import { renderReport, timelineLines } from '../render/rehearsal.ts';
import { rehearsalChart } from '../render/rehearsal-chart.ts';
import { rehearsalDocument } from '../render/rehearsal-document.ts';
import { type Compared, renderCompared, renderWaits } from '../render/rehearsal-work.ts';

/** Default limit of timeline lines. */
const TIMELINE_LINES = 200;
/** Number of events after which the loop yields, so that Ctrl-C works. */
const MOMENTS_BETWEEN_BREATHS = 1000;
/**
 * Start of a trace without dates that has a policy. Fixed, because months of a budget begin with it: a scenario has the same report on any day.
 */
const EPOCH = Date.UTC(2026, 0, 1);
/** Longest delay of a timer: Node fires a longer one at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** `coppice rehearse -f MANIFEST --trace FILE`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, terminal } = context;
  const files = options.list('filename');
  const trace = options.text('trace');
  const example = `${context.program} rehearse -f examples/rehearsal/clusters.yaml --trace examples/rehearsal/demand.csv`;
  if (files.length === 0) throw new UsageError('rehearse needs -f FILE with WorkerClusters', `for example: ${example}`);
  if (trace === undefined) throw new UsageError('rehearse needs --trace FILE', `for example: ${example}`);
  if (trace === '-')
    throw new UsageError('the trace is read twice, so it cannot come from standard input', 'give it as a file');
  const seed = notNegative(context, 'seed');
  const speed = speedOf(context);
  const most = notNegative(context, 'timeline') ?? TIMELINE_LINES;

  const namespace = options.text('namespace') ?? 'default';
  const simulations = await simulationsOf(options.text('simulation'));
  const scenario = scenarioOf(await readManifests(files), await profileManifests(), { namespace, seed, simulations });
  const curve = curveOf(context);
  const survey = await surveyTrace(traceLines(trace, curve), scenario);
  const until = untilOf(context, survey);
  const form = { start: survey.start, dated: survey.dated };
  // Bought clusters need room in the name column; their names are not known yet.
  const clusters = [
    ...scenario.clusters.keys(),
    ...(scenario.policy ? scenario.policy.spec.candidates.map(({ name }) => boughtName(scenario, name)) : []),
  ];
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
  const chart = options.text('chart');
  if (chart !== undefined && !survey.hasWork)
    throw new UsageError('--chart needs a trace with workloads', 'docs/tasks/rehearse-policy.md shows one');
  if (scenario.policy && !survey.hasWork)
    throw new UsageError(
      'a BurstPolicy serves workloads, and the trace has none',
      'docs/tasks/rehearse.md shows how to write them',
    );
  if (chart !== undefined) await mustBeWritable(chart);
  const epoch = scenario.policy ? EPOCH : Date.now();
  const report = await rehearse(scenario, traceLines(trace, curve), survey, {
    until,
    epoch,
    onEntry,
    pace: paceOf(context.signal, survey.start, speed),
  });
  const compared = await comparedTo(scenario, report, () => traceLines(trace, curve), survey, {
    until,
    epoch,
    pace: paceOf(context.signal, survey.start, undefined),
  });
  if (chart !== undefined) await writeChart(chart, trace, report, survey, scenario);

  const omitted = Math.max(0, entries - most);
  if (format === 'table') {
    if (omitted > 0 && most > 0) terminal.print(`... ${omitted} more lines (--timeline ${entries} shows all)`);
    const width = terminal.width === undefined ? {} : { width: terminal.width };
    terminal.print(
      ...(entries > 0 && most > 0 ? [''] : []),
      ...renderReport(report, form, { ...width, paint: terminal.paint }),
      ...(report.work
        ? ['', ...renderWaits(report.work, compared?.stabilisationMs, { ...width, paint: terminal.paint })]
        : []),
      ...(compared ? ['', ...renderCompared(compared, { ...width, paint: terminal.paint })] : []),
    );
  } else {
    const { ignored } = scenario;
    await printObject(
      terminal,
      format as 'json' | 'yaml',
      rehearsalDocument(report, form, kept, { omitted, ignored, compared }),
    );
  }
  if (scenario.ignored.length > 0) terminal.note(`Not rehearsed: ${scenario.ignored.join(', ')}.`);
  if (report.end === report.start)
    terminal.note('No time passed, because the trace has only one point in time. Add --until 1h to see what follows.');
  terminal.note(terminal.notePaint('loud', 'SIMULATED: nothing was created and nothing is billed.'));
  return undefined;
}

/** Example of a name that clusters of this candidate get. */
const boughtName = ({ policy }: Scenario, candidate: string): string => {
  const { name, namespace = '' } = policy!.metadata;
  return `${namespace}/${burstClusterName(name, candidate, '', 0)}`;
};

/** Comparison with other ways to run the work. Undefined: no policy bought anything. */
async function comparedTo(
  scenario: Scenario,
  report: Report,
  trace: () => ReturnType<typeof readTrace>,
  survey: Survey,
  options: RehearsalOptions,
): Promise<Compared | undefined> {
  const { policy } = scenario;
  if (!policy || !report.work) return undefined;
  const bound = await boundOf(scenario, policy, trace(), report);
  const alone = nodesAlone(scenario, bound?.cheapest.candidate ?? policy.spec.candidates[0]!.name);
  const otherwise: { what: string; work: WorkReport }[] = [];
  for (const one of otherWaits(scenario)) {
    const { work } = await rehearse(one.scenario, trace(), survey, options);
    if (work) otherwise.push({ what: one.what, work });
  }
  return {
    currency: policy.spec.budget.currency,
    stabilisationMs: policyLimitsOf(policy.spec).pendingForMs,
    policy: report.work,
    otherwise,
    bound,
    nodesAlone: alone && (await rehearse(alone, trace(), survey, options)).work,
  };
}

/** Throws before the rehearsal, which may take a minute, if the file cannot be written. */
async function mustBeWritable(file: string): Promise<void> {
  await access(dirname(file), constants.W_OK).catch((error: Error) => {
    throw new CliError(`cannot write ${file}: ${error.message}`);
  });
}

async function writeChart(
  file: string,
  trace: string,
  { start, end, standings }: Report,
  { dated }: Survey,
  { policy }: Scenario,
): Promise<void> {
  const title = `Rehearsal of ${basename(trace)}${policy ? ` with BurstPolicy ${policy.metadata.name}` : ''}`;
  const currency = policy?.spec.budget.currency ?? 'USD';
  try {
    await writeFile(file, rehearsalChart({ title, start, end, dated, currency, standings }));
  } catch (error) {
    throw new CliError(`cannot write ${file}: ${(error as Error).message}`);
  }
}

/** Lines of the trace. Turns system errors into CLI errors. */
async function* traceLines(file: string, curve: CurveOptions): ReturnType<typeof readTrace> {
  try {
    yield* readTrace(file, curve);
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
    found = yamlDocument(await readFile(file, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new CliError(`there is no file ${file}`, { exitCode: EXIT.notFound });
    throw new CliError(`cannot read ${file}: ${message}`);
  }
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as Record<string, unknown>;
  throw new CliError(`${file} does not say how clouds behave`, {
    advice: 'write it like {aws: {machines: {failureRate: 0.01}}}',
  });
}

/** Options --per and --replica: how a demand curve becomes replicas. */
function curveOf({ options }: Context): CurveOptions {
  const per = options.text('per');
  if (per !== undefined && !(Number(per) > 0 && Number.isFinite(Number(per))))
    throw new UsageError(
      `--per needs a number above 0, but got "${per}"`,
      'write 25 where a replica serves 25 requests a second',
    );
  const text = options.text('replica');
  const said = Object.fromEntries((text ?? '').split(',').map((pair) => pair.split('=', 2) as [string, string]));
  const { cpu, memory, gpu, ...others } = said;
  const isSize = cpu && memory && Object.keys(others).length === 0;
  if (text !== undefined && !isSize)
    throw new UsageError(`--replica needs cpu and memory, but got "${text}"`, 'write it like cpu=900m,memory=2Gi');
  return {
    ...(per !== undefined && { per: Number(per) }),
    ...(isSize && { size: { cpu, memory, ...(gpu && { gpu }) } }),
  };
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
  const date = parseInstant(text);
  if (date?.dated && !survey.dated)
    throw new UsageError(`--until ${text} is a date, and the trace has none`, 'give a duration');
  const duration = parseCliDuration(text);
  const until = date?.dated ? date.at : duration === undefined ? undefined : survey.start + duration;
  // Limit of Date.
  if (until === undefined || until > 3e14)
    throw new UsageError(
      `--until needs a duration or a date, but got "${text}"`,
      'write it like 36h, 7d or 2026-11-12T00:00:00Z',
    );
  if (until < survey.start) throw new UsageError(`--until ${text} is before the trace begins`);
  return until;
}

/** Waits as --speed says, and yields so that Ctrl-C works. */
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
