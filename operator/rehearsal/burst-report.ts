import { limitsOf } from '../controllers/burst/limits.ts';
import type { Micros } from '../cost/money.ts';
import type { Asked } from './bound/demand-curve.ts';
import type { Cost } from './money.ts';
import type { Refusal } from './rehearsed-policy.ts';
import type { Simulation } from './state.ts';
import { type WaitHistogram, waitQuantile } from './waits.ts';

const HOUR_MS = 3_600_000;

/** Waits in milliseconds, to three digits; absent: nobody waited. */
export interface Waits {
  readonly count: number;
  readonly p50?: number;
  readonly p95?: number;
  readonly p99?: number;
  readonly max?: number;
}

/** What bought clusters were paid for, in millionths, by each moment; what billing steps add is in none. */
interface PaidFor {
  /** Control planes of clusters that took work. */
  readonly controlPlanes: Micros;
  /** Clusters that waited, with their control planes. */
  readonly warm: Micros;
  readonly asleep: Micros;
  /** Machines of clusters of others that were woken, by each moment. */
  readonly woken: Micros;
  /** Of the machines of others: until they were Ready, and after. */
  readonly starting: Micros;
  /** In clusters without work. */
  readonly idle: Micros;
  /** Without work, in clusters that had some. */
  readonly spare: Micros;
  /** Of those with work what no work had. */
  readonly room: Micros;
  readonly work: Micros;
}

/** What came of workloads, and of a policy that bought clusters for them. */
export interface WorkReport {
  /** Replicas and jobs that ran, from the moment in which they were asked for. */
  readonly waits: Waits;
  /** Of those that did not run at once. */
  readonly waited: Waits;
  /** The same without the time in which a policy waits whether work goes away by itself. */
  readonly waitedAfterStabilisation: Waits;
  /** The same without the time that the cloud took for the node that they ran on. */
  readonly waitedBeyondStartup: Waits;
  /** Of those that never ran, until they were given up, or until the end. Its count is the sum of the next two. */
  readonly neverRan: Waits;
  /** Given up before they ran, and waiting at the end. */
  readonly cancelled: number;
  readonly waiting: number;
  /** Why nothing was bought for work that waited, the most frequent first. */
  readonly refusals: readonly Refusal[];
  /** Clusters that were bought, how many of them and of their nodes there were at most, and what they cost. */
  readonly bought: {
    readonly clusters: number;
    readonly peakClusters: number;
    readonly peakNodes: number;
    readonly costs: readonly Cost[];
    /** What of that is for control planes, in millionths; and what all of it is for. */
    readonly fees: Micros;
    readonly paidFor: PaidFor;
  };
  /** CPU of bought clusters in millicores times milliseconds: what was paid for, and what ran there. */
  readonly paidCpu: number;
  readonly usedCpu: number;
  /** What ran of the hub's work, from moment to moment. */
  readonly ran: readonly Asked[];
}

/** @param costs of what was bought */
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
  // Each is rounded by itself, so without work the rest may be below nothing.
  const used = rest > 0n ? rest : 0n;
  const stabilisation = rehearsed ? limitsOf(rehearsed.policy.spec).pendingForMs : 0;
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

/** What was woken is somebody's: it is in no cost of what was bought. */
function withCost(costs: readonly Cost[], currency: string, more: Micros): Cost[] {
  const before = costs.find((cost) => cost.currency === currency)?.amount ?? 0n;
  return [...costs.filter((cost) => cost.currency !== currency), { currency, amount: before + more }];
}

function waitsOf(histogram: WaitHistogram): Waits {
  const { served, max } = histogram;
  // Rounded up to three digits, a quantile may come out above the longest wait.
  const quantile = (share: number) => Math.min(waitQuantile(histogram, share) ?? 0, max);
  return served === 0
    ? { count: 0 }
    : { count: served, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max };
}

const without = ({ count, ...waits }: Waits, ms: number): Waits => ({
  count,
  ...Object.fromEntries(Object.entries(waits).map(([name, wait]) => [name, Math.max(0, wait - ms)])),
});
