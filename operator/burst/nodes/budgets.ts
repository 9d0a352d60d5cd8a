import { rfc3339 } from '../../api/conditions.ts';
import { lastTime, nextTime, parseCron } from '../../api/cron.ts';
import { parseDuration } from '../../api/duration.ts';
import { countOrPercentOf } from '../../api/quantity.ts';
import { DISRUPTION_REASONS, type DisruptionBudget } from '../../api/worker-pool.ts';

/** Why a node is removed: it is empty, or its pods fit elsewhere. */
export type DisruptionReason = (typeof DISRUPTION_REASONS)[number];

/** A disruption budget that applies now. */
export interface DisruptionLimit {
  /** Most disrupted nodes of the pool at once. */
  readonly nodes: number;
  readonly reasons: readonly DisruptionReason[];
  /** The budget as written and until when it applies, for people. */
  readonly words: string;
}

/** Allowed and present disruption of a pool. */
export interface Disruption {
  readonly limits: readonly DisruptionLimit[];
  /**
   * Nodes that are disrupted for other reasons than draining: being deleted, not Ready, or interrupted by the cloud.
   */
  readonly missing: number;
}

/**
 * Budgets of a pool that apply now.
 * @param total nodes of the pool, for percentages
 * @param now milliseconds since the epoch
 * @returns also when the next budget begins or ends to apply, milliseconds since the epoch
 */
export function budgetLimitsOf(
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
      // Rounded up as in Karpenter: 10% of three nodes would otherwise block for ever.
      nodes: countOrPercentOf(nodes, total, Math.ceil),
      reasons: reasons.length > 0 ? reasons : DISRUPTION_REASONS,
      words: `its disruption budget (nodes: ${nodes}${end})`,
    });
  }
  return { limits, changesAt: changesAt.filter(Number.isFinite) };
}

/** When an inactive budget begins (Infinity: never), or an active one ends (absent: never). */
function windowOf({ schedule, duration }: DisruptionBudget, now: number): { from?: number; until?: number } {
  if (schedule === undefined) return {};
  const cron = parseCron(schedule);
  const length = parseDuration(duration ?? '');
  // An invalid schedule applies always: a node too many costs less than an unwanted disruption.
  if (!cron || length === undefined) return {};
  const at = new Date(now);
  const last = lastTime(cron, 'UTC', at);
  if (last !== undefined && now < +last + length) return { until: +last + length };
  const next = nextTime(cron, 'UTC', at);
  return { from: next ? +next : Number.POSITIVE_INFINITY };
}

/**
 * The budget that blocks another removal for this reason; undefined: none.
 * @param emptying nodes of the pool that are being drained
 */
export const limitReached = (
  { limits, missing }: Disruption,
  reason: DisruptionReason,
  emptying: number,
): DisruptionLimit | undefined => tightest(limits, reason, missing + emptying);

/** The budget that is already exceeded; undefined: none. */
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
