import { roundMoney } from '../../cost/money.ts';
import type { BoughtReport, ClusterReport, DemandReport, Report } from '../../rehearsal/report.ts';
import type { Entry } from '../../rehearsal/state.ts';
import { formatAge } from './age.ts';
import { type Row, renderTable, renderWrapped, type TableOptions } from './table.ts';
import { padEnd, type Tone } from './text.ts';

const HOUR_MS = 3_600_000;

/** Format of virtual times. */
export interface TimeForm {
  /** Virtual start, milliseconds. */
  start: number;
  /** Shows dates; otherwise times since the start. */
  dated: boolean;
}

/** A virtual time for people: hours, minutes and seconds since the start, or `2026-11-10T20:05:00Z`. */
function shownTime({ start, dated }: TimeForm, at: number): string {
  if (dated) return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
  const seconds = Math.floor((at - start) / 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** Formats keys: the name if all are in one namespace, else `namespace/name`. */
function shownNames(keys: readonly string[]): (key: string) => string {
  const namespaces = new Set(keys.map((key) => key.split('/')[0]));
  return (key) => (namespaces.size > 1 ? key : key.slice(key.indexOf('/') + 1));
}

const TONES: Partial<Record<Entry['kind'], Tone>> = {
  refused: 'bad',
  interrupted: 'busy',
  moved: 'busy',
  ready: 'good',
};

interface TimelineOptions extends TimeForm {
  end: number;
  /** namespace/name of all clusters. */
  clusters: readonly string[];
  paint: NonNullable<TableOptions['paint']>;
}

/** Renders timeline lines one by one while the rehearsal runs: column widths are fixed beforehand. */
export function timelineLines(options: TimelineOptions): { header: string; line(entry: Entry): string } {
  const { clusters, end, paint } = options;
  const name = shownNames(clusters);
  const times = Math.max('TIME'.length, shownTime(options, end).length) + 3;
  const names = Math.max('CLUSTER'.length, ...clusters.map((key) => name(key).length)) + 3;
  const row = (time: string, cluster: string, ready: string) =>
    `${padEnd(time, times)}${padEnd(cluster, names)}${padEnd(ready, 12)}`;
  return {
    header: paint('dim', `${row('TIME', 'CLUSTER', 'READY')}WHAT`),
    line: ({ at, cluster, kind, message, machines, ready }) =>
      `${row(shownTime(options, at), name(cluster), `${ready}/${machines}`)}${paint(TONES[kind], message)}`,
  };
}

const hours = (ms: number): string => (ms / HOUR_MS).toFixed(2);
const wait = (ms: number | undefined): string => (ms === undefined ? '-' : formatAge(ms));
const demandCells = ({ served, cancelled, waiting, waitP50, waitMax }: DemandReport): string[] => [
  String(served),
  wait(waitP50),
  wait(waitMax),
  String(cancelled + waiting),
];

function costCell({ cost, unpriced }: Pick<ClusterReport, 'cost' | 'unpriced'>): string {
  if (!cost) return unpriced.length > 0 ? 'not priced' : '-';
  return `${roundMoney(cost.amount, 2)} ${cost.currency}${unpriced.length > 0 ? ' + not priced' : ''}`;
}

const boughtName = ({ candidate, made }: BoughtReport): string => `${candidate} (${made} bought)`;

const SUMMARY = ['CLUSTER', 'NODE HOURS', 'PEAK', 'SERVED', 'WAIT P50', 'WAIT MAX', 'UNSERVED', 'COST'];

/** Report: a row per cluster and a total, refusals, and clusters without a price. */
export function renderReport(report: Report, form: TimeForm, options: TableOptions): string[] {
  const { clusters, bought, total } = report;
  const name = shownNames(clusters.map((cluster) => `${cluster.namespace}/${cluster.name}`));
  const named = (cluster: ClusterReport) => name(`${cluster.namespace}/${cluster.name}`);
  const costs = total.costs.map(({ amount, currency }) => `${roundMoney(amount, 2)} ${currency}`).join(', ');
  const partly = [...clusters, ...bought].some(({ unpriced }) => unpriced.length > 0);
  const allCosts = [costs, ...(partly ? ['not priced'] : [])].filter(Boolean).join(' + ') || '-';
  const rows = [
    ...clusters.map((cluster) => [
      named(cluster),
      hours(cluster.machineMs),
      String(cluster.peak),
      ...demandCells(cluster.demand),
      costCell(cluster),
    ]),
    ...bought.map((of) => [
      boughtName(of),
      hours(of.machineMs),
      String(of.peak),
      ...demandCells(of.demand),
      costCell(of),
    ]),
    ['total', hours(total.machineMs), String(total.peak), ...demandCells(total.demand), allCosts],
  ];
  const all = [
    ...clusters.map((cluster) => ({ ...cluster, shown: named(cluster) })),
    ...bought.map((of) => ({ ...of, shown: boughtName(of) })),
  ];
  const refused = all.flatMap((cluster) =>
    cluster.refused.map(
      ({ code, times, first, last, message }): Row => ({
        cells: [cluster.shown, String(times), shownTime(form, first), shownTime(form, last), `${code}: ${message}`],
      }),
    ),
  );
  const unpriced = all.flatMap((cluster) =>
    cluster.unpriced.map(({ what, ms }): Row => ({ cells: [cluster.shown, hours(ms), what] })),
  );
  return [
    ...renderTable(SUMMARY, rows, options),
    ...(refused.length > 0
      ? ['', ...renderWrapped(['CLUSTER', 'REFUSED', 'FIRST', 'LAST', 'WHY'], refused, options)]
      : []),
    ...(unpriced.length > 0 ? ['', ...renderWrapped(['CLUSTER', 'HOURS', 'NOT PRICED'], unpriced, options)] : []),
  ];
}
