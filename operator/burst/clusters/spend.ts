import { type ClusterBilling, costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import { billingOfPurchase, type ClusterPurchase, type Purchase } from './purchases.ts';
import { type BurstReceipt, clusterNamed, withPurchase } from './receipt.ts';
import { changeRate } from './transitions.ts';

const KEPT_MONTHS = 24;
const HOUR_MS = 3_600_000n;

/** Month of a time (UTC), for example 2026-11. */
export const monthOf = (time: number): string => new Date(time).toISOString().slice(0, 7);

/** Total cost of a cluster in millionths, if it costs `left` per hour from now on; undefined: unknown. */
export function lifeCost(purchase: ClusterPurchase, left: Micros, now: number): Micros | undefined {
  const { at, rateSince, cost = rateSince === at ? '0' : undefined } = purchase;
  if (cost === undefined) return undefined;
  const since = withBegunOf(spentWith({}, purchase, now), purchase, left, now);
  return Object.values(since).reduce((sum, amount) => sum + parseMoney(amount), parseMoney(cost));
}

/** Sets the rate of a cluster; its cost so far is added to what was spent. */
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

/** Removes a cluster; its cost so far is spent. */
export function forgetCluster(receipt: BurstReceipt, name: string, now: number): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  return purchase ? forgetPurchase(receipt, purchase, now) : receipt;
}

/** Removes a purchase; its cost so far is spent, including begun billing periods. */
export function forgetPurchase(receipt: BurstReceipt, purchase: Purchase, now: number): BurstReceipt {
  const purchases = receipt.purchases.filter((one) => one !== purchase);
  return { ...receipt, purchases, spent: spentByEnd(receipt.spent, purchase, now) };
}

/** Spending by month (2026-11) if a purchase ends now. */
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

/** Spending until `now` by month (2026-11), decimals. */
export const spentByMonth = (receipt: BurstReceipt, now: number): Readonly<Record<string, string>> =>
  receipt.purchases.reduce((spent, one) => spentWith(spent, one, now), receipt.spent);

/** Spending in the month of `now` until then. */
export function spentUntil(receipt: BurstReceipt, now: number): Micros {
  const begun = new Date(now);
  const month = { at: Date.UTC(begun.getUTCFullYear(), begun.getUTCMonth()), name: monthOf(now) };
  return receipt.purchases.reduce(
    (sum, { rate, rateSince }) => sum + costBetween(parseMoney(rate), Math.max(month.at, Date.parse(rateSince)), now),
    parseMoney(receipt.spent[month.name] ?? '0'),
  );
}

/** Cost of an hourly rate between two times, milliseconds since the epoch; 0 if `to` is not after `from`. */
const costBetween = (hourly: Micros, from: number, to: number): Micros =>
  to > from ? (hourly * BigInt(Math.floor(to - from))) / HOUR_MS : 0n;

/** Cost per hour of all purchases. */
export const hourlyOf = (receipt: BurstReceipt): Micros =>
  receipt.purchases.reduce((sum, { rate }) => sum + parseMoney(rate), 0n);

/** Adds begun billing periods when a purchase drops to `left` per hour. */
function withBegunOf(
  spent: Readonly<Record<string, string>>,
  purchase: ClusterPurchase,
  left: Micros,
  now: number,
): Readonly<Record<string, string>> {
  const billing = billingOfPurchase(purchase);
  // A cluster that was never seen was not made.
  if (!billing || purchase.uid === undefined) return spent;
  const life = Math.max(0, now - Date.parse(purchase.wokenAt ?? purchase.at));
  const rate = parseMoney(purchase.rate);
  // Machines end before a control plane does.
  const fee = left < billing.fee ? (billing.fee < rate ? billing.fee : rate) - left : 0n;
  return withBegun(spent, rate - left, { ...billing, fee }, life, now);
}

/** Adds begun billing periods of something with this rate and lifetime that ends now. */
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

/** Spending including this purchase's cost since `rateSince`. */
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
    sums[month] = formatMoney(parseMoney(sums[month] ?? '0') + costBetween(hourly, from, to));
    from = to;
  }
  return Object.fromEntries(Object.entries(sums).sort().slice(-KEPT_MONTHS));
}
