import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision } from '../../api/burstpolicy-status.ts';
import { findCondition, isTrue } from '../../api/conditions.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';
import { oneLine } from '../errors.ts';
import { priceText, staysLines } from './burst.ts';

/** What the policy would do now, and at what price. @param policy with a status from previewBurst */
export function planLines({ metadata, spec, status }: BurstPolicy): string[] {
  const { currency, hourly } = spec.budget;
  const head = `BurstPolicy ${metadata.namespace}/${metadata.name}, Hub ${spec.hub}: what it would do now`;
  if (!isTrue(status?.conditions, 'Ready')) {
    const problem = findCondition(status?.conditions, 'Ready') ?? findCondition(status?.conditions, 'Reconciled');
    return [head, `  nothing: ${oneLine(problem?.message ?? 'the reason is not known')}`];
  }
  const decisions = (status?.decisions ?? []).toReversed();
  const waiting = (status?.demand ?? []).map(
    ({ source, count, message = '' }) => `  ${oneLine(source)} waits, ${count} replicas: ${oneLine(message)}`,
  );
  const bought = decisions.reduce((sum, one) => sum + (COSTS.has(one.action) ? parseMoney(one.hourly ?? '0') : 0n), 0n);
  const stays = staysLines(status?.clusters);
  const has = parseMoney(status?.hourly ?? '0');
  return [
    head,
    ...(waiting.length > 0 ? waiting : ['  nothing waits']),
    ...(decisions.length > 0 ? decisions.flatMap((one) => linesOf(one, currency)) : ['  it would do nothing']),
    ...stays,
    `  Cost: ${formatMoney(has)} ${currency} an hour now, ${formatMoney(has + bought)} with what it would buy, of at most ${hourly}`,
  ];
}

const COSTS: ReadonlySet<BurstDecision['action']> = new Set(['Buy', 'Wake', 'Grow']);
const WORDS: Record<BurstDecision['action'], string> = {
  Buy: 'buy a cluster of',
  Open: 'let the hub place work on',
  Wake: 'wake',
  Grow: 'add nodes to',
  Empty: 'let the hub move all work off',
  Cut: 'cut the nodes of',
  Keep: 'let the hub place work again on',
  Sleep: 'put to sleep',
  Remove: 'delete',
  Fail: 'give up',
  Refuse: 'buy nothing for',
};

function linesOf({ action, candidate, cluster, source, hourly, why, alternatives }: BurstDecision, currency: string) {
  const price = priceText(action, hourly, currency);
  return [
    `  would ${WORDS[action]} ${oneLine(cluster ?? candidate ?? source ?? '')}${price}: ${oneLine(why)}`,
    ...(alternatives ?? []).map(
      (other) =>
        `      not ${other.candidate}${other.hourly === undefined ? '' : ` (${other.hourly})`}: ${oneLine(other.whyNot ?? '')}`,
    ),
  ];
}
