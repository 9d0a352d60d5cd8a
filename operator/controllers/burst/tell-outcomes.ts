import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision, BurstOutcome } from '../../api/burstpolicy-status.ts';
import { findCondition, HIBERNATED } from '../../api/conditions.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { BurstSight } from './world.ts';

/** From a node within seconds to a cluster that runs for a night. */
const BUCKETS = [5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 14_400, 43_200];

/** Results that deserve attention. */
const BAD: ReadonlySet<BurstOutcome['result']> = new Set(['Unused', 'Failed', 'Lost']);

/** Since when a policy's cluster sleeps, by its condition Hibernated; milliseconds since the epoch. */
export const asleepSince =
  ({ clusters }: Pick<BurstSight, 'clusters'>, { metadata: { namespace } }: BurstPolicy) =>
  (name: string): number | undefined => {
    const said = findCondition(clusters.get(`${namespace}/${name}`)?.status?.conditions, HIBERNATED);
    return said?.status === 'True' ? Date.parse(said.lastTransitionTime) : undefined;
  };

/** New decisions, oldest first. */
export function freshIn(before: readonly BurstDecision[], after: readonly BurstDecision[]): BurstDecision[] {
  const known = new Set(before.map(withoutOutcome));
  return after.filter((one) => !known.has(withoutOutcome(one))).reverse();
}

/** Decisions that are newly finished, oldest first. */
export function endedIn(before: readonly BurstDecision[], after: readonly BurstDecision[]): BurstDecision[] {
  const known = new Set(before.flatMap((one) => (one.outcome?.endedAt ? [withoutOutcome(one)] : [])));
  return after.filter((one) => one.outcome?.endedAt && !known.has(withoutOutcome(one))).reverse();
}

/** Identity of a decision, independent of its outcome. */
function withoutOutcome(decision: BurstDecision): string {
  const { outcome: _, ...said } = decision;
  return JSON.stringify(said);
}

/** Records Events and metrics of outcomes. */
export function tellOutcomes(
  { recordEvent, metrics }: Pick<BurstDependencies, 'recordEvent' | 'metrics'>,
  policy: BurstPolicy,
  ended: readonly BurstDecision[],
): void {
  for (const { at, action, cluster, outcome } of ended) {
    const { result, message, endedAt = at } = outcome!;
    const text = `${action}, WorkerCluster ${cluster}: ${message}`;
    recordEvent(policy, BAD.has(result) ? 'Warning' : 'Normal', `Decision${result}`, text);
    metrics
      .histogram(
        'coppice_burst_outcome_seconds',
        'Time from decisions of BurstPolicies until it was known what became of them.',
        ['action', 'result'],
        BUCKETS,
      )
      .observe({ action, result }, Math.max(0, Date.parse(endedAt) - Date.parse(at)) / 1000);
  }
}

/** Records Events and metrics of decisions. */
export function tellDecisions(
  { recordEvent, metrics }: Pick<BurstDependencies, 'recordEvent' | 'metrics'>,
  policy: BurstPolicy,
  fresh: readonly BurstDecision[],
): void {
  for (const { action, source, cluster, why, dryRun } of fresh) {
    const text = [dryRun && 'dry run', cluster && `WorkerCluster ${cluster}`, source, why].filter(Boolean).join(': ');
    recordEvent(policy, TYPES[action], REASONS[action], text);
    metrics
      .counter('coppice_burst_decisions_total', 'Decisions of BurstPolicies by action.', ['action'])
      .inc({ action });
  }
}

const REASONS = {
  Buy: 'ClusterBought',
  Open: 'ClusterOpened',
  Wake: 'ClusterWoken',
  Grow: 'NodesAdded',
  Refuse: 'NothingBought',
  Empty: 'ClusterEmptied',
  Keep: 'ClusterKept',
  Cut: 'OrderCut',
  Sleep: 'ClusterPutToSleep',
  Remove: 'ClusterGivenBack',
  Fail: 'ClusterFailed',
} as const;
const TYPES = {
  Buy: 'Normal',
  Open: 'Normal',
  Wake: 'Normal',
  Grow: 'Normal',
  Refuse: 'Warning',
  Empty: 'Normal',
  Keep: 'Normal',
  Cut: 'Normal',
  Sleep: 'Normal',
  Remove: 'Normal',
  Fail: 'Warning',
} as const;
