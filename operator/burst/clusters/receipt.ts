import { type BurstDecision, KEPT_DECISIONS } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { burstClusterName } from '../../api/names.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';
import { type BurstReceipt, isRestOf, type KeptPurchase, type Times } from './kept.ts';
import { keptBilling } from './kept-wake.ts';
import type { Alternative, Opening, Purchase } from './plan-model.ts';
import { unusedMs } from './rests.ts';
import { lifeCost, spentWith, withBegunOf } from './spend.ts';

const KEPT_STARTUPS = 9;
/** Of more candidates and pools that rest, or have, those are forgotten whose rest ends first. */
const KEPT_RESTS = 100;
/** Names of candidates may change for ever. */
const KEPT_STARTED = 16;
const FIRST_REST_MS = 5 * 60_000;
const LONGEST_REST_MS = 24 * 3_600_000;
const MOST_WORDS = 500;
const KEPT_SOURCES = 20;
/** Characters of all of them. */
const MOST_SOURCE_WORDS = 2_000;

/** Of what something is bought for, so much as is written down: a receipt is a Secret, which has room for a mebibyte. */
export function keptSources(sources: readonly string[]): string[] {
  let left = MOST_SOURCE_WORDS;
  return sources.slice(0, KEPT_SOURCES).filter(({ length }) => {
    left -= length;
    return left >= 0;
  });
}

/** A purchase is written down. */
export function ordered(receipt: BurstReceipt, purchase: Purchase, now: number): BurstReceipt {
  const { candidate, nodes, mostNodes, granted, price, sources, why, alternatives, warm, sleeps, revision } = purchase;
  const at = rfc3339(new Date(now));
  const { name, uid } = receipt.policy;
  const kept: KeptPurchase = {
    number: receipt.next,
    name: burstClusterName(name, candidate, uid, receipt.next),
    candidate,
    at,
    sources: keptSources(sources),
    nodes,
    ...(mostNodes !== undefined && { mostNodes }),
    ...(granted && { granted: keptGrants(granted) }),
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

const keptGrants = (granted: NonNullable<Purchase['granted']>): NonNullable<KeptPurchase['granted']> =>
  Object.fromEntries(
    Object.entries(granted).map(([pool, { nodes, each }]) => [pool, { nodes, each: formatMoney(each) }]),
  );

/** A cluster that waited warm takes work from now on. It was bought before: the next purchase need not wait for this. */
export function opened(receipt: BurstReceipt, { name, candidate, sources, why }: Opening, now: number): BurstReceipt {
  const at = rfc3339(new Date(now));
  const purchases = receipt.purchases.map((one) => {
    if (one.name !== name) return one;
    const { warm: _, ...open } = one;
    return { ...open, sources: keptSources(sources) };
  });
  return decided({ ...receipt, purchases }, { at, action: 'Open', cluster: name, candidate, why });
}

/** A cluster is given back; of one that did not come, or was of no use, its candidate rests. */
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
  const { revision } = purchase;
  return isFailure
    ? rested(said, candidate, { why: `${name}: ${why}`, at: wokenAt, revision }, now)
    : unusedRested(said, purchase, why, now);
}

/** The candidate of a purchase rests if that was of no use, however it ends. @param why it ends */
export function unusedRested(receipt: BurstReceipt, purchase: KeptPurchase, why: string, now: number): BurstReceipt {
  const unused = unusedMs(purchase, now);
  if (unused === undefined) return receipt;
  const { name, candidate, at, wokenAt = at, revision } = purchase;
  const said = `${name}, which had no work: ${why}`;
  return rested(receipt, candidate, { why: said, at: wokenAt, revision, unusedMs: unused }, now);
}

/** Milliseconds that something is left alone after so many failures in a row: each time twice as long, a day at most. @param first after the first failure */
export const restMs = (failures: number, first = FIRST_REST_MS): number =>
  Math.min(LONGEST_REST_MS, first * 2 ** (failures - 1));

/**
 * Has a candidate, or a pool, rest: each time twice as long. What was ordered before it began to rest fails by the same cause, and is no other time. An
 * earlier template that fails late leaves the rest of a later one as it is.
 * @param failed why, and when what failed was ordered (RFC 3339), and of which template; if it was of no use, how long it takes at least
 */
export function rested(
  receipt: BurstReceipt,
  candidate: string,
  failed: {
    readonly why: string;
    readonly at: string;
    readonly revision?: string | undefined;
    readonly unusedMs?: number | undefined;
  },
  now: number,
): BurstReceipt {
  const { why, at: orderedAt, revision, unusedMs: tookMs } = failed;
  const known = receipt.rests[candidate];
  const before = known && isRestOf(known, revision) ? known : undefined;
  const isOfEarlier = known?.orderedAt !== undefined && Date.parse(orderedAt) < Date.parse(known.orderedAt);
  if (!before && isOfEarlier) return receipt;
  // What does not come at all rests as that.
  if (tookMs !== undefined && before && before.unusedSeconds === undefined && Date.parse(before.until) > now)
    return receipt;
  const isKnown = before && Date.parse(orderedAt) <= Date.parse(before.until) - restMs(before.failures);
  const failures = (before?.failures ?? 0) + (isKnown ? 0 : 1);
  const until = rfc3339(new Date(now + restMs(failures)));
  const unusedSeconds =
    tookMs === undefined ? undefined : Math.max(Math.ceil(tookMs / 1000), before?.unusedSeconds ?? 0);
  const rest = {
    failures,
    until,
    why: why.slice(0, MOST_WORDS),
    ...(revision && { revision }),
    orderedAt,
    ...(unusedSeconds !== undefined && { unusedSeconds }),
  };
  // Pools of clusters that are gone are asked for no more, and there is always another one.
  const { [candidate]: _, ...others } = receipt.rests;
  const last = Object.entries(others).sort(([, a], [, b]) => Date.parse(b.until) - Date.parse(a.until));
  return { ...receipt, rests: { ...Object.fromEntries(last.slice(0, KEPT_RESTS - 1)), [candidate]: rest } };
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

/** Alternatives as they are kept and shown. */
export const told = (alternatives: readonly Alternative[]) =>
  alternatives.slice(0, 8).map(({ candidate, hourly, whyNot }) => ({
    candidate,
    ...(hourly !== undefined && { hourly: formatMoney(hourly) }),
    ...(whyNot && { whyNot: whyNot.slice(0, MOST_WORDS) }),
  }));
