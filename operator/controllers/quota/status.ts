import { isForProject, type Metric, type Quota, type QuotaStatus, unactedQuotaFields } from '../../api/quota.ts';
import { type Claimant, quotaLimitsOf, usageTogether } from '../../cost/admission.ts';
import { formatAmount } from '../../cost/usage.ts';
import { say, withConditions } from '../conditions.ts';

const LINES_SHOWN = 5;

/** Status of a quota. Pure. `claimants`: all users in its namespace. */
export function quotaStatus(quota: Quota, claimants: readonly Claimant[], now: Date): QuotaStatus {
  const { namespace, generation } = quota.metadata;
  const before = quota.status?.conditions;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const unacted = unactedQuotaFields(quota);
  const kept =
    unacted.length > 0
      ? say('AllFieldsActedOn', false, 'KeptOnly', `stored without effect: ${unacted.join(', ')}`)
      : undefined;
  if (!isForProject(quota)) {
    const message = `a quota for ${quota.spec.scope?.kind} is stored without effect: it limits nothing. Leave scope out, or use kind Project`;
    const ready = say('Ready', false, 'ScopeNotActedOn', message, ['ERR_CONFIGURATION_PROBLEM']);
    return { conditions: withConditions<'Quota'>(before, [ready, kept], now), ...observed };
  }
  const { amounts, unknown } = usageTogether(claimants, quota.spec.currency);
  const limits = quotaLimitsOf(quota).map(({ metric, limit }) => ({ metric, limit, used: amounts[metric] }));
  const show = (metric: Metric, used: bigint, limit: bigint) =>
    `${metric} ${formatAmount(metric, used)}/${formatAmount(metric, limit)}${metric.startsWith('cost.') ? ` ${quota.spec.currency}` : ''}`;
  const above = limits.filter(({ used, limit }) => used > limit);
  return {
    conditions: withConditions<'Quota'>(
      before,
      [
        say('Ready', true, 'Enforced', `it limits the clusters of namespace ${namespace}`),
        above.length === 0
          ? say('WithinLimits', true, 'WithinLimits', 'nothing is above its limit')
          : say(
              'WithinLimits',
              false,
              'AboveLimit',
              `above the limit: ${above.map(({ metric, used, limit }) => show(metric, used, limit)).join(', ')}; what there is stays, nothing of it can grow`,
            ),
        kept,
        unknown.length > 0
          ? say('EverythingCounted', false, 'NotKnown', `not counted: ${shortened(unknown)}`)
          : undefined,
      ],
      now,
    ),
    used: Object.fromEntries(limits.map(({ metric, used }) => [metric, formatAmount(metric, used)])),
    summary: limits.map(({ metric, used, limit }) => show(metric, used, limit)).join(', '),
    ...observed,
  };
}

const shortened = (lines: readonly string[]): string =>
  lines.length > LINES_SHOWN
    ? `${lines.slice(0, LINES_SHOWN).join('; ')}; and ${lines.length - LINES_SHOWN} more`
    : lines.join('; ');
