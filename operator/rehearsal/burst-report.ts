import { policyLimitsOf } from '../controllers/burst/limits.ts';
import type { Micros } from '../cost/money.ts';
import type { DemandSince } from './bound/demand-curve.ts';
import type { Cost } from './money.ts';
import type { RefusedWork } from './rehearsed-policy.ts';
import type { Simulation } from './state.ts';
import { type WaitHistogram, waitQuantile } from './waits.ts';

const HOUR_MS = 3_600_000;

/** Waits in milliseconds, to three digits; absent: none. */
export interface WaitPercentiles {
  readonly count: number;
  readonly p50?: number;
  readonly p95?: number;
  readonly p99?: number;
  readonly max?: number;
}

/** Cost of bought clusters by use at each moment, in micros; excludes billing steps. */
interface PaidFor {
  /** Control planes of clusters that took workloads. */
  readonly controlPlanes: Micros;
  /** Waiting clusters, with their control planes. */
  readonly warm: Micros;
  readonly asleep: Micros;
  /** Machines of woken clusters that the policy did not buy. */
  readonly woken: Micros;
  /** Other machines: until they were Ready, and after. */
  readonly starting: Micros;
  /** In clusters without workloads. */
  readonly idle: Micros;
  /** Without workloads, in clusters that have some. */
  readonly spare: Micros;
  /** Unused part of machines with workloads. */
  readonly room: Micros;
  readonly work: Micros;
}

/** Results for workloads, and for a policy that bought clusters for them. */
export interface WorkReport {
  /** Replicas and jobs that ran, from the request on. */
  readonly waits: WaitPercentiles;
  /** Only those that did not run at once. */
  readonly waited: WaitPercentiles;
  /** The same without the policy's stabilisation time. */
  readonly waitedAfterStabilisation: WaitPercentiles;
  /** The same without the startup time of their node. */
  readonly waitedBeyondStartup: WaitPercentiles;
  /** Workloads that never ran, until they were cancelled or until the end. Its count is the sum of the next two. */
  readonly neverRan: WaitPercentiles;
  /** Cancelled before they ran, and waiting at the end. */
  readonly cancelled: number;
  readonly waiting: number;
  /** Why nothing was bought for waiting workloads, the most frequent reason first. */
  readonly refusals: readonly RefusedWork[];
  /** Bought clusters, the peak number of clusters and nodes, and their cost. */
  readonly bought: {
    readonly clusters: number;
    readonly peakClusters: number;
    readonly peakNodes: number;
    readonly costs: readonly Cost[];
    /** The part of the cost for control planes, in micros; and the cost by use. */
    readonly fees: Micros;
    readonly paidFor: PaidFor;
  };
  /** CPU of bought clusters in millicores times milliseconds: paid, and used. */
  readonly paidCpu: number;
  readonly usedCpu: number;
  /** Amounts of the hub's workloads that ran, over time. */
  readonly ran: readonly DemandSince[];
}

/** @param costs cost of bought clusters */
export function workReport(simulation: Simulation, costs: readonly Cost[]): WorkReport | undefined {
  const { work, standings, rehearsed, now } = simulation;
  if (!work) return undefined;
  const { all, waited, beyondStartup } = work.waits;
  const money = (of: Parameters<typeof standings.sum>[0]) => BigInt(Math.round(standings.sum(of, now) / HOUR_MS));
  const [fees, waitingFees, warm, asleep, woken, starting, idle, spare, room] = [
    money('boughtFees'),
    money('boughtWaitingFees'),
    money('boughtWarm'),
    money('boughtAsleep'),
    money('boughtWoken'),
    money('boughtStarting'),
    money('boughtIdle'),
    money('boughtSpare'),
    money('boughtRoom'),
  ];
  const controlPlanes = fees - waitingFees;
  const rest = money('boughtHourly') - controlPlanes - warm - asleep - starting - idle - spare - room;
  // Each part is rounded, so without workloads the rest may be negative.
  const used = rest > 0n ? rest : 0n;
  const stabilisation = rehearsed ? policyLimitsOf(rehearsed.policy.spec).pendingForMs : 0;
  return {
    waits: waitsOf(all),
    waited: waitsOf(waited),
    waitedAfterStabilisation: without(waitsOf(waited), stabilisation),
    waitedBeyondStartup: waitsOf(beyondStartup),
    neverRan: waitsOf(work.neverRan(now)),
    cancelled: work.waits.givenUp.served,
    waiting: [...work.groups.values()].reduce((sum, { waitingCount }) => sum + waitingCount, 0),
    refusals: [...(rehearsed?.refusals.values() ?? [])].sort((a, b) => b.looks - a.looks || a.first - b.first),
    bought: {
      clusters: [...simulation.clusters.values()].filter(({ candidate }) => candidate !== undefined).length,
      peakClusters: standings.peak('boughtClusters'),
      peakNodes: standings.peak('boughtNodes'),
      costs: woken > 0n ? withCost(costs, rehearsed!.policy.spec.budget.currency, woken) : costs,
      fees,
      paidFor: { controlPlanes, warm, asleep, woken, starting, idle, spare, room, work: used },
    },
    paidCpu: standings.sum('boughtPaid', now),
    usedCpu: standings.sum('boughtUsed', now),
    ran: standings.ran,
  };
}

/** Adds the cost of woken clusters, which are not bought and in no other cost. */
function withCost(costs: readonly Cost[], currency: string, more: Micros): Cost[] {
  const before = costs.find((cost) => cost.currency === currency)?.amount ?? 0n;
  return [...costs.filter((cost) => cost.currency !== currency), { currency, amount: before + more }];
}

function waitsOf(histogram: WaitHistogram): WaitPercentiles {
  const { served, max } = histogram;
  // Rounded up to three digits, a quantile may exceed the longest wait.
  const quantile = (share: number) => Math.min(waitQuantile(histogram, share) ?? 0, max);
  return served === 0
    ? { count: 0 }
    : { count: served, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max };
}

const without = ({ count, ...waits }: WaitPercentiles, ms: number): WaitPercentiles => ({
  count,
  ...Object.fromEntries(Object.entries(waits).map(([name, wait]) => [name, Math.max(0, wait - ms)])),
});
