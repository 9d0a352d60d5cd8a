import type { BurstDecision } from '../../api/burstpolicy.ts';
import { KEPT_DECISIONS } from '../../api/burstpolicy.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { burstClusterName } from '../../api/names.ts';
import { type ClusterBilling, costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import { billingFrom, type KeptBilling, type KeptWake, keptBilling } from './kept-wake.ts';
import type { Alternative, Opening, Purchase } from './model.ts';

/** A cluster that was bought, as it is written down before it is made. Money as decimals, times as RFC 3339. */
export interface KeptPurchase {
  readonly number: number;
  /** Of the WorkerCluster. */
  readonly name: string;
  readonly candidate: string;
  readonly at: string;
  readonly sources: readonly string[];
  readonly nodes: Readonly<Record<string, number>>;
  /** How many autoscalers may make of them. Absent: no more, or it is of before this was written down. */
  readonly mostNodes?: number;
  /** What budgets count an hour of it with. */
  readonly most: string;
  /** What it costs in an hour since `rateSince`; what it cost before is in `spent` already. */
  readonly rate: string;
  readonly rateSince: string;
  /** What it has cost in all until `rateSince`. Absent: nothing, or nobody knows, as in receipts from before this was kept. */
  readonly cost?: string;
  /** How its time is billed; absent: every moment counts. */
  readonly billing?: KeptBilling;
  /** Of the WorkerCluster, once it was seen. Then one that is gone is not made again. */
  readonly uid?: string;
  /** It waits, or is to. Absent: it takes work. */
  readonly warm?: true;
  /** It waits asleep, or is to. */
  readonly sleeps?: true;
  /** Of one that waits asleep, or did: what it costs in an hour awake. */
  readonly awake?: string;
  /** When it was woken last. */
  readonly wokenAt?: string;
  /** Of the template that it was made from. */
  readonly revision?: string;
  /** When it was first seen to be ready to take work, while it waited; of one that was put to sleep after work, when that was. */
  readonly warmAt?: string;
  /** When it was first seen in the hub. */
  readonly joinedAt?: string;
  /** It was seen to have work. */
  readonly worked?: true;
  /** When that was first seen. */
  readonly workedAt?: string;
  /** It joined, and the hub placed none of the work there that it was bought for. */
  readonly useless?: true;
  /** Since when its work is moved away, so that it can be given back. Absent: it is not. */
  readonly emptyingSince?: string;
  /** It could not be emptied so many times, and is left alone until then. */
  readonly leftAlone?: { readonly failures: number; readonly until: string };
  /** It is given back. */
  readonly leaving?: true;
  /** Of one that nobody had seen by then: when it was given back. */
  readonly leavingAt?: string;
}

/** An API server that was asked to make something has made it by then, or never does. */
const MADE_MS = 2 * 60_000;

/** Whether what is given back, and is not there, was never made: it is not waited for. */
export const wasNeverMade = ({ leaving, uid, leavingAt }: KeptPurchase, now: number): boolean =>
  leaving === true && uid === undefined && (leavingAt === undefined || Date.parse(leavingAt) + MADE_MS <= now);

/** Whether a cluster has joined and never had work, though some has waited for it: whatever it has room for, its hub does not place it there. */
export const isOfNoUse = ({ useless, worked }: KeptPurchase): boolean => useless === true && !worked;

/** Nodes that were added to a pool, as it is written down before they are ordered. Money as decimals, times as RFC 3339. */
export interface KeptGrowth {
  /** `namespace/name` of the WorkerCluster, and its UID. */
  readonly cluster: string;
  readonly uid: string;
  readonly pool: string;
  /** Of the entry of the policy; absent: the cluster is the policy's. */
  readonly entry?: string;
  readonly at: string;
  readonly sources: readonly string[];
  /** Nodes that the pool was to have before, and with them. */
  readonly from: number;
  readonly to: number;
  /** How many of them are still wanted: the pool may have become smaller since. */
  readonly nodes: number;
  /** What one costs in an hour; and all that are still wanted, since `rateSince`. */
  readonly each: string;
  readonly rate: string;
  readonly rateSince: string;
  /** All of them were seen. */
  readonly came?: true;
  /** They did not come, and the pool rests. */
  readonly failed?: true;
}

/** A candidate, or a pool by `namespace/name/pool`, that is not tried for a while. */
export interface Rest {
  readonly failures: number;
  /** RFC 3339. */
  readonly until: string;
  readonly why: string;
}

/** By candidate, seconds, the newest first. */
type Times = Readonly<Record<string, readonly number[]>>;

/** What a policy has bought and spent: its only memory. What its status says is for people. */
export interface BurstReceipt {
  readonly policy: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Number of the next purchase: none is ever used twice. */
  readonly next: number;
  readonly purchases: readonly KeptPurchase[];
  /** Nodes that were added to pools. Absent: none, as in receipts from before this was done. */
  readonly growths?: readonly KeptGrowth[];
  /** Clusters of others that were woken. Absent: none, as in receipts from before this was done. */
  readonly wakes?: readonly KeptWake[];
  /** By month (2026-11), as decimals. */
  readonly spent: Readonly<Record<string, string>>;
  readonly rests: Readonly<Record<string, Rest>>;
  /** By candidate: how long the last of its clusters took to join, seconds, the newest first. */
  readonly startups?: Times;
  /** The same of those that slept, from when they were woken. */
  readonly wakings?: Times;
  readonly lastOut?: string;
  readonly lastIn?: string;
  /** The newest first. */
  readonly decisions: readonly BurstDecision[];
}

const KEPT_MONTHS = 24;
const KEPT_STARTUPS = 9;
/** Names of candidates may change for ever. */
const KEPT_STARTED = 16;
const HOUR_MS = 3_600_000n;
const FIRST_REST_MS = 5 * 60_000;
const LONGEST_REST_MS = 24 * 3_600_000;
const MOST_WORDS = 500;

export const emptyReceipt = (policy: BurstReceipt['policy']): BurstReceipt => ({
  policy,
  next: 1,
  purchases: [],
  spent: {},
  rests: {},
  decisions: [],
});

/** The month that a time is in (UTC), for example 2026-11. */
export const monthOf = (time: number): string => new Date(time).toISOString().slice(0, 7);

/** A purchase is written down. */
export function ordered(receipt: BurstReceipt, purchase: Purchase, now: number): BurstReceipt {
  const { candidate, nodes, mostNodes, price, sources, why, alternatives, warm, sleeps, revision } = purchase;
  const at = rfc3339(new Date(now));
  const { name, uid } = receipt.policy;
  const kept: KeptPurchase = {
    number: receipt.next,
    name: burstClusterName(name, candidate, uid, receipt.next),
    candidate,
    at,
    sources: sources.slice(0, 20),
    nodes,
    ...(mostNodes !== undefined && { mostNodes }),
    most: formatMoney(price.most),
    rate: formatMoney(price.hourly),
    rateSince: at,
    ...(warm && { warm }),
    ...(sleeps && { sleeps, awake: formatMoney(price.hourly) }),
    ...(revision && { revision }),
    ...(price.billing && { billing: keptBilling(price.billing) }),
  };
  const bought = {
    ...receipt,
    next: receipt.next + 1,
    purchases: [...receipt.purchases, kept],
    // What waits warm takes none of the work that waits: that need not wait for it.
    ...(!warm && { lastOut: at }),
  };
  return decided(bought, {
    at,
    action: 'Buy',
    cluster: kept.name,
    candidate,
    why,
    hourly: kept.rate,
    alternatives: told(alternatives),
  });
}

/** A cluster that waited warm takes work from now on. */
export function opened(receipt: BurstReceipt, { name, candidate, sources, why }: Opening, now: number): BurstReceipt {
  const at = rfc3339(new Date(now));
  const purchases = receipt.purchases.map((one) => {
    if (one.name !== name) return one;
    const { warm: _, ...open } = one;
    return { ...open, sources: sources.slice(0, 20) };
  });
  return decided({ ...receipt, purchases, lastOut: at }, { at, action: 'Open', cluster: name, candidate, why });
}

/** A cluster is given back; of one that did not come, its candidate rests. */
export function givenBack(
  receipt: BurstReceipt,
  { name, why, isFailure }: { name: string; why: string; isFailure: boolean },
  now: number,
): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase || purchase.leaving) return receipt;
  const at = rfc3339(new Date(now));
  const unseen = purchase.uid === undefined && { leavingAt: at };
  const leaving = { ...changed(receipt, name, { leaving: true, ...unseen }), lastIn: at };
  const said = decided(leaving, {
    at,
    action: isFailure ? 'Fail' : 'Remove',
    cluster: name,
    candidate: purchase.candidate,
    why,
    hourly: purchase.rate,
  });
  const { candidate, wokenAt = purchase.at } = purchase;
  return isFailure ? rested(said, candidate, { why: `${name}: ${why}`, at: wokenAt }, now) : said;
}

