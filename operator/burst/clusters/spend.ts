import { type ClusterBilling, costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import { billingOfPurchase, type ClusterPurchase, type Purchase } from './purchases.ts';
import { type BurstReceipt, clusterNamed, withPurchase } from './receipt.ts';
import { changeRate } from './transitions.ts';

const KEPT_MONTHS = 24;
const HOUR_MS = 3_600_000n;

/** The month that a time is in (UTC), for example 2026-11. */
export const monthOf = (time: number): string => new Date(time).toISOString().slice(0, 7);

/** What a cluster has cost in all, in millionths, if it costs only `left` an hour from now on; undefined: nobody knows. */
export function lifeCost(purchase: ClusterPurchase, left: Micros, now: number): Micros | undefined {
  const { at, rateSince, cost = rateSince === at ? '0' : undefined } = purchase;
  if (cost === undefined) return undefined;
  const since = withBegunOf(spentWith({}, purchase, now), purchase, left, now);
  return Object.values(since).reduce((sum, amount) => sum + parseMoney(amount), parseMoney(cost));
}

/** A cluster costs so much from now on; what it has cost until now is added to what was spent. */
export function setRate(receipt: BurstReceipt, name: string, rate: string, now: number): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  if (!purchase || purchase.rate === rate) return receipt;
  const [before, after] = [parseMoney(purchase.rate), parseMoney(rate)];
  const spent = spentWith(receipt.spent, purchase, now);
  const settled = { ...receipt, spent: after < before ? withBegunOf(spent, purchase, after, now) : spent };
  const cost = lifeCost(purchase, after < before ? after : before, now);
  const changed = changeRate(purchase, rate, cost === undefined ? undefined : formatMoney(cost), now);
  return withPurchase(settled, purchase, changed);
}

/** A cluster is gone: what it has cost until now is spent. */
export function forgetCluster(receipt: BurstReceipt, name: string, now: number): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  return purchase ? forgetPurchase(receipt, purchase, now) : receipt;
}

/** A purchase is gone: what it has cost until now is spent, with time that has begun. */
export function forgetPurchase(receipt: BurstReceipt, purchase: Purchase, now: number): BurstReceipt {
  const purchases = receipt.purchases.filter((one) => one !== purchase);
  return { ...receipt, purchases, spent: spentByEnd(receipt.spent, purchase, now) };
}

/** What was spent, by month (2026-11), when a purchase ends now. */
export function spentByEnd(
  before: Readonly<Record<string, string>>,
  purchase: Purchase,
  now: number,
): Readonly<Record<string, string>> {
  const spent = spentWith(before, purchase, now);
  switch (purchase.kind) {
    case 'cluster':
      return withBegunOf(spent, purchase, 0n, now);
    case 'nodes':
      return spent;
    case 'wake': {
      const life = Math.max(0, now - Date.parse(purchase.at));
      return withBegun(spent, parseMoney(purchase.rate), billingOfPurchase(purchase), life, now);
    }
  }
}

/** What was spent until then, by month (2026-11), as decimals. */
export const spentByMonth = (receipt: BurstReceipt, now: number): Readonly<Record<string, string>> =>
  receipt.purchases.reduce((spent, one) => spentWith(spent, one, now), receipt.spent);

/** What was spent in the month of `now` until then. */
export const spentUntil = (receipt: BurstReceipt, now: number): Micros =>
  parseMoney(spentByMonth(receipt, now)[monthOf(now)] ?? '0');

/** What all that it has costs in an hour. */
export const hourlyOf = (receipt: BurstReceipt): Micros =>
  receipt.purchases.reduce((sum, { rate }) => sum + parseMoney(rate), 0n);

/** With what its cloud takes for time that has begun, when it costs only `left` an hour from now on. */
function withBegunOf(
  spent: Readonly<Record<string, string>>,
  purchase: ClusterPurchase,
  left: Micros,
  now: number,
): Readonly<Record<string, string>> {
  const billing = billingOfPurchase(purchase);
  // What nobody has seen was not made.
  if (!billing || purchase.uid === undefined) return spent;
  const life = Math.max(0, now - Date.parse(purchase.wokenAt ?? purchase.at));
  const rate = parseMoney(purchase.rate);
  // Machines go before a control plane does.
  const fee = left < billing.fee ? (billing.fee < rate ? billing.fee : rate) - left : 0n;
  return withBegun(spent, rate - left, { ...billing, fee }, life, now);
}

/** The same of what costs so much in an hour, has lived so long and ends now. */
function withBegun(
  spent: Readonly<Record<string, string>>,
  hourly: Micros,
  billing: ClusterBilling | undefined,
  life: number,
  now: number,
): Readonly<Record<string, string>> {
  const begun = billing ? costOver(hourly, life, billing, life) : 0n;
  if (begun === 0n) return spent;
  const month = monthOf(now);
  return { ...spent, [month]: formatMoney(parseMoney(spent[month] ?? '0') + begun) };
}

/** What was spent, with what this has cost since `rateSince`. */
export function spentWith(
  spent: Readonly<Record<string, string>>,
  { rate, rateSince }: { readonly rate: string; readonly rateSince: string },
  now: number,
): Readonly<Record<string, string>> {
  const sums = { ...spent };
  const hourly = parseMoney(rate);
  for (let from = Date.parse(rateSince); from < now; ) {
    const date = new Date(from);
    const to = Math.min(now, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1));
    const month = monthOf(from);
    sums[month] = formatMoney(parseMoney(sums[month] ?? '0') + (hourly * BigInt(Math.floor(to - from))) / HOUR_MS);
    from = to;
  }
  return Object.fromEntries(Object.entries(sums).sort().slice(-KEPT_MONTHS));
}
