import { formatMoney } from '../../cost/money.ts';
import type { WaitPercentiles, WorkReport } from '../../rehearsal/burst-report.ts';
import type { ClusterReport, DemandReport, Report } from '../../rehearsal/report.ts';
import type { Entry } from '../../rehearsal/state.ts';
import type { TimeForm } from './rehearsal.ts';
import { boughtCostOf, type Compared } from './rehearsal-work.ts';

const seconds = (ms: number): number => Math.round(ms) / 1000;

/** A rehearsal as JSON: hours and seconds are numbers, money is decimal text. */
export function rehearsalDocument(
  report: Report,
  { dated }: TimeForm,
  timeline: readonly Entry[],
  { omitted, ignored, compared }: { omitted: number; ignored: readonly string[]; compared?: Compared | undefined },
): object {
  const { start, end, clusters, bought, work, total } = report;
  const time = (at: number) => ({ second: seconds(at - start), ...(dated && { time: new Date(at).toISOString() }) });
  const hours = (ms: number) => Math.round((ms / 3_600_000) * 1e6) / 1e6;
  const demand = ({ waitP50, waitMax, ...counts }: DemandReport) => ({
    ...counts,
    ...(waitP50 !== undefined && { waitP50Seconds: seconds(waitP50) }),
    ...(waitMax !== undefined && { waitMaxSeconds: seconds(waitMax) }),
  });
  const figures = (cluster: Omit<ClusterReport, 'namespace' | 'name'>) => ({
    cloudProfile: cluster.profile,
    nodeHours: hours(cluster.machineMs),
    peakNodes: cluster.peak,
    demand: demand(cluster.demand),
    refused: cluster.refused.map(({ first, last, ...rest }) => ({ ...rest, first: time(first), last: time(last) })),
    ...(cluster.cost && { cost: { amount: formatMoney(cluster.cost.amount), currency: cluster.cost.currency } }),
    unpriced: cluster.unpriced.map(({ what, ms }) => ({ what, hours: hours(ms) })),
  });
  return {
    ...(dated && { start: new Date(start).toISOString() }),
    seconds: seconds(end - start),
    clusters: clusters.map((cluster) => ({ namespace: cluster.namespace, name: cluster.name, ...figures(cluster) })),
    ...(bought.length > 0 && {
      bought: bought.map((of) => ({ candidate: of.candidate, clusters: of.made, ...figures(of) })),
    }),
    ...(work && { work: workDocument(work) }),
    ...(compared && { comparedTo: comparedDocument(compared) }),
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

const waits = ({ count, p50, p95, p99, max }: WaitPercentiles) => ({
  count,
  ...(max !== undefined && {
    p50Seconds: seconds(p50 ?? 0),
    p95Seconds: seconds(p95 ?? 0),
    p99Seconds: seconds(p99 ?? 0),
    maxSeconds: seconds(max),
  }),
});

const coreHours = (amount: number): number => Math.round(amount / 3600) / 1e6;

function workDocument(work: WorkReport) {
  const { bought } = work;
  return {
    waits: waits(work.waits),
    waited: waits(work.waited),
    waitedAfterStabilisation: waits(work.waitedAfterStabilisation),
    waitedBeyondStartup: waits(work.waitedBeyondStartup),
    neverRan: waits(work.neverRan),
    cancelled: work.cancelled,
    waiting: work.waiting,
    refusals: work.refusals.map(({ first, last, ...rest }) => ({
      ...rest,
      firstSecond: seconds(first),
      lastSecond: seconds(last),
    })),
    boughtClusters: bought.clusters,
    peakClusters: bought.peakClusters,
    peakNodes: bought.peakNodes,
    costs: bought.costs.map(({ amount, currency }) => ({ amount: formatMoney(amount), currency })),
    controlPlanes: formatMoney(bought.fees),
    clustersThatWait: {
      warm: formatMoney(bought.paidFor.warm),
      asleep: formatMoney(bought.paidFor.asleep),
      wokenOfOthers: formatMoney(bought.paidFor.woken),
    },
    machinesPaidFor: {
      starting: formatMoney(bought.paidFor.starting),
      clustersWithoutWork: formatMoney(bought.paidFor.idle),
      nodesWithoutWork: formatMoney(bought.paidFor.spare),
      roomBesideWork: formatMoney(bought.paidFor.room),
      work: formatMoney(bought.paidFor.work),
    },
    paidCpuHours: coreHours(work.paidCpu),
    usedCpuHours: coreHours(work.usedCpu),
  };
}

function comparedDocument({ currency, otherwise, bound, nodesAlone }: Compared) {
  const played = (work: WorkReport) => ({ cost: formatMoney(boughtCostOf(work, currency)), ...workDocument(work) });
  return {
    currency,
    ...(otherwise.length > 0 && { otherwise: otherwise.map(({ what, work }) => ({ what, ...played(work) })) }),
    ...(nodesAlone && { nodesAlone: played(nodesAlone) }),
    ...(bound && {
      peakStanding: { cost: formatMoney(bound.standing), nodes: bound.peakNodes, isPlan: bound.isStandingPlan },
      least: {
        cost: formatMoney(bound.least),
        forcedByMinimumLife: formatMoney(bound.forcedByMinimumLife),
        ofClustersAlone: {
          withMinimumLife: formatMoney(bound.forced.byMinimumLife),
          inWholeMachines: formatMoney(bound.forced.byWholeMachines),
          andControlPlanes: formatMoney(bound.forced.byControlPlanes),
          forIdleForLonger: formatMoney(bound.forced.byIdleFor),
        },
        controlPlanes: formatMoney(bound.controlPlanes),
        ...(bound.staying !== undefined && { whereJobsStay: formatMoney(bound.staying) }),
        ...bound.cheapest,
      },
    }),
  };
}
