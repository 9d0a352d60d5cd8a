import type { BurstPolicy } from '../../api/burstpolicy.ts';
import {
  type BurstPhase,
  type BurstPolicyStatus,
  KEPT_DECISIONS,
  SHOWN_DEMAND,
  SHOWN_MONTHS,
} from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { isOn } from '../../burst/clusters/peaks.ts';
import type { WorkState, WorkVerdict } from '../../burst/clusters/plan-model.ts';
import {
  type ClusterPurchase,
  clusterNameOf,
  grantedNodes,
  mustSleep,
  purchaseHasEnded,
  rejoinedAt,
} from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn, measuredWakingMs, nodesIn, wakesIn } from '../../burst/clusters/receipt.ts';
import { grownNodes } from '../../burst/clusters/receipt-facts.ts';
import { hourlyOf, monthOf, spentByMonth } from '../../burst/clusters/spend.ts';
import { formatMoney } from '../../cost/money.ts';
import { say, withConditions } from '../conditions.ts';
import { peaksOf } from './peaks.ts';
import type { Outcome, PurchaseSeen } from './seen.ts';

/** Most listed entries. */
const MOST_GROWTHS = 100;
/** Smallest idle time that is shown: waiting work restarts it in each cycle, which would cause a write each. */
const SHOWN_IDLE_MS = 10_000;

/** States by importance for people. */
const BY_WEIGHT: readonly WorkState[] = [
  'Refused',
  'Bought',
  'Growing',
  'Opened',
  'Waking',
  'RoomOrdered',
  'CoolingDown',
  'Stabilising',
  'Suspended',
  'Later',
  'LowPriority',
  'Fits',
];

/** Status of a policy. Stable while nothing happens: sums have their own time. Pure. */
export function policyStatusOf(policy: BurstPolicy, outcome: Outcome, now: Date): BurstPolicyStatus {
  const { receipt, seen, candidates, waiting, verdicts, stays, ready, deleting } = outcome;
  const { budget } = policy.spec;
  const clusters = clustersIn(receipt).map((purchase) => {
    const its = seen.find((one) => one.purchase.name === purchase.name);
    const own = its?.own;
    return {
      name: purchase.name,
      candidate: purchase.candidate,
      phase: phaseOf(purchase, its),
      since: purchase.at,
      hourly: purchase.rate,
      ...(purchase.granted && { grantedNodes: grantedNodes(purchase.granted), counted: purchase.most }),
      ...idleTime(own?.idleSince, now),
      ...(stays?.has(purchase.name) && { stays: stays.get(purchase.name)!.slice(0, 1000) }),
    };
  });
  const peaks = peaksOf(policy.spec, now.getTime())
    .filter((peak) => !peak.isMinimum && isOn(peak, now.getTime()))
    .map(({ name, clusters: least, from, until }) => ({
      name,
      clusters: least,
      since: rfc3339(new Date(from)),
      until: rfc3339(new Date(until)),
    }));
  const byText = new Map(verdicts.map((verdict) => [verdict.source, verdict]));
  const before = policy.status;
  const next: BurstPolicyStatus = {
    conditions: withConditions<'BurstPolicy'>(
      before?.conditions,
      [
        say('Ready', ready.status, ready.reason, ready.message),
        ready.status || verdicts.length > 0 ? demandMet(verdicts) : undefined,
        deleting ? say('Deleting', true, 'ClustersLeave', deleting) : undefined,
      ],
      now,
    ),
    observedGeneration: policy.metadata.generation,
    clusters,
    clusterCount: clusters.length,
    ...(peaks.length > 0 && { peaks }),
    ...(nodesIn(receipt).length > 0 && { nodes: nodesOf(receipt) }),
    ...(wakesIn(receipt).length > 0 && { woken: wokenOf(outcome, now) }),
    ...(policy.spec.maximumNodes !== undefined && {
      nodeCount: seen.reduce((sum, { own: { nodes = 0 } }) => sum + nodes, grownNodes(receipt)),
    }),
    hourly: formatMoney(hourlyOf(receipt)),
    demand: [...waiting]
      .sort((a, b) => a.since - b.since)
      .slice(0, SHOWN_DEMAND)
      .map(({ source, count, asked, since }) => {
        const verdict = byText.get(source);
        return {
          source,
          count,
          each: asked,
          since: rfc3339(new Date(since)),
          state: verdict?.state ?? 'ServedByOther',
          ...(verdict && { message: verdict.message.slice(0, 2000) }),
        };
      }),
    candidates: candidates.map((one) => {
      const price = one.offer?.price(new Map());
      const problem = one.problem ?? one.unused?.why ?? (typeof price === 'string' ? price : one.steady?.problem);
      return {
        name: one.name,
        ...(price !== undefined && typeof price !== 'string' && { hourly: formatMoney(price.hourly) }),
        ...(one.startupMs !== undefined && { startupSeconds: Math.round(one.startupMs / 1000) }),
        ...wakingSeconds(receipt, one.name),
        ...(problem !== undefined && { problem: problem.slice(0, 2000) }),
      };
    }),
    ...(outcome.soldOut?.length && { soldOut: outcome.soldOut }),
    decisions: receipt.decisions.slice(0, KEPT_DECISIONS),
    ...(before?.spend && { spend: before.spend }),
  };
  const month = monthOf(now.getTime());
  if (before?.spend?.month === month && !outcome.isNews) return next;
  const { [month]: amount = '0', ...earlier } = spentByMonth(receipt, now.getTime());
  const previous = Object.entries(earlier)
    .map(([of, spent]) => ({ month: of, amount: spent }))
    .sort((a, b) => (a.month > b.month ? -1 : 1))
    .slice(0, SHOWN_MONTHS);
  const spend = { month, amount, currency: budget.currency, asOf: rfc3339(now) };
  return { ...next, spend: { ...spend, ...(previous.length > 0 && { previous }) } };
}