/** Milliseconds that something is left alone after so many failures in a row: each time twice as long, a day at most. @param first after the first failure */
export const restMs = (failures: number, first = FIRST_REST_MS): number =>
  Math.min(LONGEST_REST_MS, first * 2 ** (failures - 1));

/**
 * Has a candidate, or a pool, rest: each time twice as long. What was ordered before it began to rest fails by the same cause, and is no other time.
 * @param failed why, and when what failed was ordered (RFC 3339)
 */
export function rested(
  receipt: BurstReceipt,
  candidate: string,
  failed: { readonly why: string; readonly at: string },
  now: number,
): BurstReceipt {
  const before = receipt.rests[candidate];
  const isKnown = before && Date.parse(failed.at) <= Date.parse(before.until) - restMs(before.failures);
  const failures = (before?.failures ?? 0) + (isKnown ? 0 : 1);
  const rest = { failures, until: rfc3339(new Date(now + restMs(failures))), why: failed.why.slice(0, MOST_WORDS) };
  return { ...receipt, rests: { ...receipt.rests, [candidate]: rest } };
}

/** The candidate was of use: it does not rest any more. */
export function useful(receipt: BurstReceipt, candidate: string): BurstReceipt {
  const { [candidate]: _, ...rests } = receipt.rests;
  return candidate in receipt.rests ? { ...receipt, rests } : receipt;
}

