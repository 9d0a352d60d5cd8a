import type { ClusterCost } from '../../api/cost.ts';
import { HOURS_PER_MONTH } from '../../api/quota.ts';
import { accruedUntil } from '../../cost/accrual.ts';
import { parseMoney, roundMoney } from '../../cost/money.ts';

/** Hourly cost: `1.1520 USD`; with `+` if a part has no price, `?` if no part has one. */
export function hourlyText(cost: ClusterCost | undefined): string | undefined {
  if (!cost) return undefined;
  const unpriced = (cost.unpriced?.length ?? 0) > 0;
  if (cost.hourly === undefined) return unpriced ? '?' : undefined;
  return `${roundMoney(parseMoney(cost.hourly), 4)}${unpriced ? '+' : ''} ${cost.currency}`;
}

/** Cost until now: `34.10 USD`. */
export function accruedText(cost: ClusterCost | undefined, now: number): string | undefined {
  if (cost?.accrued === undefined) return undefined;
  return `${roundMoney(accruedUntil(cost, new Date(now)), 2)} ${cost.currency}`;
}

/** Hourly cost and cost until now in one line. */
export function costSentence(cost: ClusterCost, now: number): string {
  const { hourly, currency } = cost;
  const figures =
    hourly === undefined
      ? []
      : [
          `${roundMoney(parseMoney(hourly), 4)} ${currency} an hour`,
          `about ${roundMoney(parseMoney(hourly) * BigInt(HOURS_PER_MONTH), 2)} ${currency} a month`,
        ];
  const soFar = accruedText(cost, now);
  const known = [...figures, ...(soFar ? [`${soFar} so far`] : [])];
  const unpriced = cost.unpriced ?? [];
  if (unpriced.length === 0) return known.join(', ');
  return [...known, `${known.length > 0 ? 'not in it' : 'not known'}: ${unpriced.join('; ')}`].join(', ');
}
