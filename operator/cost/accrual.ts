import { rfc3339 } from '../api/conditions.ts';
import type { ClusterCost } from '../api/cost.ts';
import { formatMoney, type Micros, parseMoney } from './money.ts';
import type { HourlyPrice } from './price.ts';

const SECONDS_PER_HOUR = 3600n;

/** Accrued cost in 1/3600 of a micro: hourly micros times whole seconds, so no division loses anything. */
function accruedParts(cost: ClusterCost, now: Date): bigint {
  const before = parseMoney(cost.accrued ?? '0') * SECONDS_PER_HOUR + BigInt(cost.remainder ?? 0);
  if (cost.asOf === undefined || cost.hourly === undefined) return before;
  const seconds = Math.floor(now.getTime() / 1000) - Date.parse(cost.asOf) / 1000;
  // A clock set back never lowers a reported sum.
  return before + parseMoney(cost.hourly) * BigInt(Math.max(0, seconds));
}

/** The cluster's cost until now: shown in place of an old status. */
export const accruedUntil = (cost: ClusterCost, now: Date): Micros => accruedParts(cost, now) / SECONDS_PER_HOUR;

/**
 * The cost from now on: the past is summed exactly at the previous rate, and the new rate begins. While rate and
 * currency are unchanged, so are the figures, and nothing needs to be written. Times count in whole seconds.
 * @param before the status; absent: no cost yet. In another currency it cannot be summed, and the sum starts at zero
 */
export function accrue(before: ClusterCost | undefined, now: Date, price: HourlyPrice): ClusterCost | undefined {
  // A profile that lost its prices does not lower the sum either.
  const currency = price.currency ?? before?.currency;
  const unpriced = price.unpriced.length > 0 ? { unpriced: [...price.unpriced].slice(0, 64) } : {};
  if (currency === undefined) return price.unpriced.length > 0 ? unpriced : undefined;
  if (!before && price.hourly === 0n && price.unpriced.length === 0) return undefined;
  const hourly = price.hourly === undefined ? undefined : formatMoney(price.hourly);
  const known = before?.currency === currency ? before : undefined;
  if (known?.asOf !== undefined && known.hourly === hourly) {
    const { unpriced: _, ...figures } = known;
    return { ...figures, ...unpriced };
  }
  const parts = known ? accruedParts(known, now) : 0n;
  const remainder = Number(parts % SECONDS_PER_HOUR);
  const asOf = rfc3339(now);
  return {
    ...(hourly !== undefined && { hourly }),
    accrued: formatMoney(parts / SECONDS_PER_HOUR),
    ...(remainder > 0 && { remainder }),
    currency,
    // A clock set back must not count the same seconds twice.
    asOf: known?.asOf !== undefined && Date.parse(known.asOf) > Date.parse(asOf) ? known.asOf : asOf,
    ...unpriced,
  };
}
