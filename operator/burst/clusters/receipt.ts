import { type BurstDecision, KEPT_DECISIONS } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { formatMoney } from '../../cost/money.ts';
import type { Alternative } from './plan-model.ts';
import type { ClusterPurchase, NodesPurchase, Purchase, WakePurchase } from './purchases.ts';

const KEPT_STARTUPS = 9;
/** Most kept rests; those that end first are dropped. */
const KEPT_RESTS = 100;
/** Candidates whose startup times are kept: names may change for ever. */
const KEPT_STARTED = 16;
const FIRST_REST_MS = 5 * 60_000;
const LONGEST_REST_MS = 24 * 3_600_000;
const MOST_WORDS = 500;
const KEPT_SOURCES = 20;
/** Most characters of all sources of a purchase. */
const MOST_SOURCE_WORDS = 2_000;

/** A candidate, or a pool by `namespace/name/pool`, that rests after a failure. */
interface Rest {
  readonly failures: number;
  /** RFC 3339. */
  readonly until: string;
  readonly why: string;
  /** Template revision that failed: another one is tried at once. Absent: none, or older than this field. */
  readonly revision?: string | undefined;
  /** The cluster came but was of no use; its startup takes at least this many seconds. Absent: it did not come. */
  readonly unusedSeconds?: number;
  /** When the failed purchase was ordered, RFC 3339. Absent: older than this field. */
  readonly orderedAt?: string;
}

/**
 * Whether the rest applies to this revision. A rest without revision is of an unresolvable template or older: a
 * resolvable template is tried at once.
 */
export const isRestOf = ({ revision: its }: Rest, revision: string | undefined): boolean => its === revision;

/** Seconds by candidate, newest first. */
type Times = Readonly<Record<string, readonly number[]>>;