function phaseOf(purchase: ClusterPurchase, seen: PurchaseSeen | undefined): BurstPhase {
  const phase = seen?.own.phase ?? 'Ordered';
  switch (purchase.phase.name) {
    case 'Leaving':
      return 'Leaving';
    case 'Emptying':
      return 'Emptying';
    case 'Asleep':
      if (seen && mustSleep(purchase)) return 'Asleep';
      return phase === 'Joined' ? 'Warm' : phase;
    case 'Warm':
      return phase === 'Joined' ? 'Warm' : phase;
    case 'Coming':
    case 'Joined':
      // A cluster that left its hub is shown as on its way.
      return phase === 'Joined' && !seen?.hasJoined ? 'Making' : phase;
  }
}

const wokenOf = ({ receipt, woken = [] }: Outcome, now: Date): BurstPolicyStatus['woken'] =>
  wakesIn(receipt)
    .slice(-MOST_GROWTHS)
    .map((wake) => {
      const { cluster, entry, at, rate } = wake;
      const { idleSince } = woken.find(({ key }) => key === cluster) ?? {};
      return {
        cluster: clusterNameOf(cluster),
        entry,
        phase: purchaseHasEnded(wake) ? 'Leaving' : rejoinedAt(wake) === undefined ? 'Waking' : 'Joined',
        since: at,
        hourly: rate,
        ...idleTime(idleSince, now),
      };
    });

const idleTime = (idleSince: number | undefined, now: Date): { idleSince?: string } =>
  idleSince !== undefined && idleSince + SHOWN_IDLE_MS <= now.getTime()
    ? { idleSince: rfc3339(new Date(idleSince)) }
    : {};

function wakingSeconds(receipt: BurstReceipt, candidate: string): { wakingSeconds?: number } {
  const ms = measuredWakingMs(receipt, candidate);
  return ms === undefined ? {} : { wakingSeconds: Math.round(ms / 1000) };
}

const nodesOf = (receipt: BurstReceipt) =>
  nodesIn(receipt)
    .slice(-MOST_GROWTHS)
    .map(({ cluster, pool, nodes, at, rate }) => ({
      cluster: clusterNameOf(cluster),
      pool,
      count: nodes,
      since: at,
      hourly: rate,
    }));

function demandMet(verdicts: readonly WorkVerdict[]) {
  const [first] = [...verdicts].sort((a, b) => BY_WEIGHT.indexOf(a.state) - BY_WEIGHT.indexOf(b.state));
  if (!first) return say('DemandMet', true, 'NothingWaits', 'no work of the hub waits for room');
  const more = verdicts.length > 1 ? `; and ${verdicts.length - 1} more workloads wait` : '';
  return say('DemandMet', false, first.state, `${first.source}: ${first.message}${more}`.slice(0, 4000));
}
