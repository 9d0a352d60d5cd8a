import { rfc3339 } from '../../api/conditions.ts';
import { lastTime, nextTime, parseCron } from '../../api/cron.ts';
import { parseDuration } from '../../api/duration.ts';
import { countOf } from '../../api/quantity.ts';
import { DISRUPTION_REASONS, type DisruptionBudget } from '../../api/worker-pool.ts';

/** Why a node would go: nothing runs on it, or its pods have room elsewhere. */
export type DisruptionReason = (typeof DISRUPTION_REASONS)[number];

/** A budget that holds now. */
export interface DisruptionLimit {
  /** Most nodes of the pool that may be missing at once. */
  readonly nodes: number;
  readonly reasons: readonly DisruptionReason[];
  /** As somebody wrote it, and until when it holds, for people. */
  readonly words: string;
}

/** How many nodes of a pool may be missing at once, and are. */
export interface Disruption {
  readonly limits: readonly DisruptionLimit[];
  /** Nodes that are missing for other reasons than that they are being emptied: they leave, are not Ready, or a cloud takes them away. */
  readonly missing: number;
}

/**
 * The budgets of a pool that hold now.
 * @param total nodes that the pool has; percentages are of these
 * @param now milliseconds since the epoch
 * @returns also when the next of them begins or ends to hold, milliseconds since the epoch
 */
export function limitsOf(
  budgets: readonly DisruptionBudget[],
  total: number,
  now: number,
): { limits: DisruptionLimit[]; changesAt: number[] } {
  const limits: DisruptionLimit[] = [];
  const changesAt: number[] = [];
  for (const budget of budgets) {
    const { from, until } = windowOf(budget, now);
    changesAt.push(from ?? until ?? Number.POSITIVE_INFINITY);
    if (from !== undefined) continue;
    const { nodes, reasons = [] } = budget;
    const end = until === undefined ? '' : `, until ${rfc3339(new Date(until))}`;
    limits.push({
      // Karpenter rounds up as well: 10% of three nodes would let none go for ever.
      nodes: countOf(nodes, total, Math.ceil),
      reasons: reasons.length > 0 ? reasons : DISRUPTION_REASONS,
      words: `its disruption budget (nodes: ${nodes}${end})`,
    });
  }
  return { limits, changesAt: changesAt.filter(Number.isFinite) };
}

/** From when a budget holds that does not now (Infinity: never again), or until when one holds that does (absent: always). */
function windowOf({ schedule, duration }: DisruptionBudget, now: number): { from?: number; until?: number } {
  if (schedule === undefined) return {};
  const cron = parseCron(schedule);
  const length = parseDuration(duration ?? '');
  // What cannot be read holds always: a node too many costs less than one that was to be left alone.
  if (!cron || length === undefined) return {};
  const at = new Date(now);
  const last = lastTime(cron, 'UTC', at);
  if (last !== undefined && now < +last + length) return { until: +last + length };
  const next = nextTime(cron, 'UTC', at);
  return { from: next ? +next : Number.POSITIVE_INFINITY };
}

/**
 * The budget by which no node more may go for this reason; undefined: one may.
 * @param emptying nodes of the pool that are being emptied
 */
export const limitReached = (
  { limits, missing }: Disruption,
  reason: DisruptionReason,
  emptying: number,
): DisruptionLimit | undefined => tightest(limits, reason, missing + emptying);

/** The budget by which more nodes are missing already than may be; undefined: none. */
export const limitExceeded = (
  { limits, missing }: Disruption,
  reason: DisruptionReason,
  emptying: number,
): DisruptionLimit | undefined => tightest(limits, reason, missing + emptying - 1);

const tightest = (
  limits: readonly DisruptionLimit[],
  reason: DisruptionReason,
  missing: number,
): DisruptionLimit | undefined =>
  limits
    .filter(({ nodes, reasons }) => reasons.includes(reason) && nodes <= missing)
    .sort((a, b) => a.nodes - b.nodes)[0];