/** With something else said of a purchase; the same object where that is no news. */
export function changed(receipt: BurstReceipt, name: string, more: Partial<KeptPurchase>): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase) return receipt;
  const isNews = Object.entries(more).some(([field, value]) => purchase[field as keyof KeptPurchase] !== value);
  if (!isNews) return receipt;
  return { ...receipt, purchases: receipt.purchases.map((one) => (one === purchase ? { ...one, ...more } : one)) };
}

/** From now on it costs so much; what it cost until now is added to what was spent. */
export function costs(receipt: BurstReceipt, name: string, rate: string, now: number): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase || purchase.rate === rate) return receipt;
  const [before, after] = [parseMoney(purchase.rate), parseMoney(rate)];
  const spent = spentWith(receipt.spent, purchase, now);
  const settled = { ...receipt, spent: after < before ? withBegunOf(spent, purchase, after, now) : spent };
  const cost = lifeCost(purchase, after < before ? after : before, now);
  const known = cost !== undefined && { cost: formatMoney(cost) };
  return changed(settled, name, { rate, rateSince: rfc3339(new Date(now)), ...known });
}

/** What a cluster has cost in all, in millionths, if it costs only `left` an hour from now on; undefined: nobody knows. */
export function lifeCost(purchase: KeptPurchase, left: Micros, now: number): Micros | undefined {
  const { at, rateSince, cost = rateSince === at ? '0' : undefined } = purchase;
  if (cost === undefined) return undefined;
  const since = withBegunOf(spentWith({}, purchase, now), purchase, left, now);
  return Object.values(since).reduce((sum, amount) => sum + parseMoney(amount), parseMoney(cost));
}

/** A cluster is gone. */
export function gone(receipt: BurstReceipt, name: string, now: number): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase) return receipt;
  return {
    ...receipt,
    purchases: receipt.purchases.filter((one) => one !== purchase),
    spent: withBegunOf(spentWith(receipt.spent, purchase, now), purchase, 0n, now),
  };
}

