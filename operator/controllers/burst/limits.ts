import type { BurstPolicySpec } from '../../api/burstpolicy.ts';
import { parseDuration } from '../../api/duration.ts';
import type { Limits } from '../../burst/clusters/model.ts';
import { parseMoney } from '../../cost/money.ts';

const MINUTE_MS = 60_000;

/** Limits of a policy with defaults. */
export function policyLimitsOf(spec: BurstPolicySpec): Limits {
  const { trigger, minimumPriority, maximumClusters, maximumNodes, budget, scaleIn, cooldown, suspend } = spec;
  const time = (text: string | undefined, usual: number) =>
    text === undefined ? usual : (parseDuration(text) ?? usual);
  return {
    pendingForMs: time(trigger?.pendingFor, 30_000),
    startWithinMs: trigger?.startWithin === undefined ? undefined : parseDuration(trigger.startWithin),
    minimumPriority,
    maximumClusters,
    maximumNodes,
    hourly: parseMoney(budget.hourly),
    monthly: budget.monthly === undefined ? undefined : parseMoney(budget.monthly),
    currency: budget.currency,
    idleForMs: time(scaleIn?.idleFor, 10 * MINUTE_MS),
    minimumLifeMs: time(scaleIn?.minimumLife, 30 * MINUTE_MS),
    cooldownOutMs: time(cooldown?.scaleOut, MINUTE_MS),
    cooldownInMs: time(cooldown?.scaleIn, 10 * MINUTE_MS),
    isSuspended: suspend ?? false,
  };
}
