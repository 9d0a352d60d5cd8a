import { type BurstDecision, KEPT_DECISIONS } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { formatMoney } from '../../cost/money.ts';
import type { Alternative } from './plan-model.ts';
import type { ClusterPurchase, NodesPurchase, Purchase, WakePurchase } from './purchases.ts';

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

/** A candidate, or a pool by `namespace/name/pool`, that is not tried for a while. */
export interface Rest {
  readonly failures: number;
  /** RFC 3339. */
  readonly until: string;
  readonly why: string;
  /** Of the template of what failed: another one is tried at once. Absent: it has none, or is of before this was kept. */
  readonly revision?: string | undefined;
  /** What came was of no use, and takes so many seconds to come at least. Absent: it did not come. */
  readonly unusedSeconds?: number;
  /** When what failed was ordered, RFC 3339. Absent: it is of before this was kept. */
  readonly orderedAt?: string;
}

/**
 * Whether it is what has this revision that rests. A rest without one is of a template that could not be resolved, or of before this was kept: a
 * template that can be is tried at once.
 */
export const isRestOf = ({ revision: its }: Rest, revision: string | undefined): boolean => its === revision;

/** By candidate, seconds, the newest first. */
export type Times = Readonly<Record<string, readonly number[]>>;

/** What a policy has bought and spent: its only memory. What its status says is for people. */
export interface BurstReceipt {
  readonly policy: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Number of the next cluster: none is ever used twice. */
  readonly next: number;
  /** All that was bought and is not gone: of each kind the oldest first. */
  readonly purchases: readonly Purchase[];
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
  /** The form in which the receipt was read. Absent: it is new. */
  readonly stored?: object;
}

export const emptyReceipt = (policy: BurstReceipt['policy']): BurstReceipt => ({
  policy,
  next: 1,
  purchases: [],
  spent: {},
  rests: {},
  decisions: [],
});

type Bought = Pick<BurstReceipt, 'purchases'>;

/** Clusters that were bought. */
export const clustersIn = ({ purchases }: Bought): ClusterPurchase[] =>
  purchases.filter((one) => one.kind === 'cluster');

/** Nodes that were added to pools. */
export const nodesIn = ({ purchases }: Bought): NodesPurchase[] => purchases.filter((one) => one.kind === 'nodes');

/** Clusters of others that were woken. */
export const wakesIn = ({ purchases }: Bought): WakePurchase[] => purchases.filter((one) => one.kind === 'wake');

/** A cluster that was bought, by name; undefined: there is none. */
export function clusterNamed({ purchases }: Bought, name: string): ClusterPurchase | undefined {
  const found = purchases.find((one) => one.kind === 'cluster' && one.name === name);
  return found?.kind === 'cluster' ? found : undefined;
}

/** With a purchase in another state; the same object where that is no news. */
export function withPurchase<Kind extends Purchase>(receipt: BurstReceipt, before: Kind, after: Kind): BurstReceipt {
  if (after === before) return receipt;
  return { ...receipt, purchases: receipt.purchases.map((one) => (one === before ? after : one)) };
}

/** With a cluster in another state; the same object where that is no news, or there is no such cluster. */
export function withCluster(
  receipt: BurstReceipt,
  name: string,
  change: (purchase: ClusterPurchase) => ClusterPurchase,
): BurstReceipt {
  const before = clusterNamed(receipt, name);
  return before ? withPurchase(receipt, before, change(before)) : receipt;
}

/** Of what something is bought for, so much as is written down: a receipt is a Secret, which has room for a mebibyte. */
export function keptSources(sources: readonly string[]): string[] {
  let left = MOST_SOURCE_WORDS;
  return sources.slice(0, KEPT_SOURCES).filter(({ length }) => {
    left -= length;
    return left >= 0;
  });
}

/** Milliseconds that something is left alone after so many failures in a row: each time twice as long, a day at most. @param first after the first failure */
export const restMs = (failures: number, first = FIRST_REST_MS): number =>
  Math.min(LONGEST_REST_MS, first * 2 ** (failures - 1));

/**
 * Has a candidate, or a pool, rest: each time twice as long. What was ordered before it began to rest fails by the same cause, and is no other time. An
 * earlier template that fails late leaves the rest of a later one as it is.
 * @param failed why, and when what failed was ordered (RFC 3339), and of which template; if it was of no use, how long it takes at least
 */
export function restCandidate(
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
export function endRest(receipt: BurstReceipt, candidate: string): BurstReceipt {
  const { [candidate]: _, ...rests } = receipt.rests;
  return candidate in receipt.rests ? { ...receipt, rests } : receipt;
}

/** A cluster of a candidate has joined, so long after it was ordered. */
export const noteStartup = (receipt: BurstReceipt, candidate: string, tookMs: number): BurstReceipt => ({
  ...receipt,
  startups: withTime(receipt.startups, candidate, tookMs),
});

/** A cluster of a candidate is back in its hub, so long after it was woken. */
export const noteWaking = (receipt: BurstReceipt, candidate: string, tookMs: number): BurstReceipt => ({
  ...receipt,
  wakings: withTime(receipt.wakings, candidate, tookMs),
});

/** With one more time of a candidate. */
function withTime(times: Times | undefined, candidate: string, tookMs: number): Times {
  const { [candidate]: before = [], ...others } = times ?? {};
  const last = [Math.max(0, Math.round(tookMs / 1000)), ...before].slice(0, KEPT_STARTUPS);
  return Object.fromEntries(Object.entries({ [candidate]: last, ...others }).slice(0, KEPT_STARTED));
}

/** How long clusters of a candidate took to join: median of the last ones, milliseconds; undefined: none has. */
export const measuredStartupMs = ({ startups }: BurstReceipt, candidate: string): number | undefined =>
  medianMs(startups?.[candidate]);

/** The same of those that were woken. */
export const measuredWakingMs = ({ wakings }: BurstReceipt, candidate: string): number | undefined =>
  medianMs(wakings?.[candidate]);

/** Median of these times, milliseconds; undefined: there are none. */
function medianMs(times: readonly number[] = []): number | undefined {
  const median = [...times].sort((a, b) => a - b)[times.length >> 1];
  return median === undefined ? undefined : median * 1000;
}

/**
 * A decision is kept. Of refusals only the last one for each source, and none that says the same again: work that changes all the time must
 * not push out what was bought.
 */
export function noteDecision(receipt: BurstReceipt, decision: BurstDecision): BurstReceipt {
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
export const toldAlternatives = (alternatives: readonly Alternative[]) =>
  alternatives.slice(0, 8).map(({ candidate, hourly, whyNot }) => ({
    candidate,
    ...(hourly !== undefined && { hourly: formatMoney(hourly) }),
    ...(whyNot && { whyNot: whyNot.slice(0, MOST_WORDS) }),
  }));