/** A cluster of a candidate has joined, so long after it was ordered. */
export const startedUp = (receipt: BurstReceipt, candidate: string, tookMs: number): BurstReceipt => ({
  ...receipt,
  startups: withTime(receipt.startups, candidate, tookMs),
});

/** With one more time of a candidate. */
export function withTime(times: Times | undefined, candidate: string, tookMs: number): Times {
  const { [candidate]: before = [], ...others } = times ?? {};
  const last = [Math.max(0, Math.round(tookMs / 1000)), ...before].slice(0, KEPT_STARTUPS);
  return Object.fromEntries(Object.entries({ [candidate]: last, ...others }).slice(0, KEPT_STARTED));
}

/** How long clusters of a candidate took to join: half of the last ones, milliseconds; undefined: none has. */
export const measuredStartupMs = ({ startups }: BurstReceipt, candidate: string): number | undefined =>
  middleMs(startups?.[candidate]);

/** The same of those that were woken. */
export const measuredWakingMs = ({ wakings }: BurstReceipt, candidate: string): number | undefined =>
  middleMs(wakings?.[candidate]);

/** Half of these times, milliseconds; undefined: there are none. */
export function middleMs(times: readonly number[] = []): number | undefined {
  const middle = [...times].sort((a, b) => a - b)[times.length >> 1];
  return middle === undefined ? undefined : middle * 1000;
}

/** How many nodes count of what was bought. @param seen nodes that the cluster is known to be asked for: somebody may have made it larger */
export const nodesOfPurchase = ({ nodes, mostNodes = 0 }: KeptPurchase, seen = 0): number =>
  Math.max(
    Object.values(nodes).reduce((sum, count) => sum + count, 0),
    mostNodes,
    seen,
  );

/** How the time of what was bought is billed; undefined: every moment counts. */
export const billingOfPurchase = ({ billing }: KeptPurchase): ClusterBilling | undefined =>
  billing && billingFrom(billing);

/**
 * A decision is kept. Of refusals only the last one for each source, and none that says the same again: work that changes all the time must
 * not push out what was bought.
 */
export function decided(receipt: BurstReceipt, decision: BurstDecision): BurstReceipt {
  const { action, source, dryRun } = decision;
  const kept = { ...decision, why: decision.why.slice(0, 2000) };
  // A dry run says the same at each look.
  const same = (one: BurstDecision) =>
    one.action === action && one.source === source && one.dryRun === dryRun && one.cluster === kept.cluster;
  if (dryRun && receipt.decisions.some((one) => same(one) && one.why === kept.why)) return receipt;
  const before = action === 'Refuse' ? receipt.decisions.find(same) : undefined;
  if (before && before.why === kept.why) return receipt;
  const others = receipt.decisions.filter((one) => one !== before);
  return { ...receipt, decisions: [kept, ...others].slice(0, KEPT_DECISIONS) };
}

/** What was spent until then, by month (2026-11), as decimals. */
export const spentByMonth = (receipt: BurstReceipt, now: number): Readonly<Record<string, string>> =>
  costing(receipt).reduce((spent, one) => spentWith(spent, one, now), receipt.spent);

/** What was spent in the month of `now` until then. */
export const spentUntil = (receipt: BurstReceipt, now: number): Micros =>
  parseMoney(spentByMonth(receipt, now)[monthOf(now)] ?? '0');

/** What all that it has costs in an hour. */
export const hourlyOf = (receipt: BurstReceipt): Micros =>
  costing(receipt).reduce((sum, { rate }) => sum + parseMoney(rate), 0n);

const costing = ({ purchases, growths = [], wakes = [] }: BurstReceipt) => [...purchases, ...growths, ...wakes];

/** Alternatives as they are kept and shown. */
export const told = (alternatives: readonly Alternative[]) =>
  alternatives.slice(0, 8).map(({ candidate, hourly, whyNot }) => ({
    candidate,
    ...(hourly !== undefined && { hourly: formatMoney(hourly) }),
    ...(whyNot && { whyNot: whyNot.slice(0, MOST_WORDS) }),
  }));

/** With what its cloud takes for time that has begun, when it costs only `left` an hour from now on. */
function withBegunOf(
  spent: Readonly<Record<string, string>>,
  purchase: KeptPurchase,
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
export function withBegun(
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
