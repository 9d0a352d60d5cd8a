import type { Figure, Unit } from './figures.ts';
import type { Machine } from './machine.ts';
import { type Bar, type Summary, summarize } from './statistics.ts';
import { renderTimeline, type TimelineEntry } from './timeline.ts';

/** A table of values by part: CPU-seconds or MiB. */
export interface PartsTable {
  title: string;
  unit: Unit;
  /** Values of one part by column (for example RSS and anonymous). */
  rows: { part: string; columns: Readonly<Record<string, readonly number[]>> }[];
}

export interface Report {
  began: string;
  seconds: number;
  runs: number;
  machine: Machine;
  /** Shares of the whole machine's time while it was measured. */
  busyPercent: number;
  stolenPercent: number;
  figures: Figure[];
  parts: PartsTable[];
  timeline: TimelineEntry[];
  /** Runs that could not be measured. */
  failures: string[];
}

/** A value as it is shown: as many digits as its unit deserves. */
export function format(value: number, unit: Unit): string {
  const digits =
    unit === 'MiB' ? 0 : unit === 'cores' ? 3 : unit === 's' || unit === 'CPU-s' ? 2 : Number.isInteger(value) ? 0 : 1;
  const shown = value.toFixed(digits);
  return Number(shown) === 0 ? shown.replace('-', '') : shown;
}

export function formatBar(bar: Bar | undefined): string {
  if (!bar) return '';
  const { median, maximum } = bar;
  return [median !== undefined && `median ${median}`, maximum !== undefined && `max ${maximum}`]
    .filter(Boolean)
    .join(', ');
}

const verdict = (met: boolean | undefined): string => (met === undefined ? '' : met ? 'met' : 'MISSED');

const HEAD = ['', 'unit', 'n', 'minimum', 'median', 'maximum', 'bar', '', 'others'] as const;

function cells({ title, unit, summary, bar, met, others }: Figure): string[] {
  const { count, minimum, median, maximum } = summary;
  const numbers = [minimum, median, maximum].map((value) => format(value, unit));
  return [title, unit, String(count), ...numbers, formatBar(bar), verdict(met), others ?? ''];
}

/** Columns as wide as they must be; numbers to the right. */
function aligned(rows: readonly (readonly string[])[], isNumber: (column: number) => boolean): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => (isNumber(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
}

const bySection = (figures: readonly Figure[]): [string, Figure[]][] =>
  [...new Set(figures.map((figure) => figure.section))].map((section) => [
    section,
    figures.filter((figure) => figure.section === section),
  ]);

/** For the terminal. */
export function renderText(report: Report): string {
  const { figures, parts, timeline, failures } = report;
  const lines: string[] = [];
  const table = aligned([HEAD, ...figures.map(cells)], (column) => column >= 2 && column <= 5);
  lines.push(table[0] ?? '');
  let at = 1;
  for (const [section, members] of bySection(figures)) {
    lines.push('', section, ...table.slice(at, at + members.length).map((line) => `  ${line}`));
    at += members.length;
  }
  for (const { title, unit, rows } of parts) {
    const [head, ...body] = partCells(rows, unit);
    lines.push(
      '',
      `${title} (${unit})`,
      ...aligned([head!, ...body], (column) => column > 0).map((line) => `  ${line}`),
    );
  }
  if (timeline.length > 0) lines.push('', 'The making of one cluster with one node', renderTimeline(timeline));
  lines.push('', ...machineLines(report).map((line) => `- ${line}`));
  if (failures.length > 0) lines.push('', 'Not measured:', ...failures.map((line) => `- ${line}`));
  return `${lines.join('\n')}\n`;
}

function partCells(rows: PartsTable['rows'], unit: Unit): string[][] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.columns)))];
  const shown = (summary: Summary | undefined) => (summary ? format(summary.median, unit) : '');
  return [
    ['part', ...names],
    ...rows.map(({ part, columns }) => [part, ...names.map((name) => shown(summarize(columns[name] ?? [])))]),
  ];
}

function machineLines({ machine, runs, began, seconds, busyPercent, stolenPercent }: Report): string[] {
  const kind = machine.isVirtual ? 'virtual machine' : 'machine';
  return [
    `${kind}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB`,
    `${machine.distribution}, Linux ${machine.kernel}, cgroup v${machine.cgroups}; state on ${machine.fileSystem}, fsync ${machine.fsyncMs.toFixed(2)} ms`,
    `Kubernetes ${machine.kubernetes}, etcd ${machine.etcd} (fsync on), containerd ${machine.containerd}, Node ${machine.node}`,
    `Coppice ${machine.coppice}`,
    `${runs} runs, begun ${began}, ${Math.round(seconds)} s; load before ${machine.loadBefore.toFixed(2)}. The machine was ${Math.round(busyPercent)} % busy, and ${stolenPercent.toFixed(1)} % of its time was taken by its host`,
  ];
}

const row = (texts: readonly string[]): string => `| ${texts.join(' | ')} |`;
const rule = (columns: number, left = 1): string => `|${'---|'.repeat(left)}${'---:|'.repeat(columns - left)}`;

/** The part of docs/seen/benchmarks.md that comes from a run. */
export function renderMarkdown(report: Report): string {
  const { figures, parts, timeline, failures } = report;
  const lines = ['### The machine', '', ...machineLines(report).map((line) => `- ${line}`)];
  for (const [section, members] of bySection(figures)) {
    lines.push('', `### ${section}`, '', row(['what', 'unit', 'minimum', 'median', 'maximum', 'n', 'bar', 'others']));
    lines.push('|---|---|---:|---:|---:|---:|---|---|');
    for (const figure of members) {
      const [
        title = '',
        unit = '',
        count = '',
        minimum = '',
        median = '',
        maximum = '',
        bar = '',
        met = '',
        others = '',
      ] = cells(figure);
      const told = bar && `${bar}: ${met === 'met' ? 'met' : '**missed**'}`;
      lines.push(row([title, unit, minimum, met === '' ? median : `**${median}**`, maximum, count, told, others]));
    }
  }
  for (const { title, unit, rows } of parts) {
    const [head = [], ...body] = partCells(rows, unit);
    lines.push('', `### ${title}`, '', `Medians, in ${unit}.`, '', row(head), rule(head.length), ...body.map(row));
  }
  if (timeline.length > 0) {
    lines.push('', '### Where the time goes', '', 'Medians over the runs, in seconds after the POST.', '');
    lines.push('```text', renderTimeline(timeline), '```');
  }
  if (failures.length > 0) lines.push('', '### Not measured', '', ...failures.map((line) => `- ${line}`));
  return `${lines.join('\n')}\n`;
}