/** Purchases and spending of a policy: its only memory. Its status is for people. */
export interface BurstReceipt {
  readonly policy: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Number of the next cluster; never reused. */
  readonly next: number;
  /** Existing purchases: of each kind the oldest first. */
  readonly purchases: readonly Purchase[];
  /** By month (2026-11), decimals. */
  readonly spent: Readonly<Record<string, string>>;
  readonly rests: Readonly<Record<string, Rest>>;
  /** Startup times until joining, seconds by candidate, newest first. */
  readonly startups?: Times;
  /** Wake-up times until back in the hub, seconds by candidate, newest first. */
  readonly wakings?: Times;
  readonly lastOut?: string;
  readonly lastIn?: string;
  /** Newest first. */
  readonly decisions: readonly BurstDecision[];
  /** The stored form that was read. Absent: a new receipt. */
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

/** Bought clusters. */
export const clustersIn = ({ purchases }: Bought): ClusterPurchase[] =>
  purchases.filter((one) => one.kind === 'cluster');

/** Added nodes. */
export const nodesIn = ({ purchases }: Bought): NodesPurchase[] => purchases.filter((one) => one.kind === 'nodes');

/** Woken clusters of others. */
export const wakesIn = ({ purchases }: Bought): WakePurchase[] => purchases.filter((one) => one.kind === 'wake');

/** A bought cluster by name; undefined: none. */
export function clusterNamed({ purchases }: Bought, name: string): ClusterPurchase | undefined {
  const found = purchases.find((one) => one.kind === 'cluster' && one.name === name);
  return found?.kind === 'cluster' ? found : undefined;
}

/** Replaces a purchase; returns the same object when nothing changes. */
export function withPurchase<Kind extends Purchase>(receipt: BurstReceipt, before: Kind, after: Kind): BurstReceipt {
  if (after === before) return receipt;
  return { ...receipt, purchases: receipt.purchases.map((one) => (one === before ? after : one)) };
}

/** Changes a cluster; returns the same object when nothing changes or the cluster is unknown. */
export function withCluster(
  receipt: BurstReceipt,
  name: string,
  change: (purchase: ClusterPurchase) => ClusterPurchase,
): BurstReceipt {
  const before = clusterNamed(receipt, name);
  return before ? withPurchase(receipt, before, change(before)) : receipt;
}

/** Cuts the sources of a purchase to what a receipt can store: a Secret has room for a mebibyte. */
export function keptSources(sources: readonly string[]): string[] {
  let left = MOST_SOURCE_WORDS;
  return sources.slice(0, KEPT_SOURCES).filter(({ length }) => {
    left -= length;
    return left >= 0;
  });
}

/**
 * Rest after this many failures in a row, milliseconds: doubles each time, a day at most. @param first after the first
 * failure
 */
export const restMs = (failures: number, first = FIRST_REST_MS): number =>
  Math.min(LONGEST_REST_MS, first * 2 ** (failures - 1));

/**
 * Rests a candidate or a pool, twice as long each time. A failure ordered before the rest began has the same cause and
 * does not count again. An older template that fails late does not change the rest of a newer one.
 * @param failed why; when (RFC 3339) and from which template it was ordered; if of no use, its shortest startup time
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
  // A rest for not coming at all takes precedence.
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
  // Drops rests that end first: pools of deleted clusters would accumulate.
  const { [candidate]: _, ...others } = receipt.rests;
  const last = Object.entries(others).sort(([, a], [, b]) => Date.parse(b.until) - Date.parse(a.until));
  return { ...receipt, rests: { ...Object.fromEntries(last.slice(0, KEPT_RESTS - 1)), [candidate]: rest } };
}

/** Ends the rest of a candidate that was of use. */
export function endRest(receipt: BurstReceipt, candidate: string): BurstReceipt {
  const { [candidate]: _, ...rests } = receipt.rests;
  return candidate in receipt.rests ? { ...receipt, rests } : receipt;
}

/** Records the startup time of a candidate's cluster. */
export const noteStartup = (receipt: BurstReceipt, candidate: string, tookMs: number): BurstReceipt => ({
  ...receipt,
  startups: withTime(receipt.startups, candidate, tookMs),
});

/** Records the wake-up time of a candidate's cluster. */
export const noteWaking = (receipt: BurstReceipt, candidate: string, tookMs: number): BurstReceipt => ({
  ...receipt,
  wakings: withTime(receipt.wakings, candidate, tookMs),
});

/** Adds one time of a candidate. */
function withTime(times: Times | undefined, candidate: string, tookMs: number): Times {
  const { [candidate]: before = [], ...others } = times ?? {};
  const last = [Math.max(0, Math.round(tookMs / 1000)), ...before].slice(0, KEPT_STARTUPS);
  return Object.fromEntries(Object.entries({ [candidate]: last, ...others }).slice(0, KEPT_STARTED));
}

/** Median of a candidate's last startup times, milliseconds; undefined: none. */
export const measuredStartupMs = ({ startups }: BurstReceipt, candidate: string): number | undefined =>
  medianMs(startups?.[candidate]);

/** Median of a candidate's last wake-up times, milliseconds; undefined: none. */
export const measuredWakingMs = ({ wakings }: BurstReceipt, candidate: string): number | undefined =>
  medianMs(wakings?.[candidate]);

/** Median, milliseconds; undefined for an empty list. */
function medianMs(times: readonly number[] = []): number | undefined {
  const median = [...times].sort((a, b) => a - b)[times.length >> 1];
  return median === undefined ? undefined : median * 1000;
}

/**
 * Keeps a decision. Of refusals only the last one per source is kept, and repetitions are dropped: changing work must
 * not push purchases out.
 */
export function noteDecision(receipt: BurstReceipt, decision: BurstDecision): BurstReceipt {
  const { action, source, dryRun } = decision;
  const kept = { ...decision, why: decision.why.slice(0, 2000) };
  // A dry run repeats its decision in each cycle.
  const same = (one: BurstDecision) =>
    one.action === action && one.source === source && one.dryRun === dryRun && one.cluster === kept.cluster;
  if (dryRun && receipt.decisions.some((one) => same(one) && one.why === kept.why)) return receipt;
  const before = action === 'Refuse' ? receipt.decisions.find(same) : undefined;
  if (before && before.why === kept.why) return receipt;
  const others = receipt.decisions.filter((one) => one !== before);
  return { ...receipt, decisions: [kept, ...others].slice(0, KEPT_DECISIONS) };
}

/** Alternatives as stored and shown. */
export const toldAlternatives = (alternatives: readonly Alternative[]) =>
  alternatives.slice(0, 8).map(({ candidate, hourly, whyNot }) => ({
    candidate,
    ...(hourly !== undefined && { hourly: formatMoney(hourly) }),
    ...(whyNot && { whyNot: whyNot.slice(0, MOST_WORDS) }),
  }));
