import { formatMoney } from '../../cost/money.ts';
import type { DemandReport, Report } from '../../rehearsal/report.ts';
import type { Entry } from '../../rehearsal/state.ts';
import type { TimeForm } from './rehearsal.ts';

const seconds = (ms: number): number => Math.round(ms) / 1000;

/** A rehearsal for programs: hours and seconds are numbers, money is decimal text. */
export function rehearsalDocument(
  report: Report,
  { dated }: TimeForm,
  timeline: readonly Entry[],
  { omitted, ignored }: { omitted: number; ignored: readonly string[] },
): object {
  const { start, end, clusters, total } = report;
  const time = (at: number) => ({ second: seconds(at - start), ...(dated && { time: new Date(at).toISOString() }) });
  const hours = (ms: number) => Math.round((ms / 3_600_000) * 1e6) / 1e6;
  const demand = ({ waitP50, waitMax, ...counts }: DemandReport) => ({
    ...counts,
    ...(waitP50 !== undefined && { waitP50Seconds: seconds(waitP50) }),
    ...(waitMax !== undefined && { waitMaxSeconds: seconds(waitMax) }),
  });
  return {
    ...(dated && { start: new Date(start).toISOString() }),
    seconds: seconds(end - start),
    clusters: clusters.map((cluster) => ({
      namespace: cluster.namespace,
      name: cluster.name,
      cloudProfile: cluster.profile,
      nodeHours: hours(cluster.machineMs),
      peakNodes: cluster.peak,
      demand: demand(cluster.demand),
      refused: cluster.refused.map(({ first, last, ...rest }) => ({ ...rest, first: time(first), last: time(last) })),
      ...(cluster.cost && { cost: { amount: formatMoney(cluster.cost.amount), currency: cluster.cost.currency } }),
      unpriced: cluster.unpriced.map(({ what, ms }) => ({ what, hours: hours(ms) })),
    })),
    total: {
      nodeHours: hours(total.machineMs),
      peakNodes: total.peak,
      demand: demand(total.demand),
      costs: total.costs.map(({ amount, currency }) => ({ amount: formatMoney(amount), currency })),
    },
    timeline: timeline.map(({ at, ...entry }) => ({ ...time(at), ...entry })),
    timelineOmitted: omitted,
    ignored,
  };
}
