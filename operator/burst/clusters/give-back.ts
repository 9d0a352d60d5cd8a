import { paidAheadMs } from '../../cost/billing.ts';
import type { ClustersView, OwnCluster } from './model.ts';
import { countsFor, isOn } from './peaks.ts';
import type { ClusterRemoval } from './plan-model.ts';
import { mayFallAsleep } from './wake.ts';
import { warmToGo } from './warm.ts';
import { plainText } from './words.ts';

/** A cluster that has not joined its hub after this time is given up. Managed clusters take 15 minutes and more. */
export const JOIN_LIMIT_MS = 30 * 60_000;
/** Same limit for a woken cluster, which needs machines only. */
const WAKE_LIMIT_MS = 15 * 60_000;
/** Shortest wait before an order is cancelled: a hub that recreates work restarts its waiting time. */
const SOONEST_CANCEL_MS = 15_000;
/** Time for a cluster to leave its hubs and be destroyed: it begins before the next paid period. */
export const LEAVE_MS = 5 * 60_000;

/** Facts for and against giving back. */
interface Circumstances {
  /** Clusters that waiting work would go to, as `namespace/name`. */
  readonly needed: ReadonlySet<string>;
  /** Whether some work may be waiting for this order although no decision shows it. */
  readonly mayBeNeeded: (cluster: string) => boolean;
  /** This cycle bought something. */
  readonly hasBought: boolean;
  /** Names of clusters whose work was moved away, which need not be idle for long. Absent: none. */
  readonly moved?: ReadonlySet<string>;
  readonly now: number;
}

/** Clusters to give back, and the next times to check, milliseconds since the epoch. */
interface GivenBack {
  readonly removals: readonly ClusterRemoval[];
  readonly times: readonly number[];
}

/** Clusters to give back: those that did not join, cancelled orders, and those idle for long enough. */
export function giveBack(
  view: ClustersView,
  { needed, mayBeNeeded, hasBought, moved = new Set(), now }: Circumstances,
): GivenBack {
  const { clusters, limits } = view;
  const times: number[] = [];
  /** Whether the time has come; if not, schedules another check. */
  const isDue = (due: number) => {
    if (due > now) times.push(due);
    return due <= now;
  };
  const ofOthers = new Set<unknown>(view.woken);
  const failed = [...clusters, ...(view.woken ?? [])].flatMap((one): ClusterRemoval[] => {
    const { name, phase, at, failure, hasWork } = one;
    // A cluster with work has joined, even if a stale cache does not show it.
    if (phase === 'Joined' || phase === 'Leaving' || hasWork) return [];
    const limit = phase === 'Waking' ? WAKE_LIMIT_MS : JOIN_LIMIT_MS;
    if (failure === undefined && !isDue(at + limit)) return [];
    const what = phase === 'Waking' ? 'it was woken, but did not rejoin' : 'it did not join';
    const why = failure ?? `${what} the hub within ${limit / 60_000} minutes`;
    return [{ name, why, isFailure: true, ...(ofOthers.has(one) && { isOthers: true as const }) }];
  });
  if (limits.isSuspended) return { removals: failed, times };
  const rested = restedAt(view, hasBought, now);
  const going = new Set([...moved, ...failed.map(({ name }) => name)]);
  const stays = keptForPeaks(view, going, now);
  const mayFall = mayFallAsleep(view);
  /** Why an order is cancelled: it saves money, and the cluster was of no use yet. No minimum life applies. */
  const whyCancelled = (one: OwnCluster): string | undefined => {
    const { phase, unneededSince: since, key, warm } = one;
    const isComing = phase === 'Ordered' || phase === 'Making' || phase === 'Waking';
    if (!isComing || warm || one.hasWork || since === undefined || mayBeNeeded(key) || going.has(one.name))
      return undefined;
    const due = cancelDueAt(view, one, since);
    return isDue(paidUntil(one, due, now)) ? `no work has waited for it since ${plainText(since)}` : undefined;
  };
  const idle = clusters.flatMap((one): ClusterRemoval[] => {
    const { phase, idleSince, at, name, key, warm } = one;
    const toSleep = () => mayFall(one) && { toSleep: true as const };
    const cancelled = whyCancelled(one);
    if (cancelled !== undefined && !stays(one))
      return [{ name, why: cancelled, isFailure: false, ...(phase === 'Waking' && toSleep()) }];
    if (moved.has(name)) return [{ name, why: 'its work was moved to other clusters', isFailure: false, ...toSleep() }];
    if (phase !== 'Joined' || warm || idleSince === undefined || needed.has(key)) return [];
    if (one.emptyingSince !== undefined) return [];
    const earliest = Math.max(idleSince + limits.idleForMs, at + limits.minimumLifeMs, rested);
    if (!isDue(paidUntil(one, earliest, now)) || stays(one)) return [];
    return [{ name, why: `it has had no work since ${plainText(idleSince)}`, isFailure: false, ...toSleep() }];
  });
  const sleepAgain = (view.woken ?? []).flatMap((one): ClusterRemoval[] => {
    const { phase, idleSince, at, name, key } = one;
    const cancelled = whyCancelled(one);
    if (cancelled !== undefined) return [{ name, why: cancelled, isFailure: false, toSleep: true, isOthers: true }];
    if (phase !== 'Joined' || idleSince === undefined || needed.has(key)) return [];
    const earliest = Math.max(idleSince + limits.idleForMs, at + limits.minimumLifeMs, rested);
    if (!isDue(paidUntil(one, earliest, now))) return [];
    const why = `it has had no work since ${plainText(idleSince)}`;
    return [{ name, why, isFailure: false, toSleep: true, isOthers: true }];
  });
  // Failed clusters are listed as failed only.
  const warm = warmToGo(view).filter(({ name }) => !failed.some((one) => one.name === name));
  return { removals: [...failed, ...(hasBought ? [] : warm), ...idle, ...sleepAgain], times };
}

/** When an order without work is cancelled, milliseconds since the epoch. @param since when its work went */
export const cancelDueAt = (view: ClustersView, one: OwnCluster, since: number): number =>
  since + Math.max(view.limits.pendingForMs, SOONEST_CANCEL_MS, quietFor(view, one, since));

/**
 * How long no work may wait for an order before it is cancelled, milliseconds: half of its startup time if known, at
 * most until it should arrive. Work that comes and goes by the minute would otherwise order again and again. Until its
 * machines arrive, an order costs only its control plane.
 */
function quietFor({ candidates }: ClustersView, { phase, candidate, at }: OwnCluster, since: number): number {
  const startupMs = candidates.find(({ name }) => name === candidate)?.startupMs;
  if (startupMs === undefined || phase === 'Waking') return 0;
  return Math.min(startupMs / 2, Math.max(0, at + startupMs - since));
}

/** End of the cool-down after the last purchase or return, milliseconds since the epoch. */
export function restedAt(
  { lastOut, lastIn, limits }: Pick<ClustersView, 'lastOut' | 'lastIn' | 'limits'>,
  hasBought: boolean,
  now: number,
): number {
  const last = hasBought ? now : Math.max(lastOut ?? -Infinity, lastIn ?? -Infinity);
  return last + limits.cooldownInMs;
}

/**
 * Returns a check whether a peak keeps a cluster; each cluster that is not kept counts as gone in later calls. @param
 * going names of clusters that go in any case
 */
function keptForPeaks(
  { clusters, peaks = [] }: ClustersView,
  going: ReadonlySet<string>,
  now: number,
): (one: OwnCluster) => boolean {
  const on = peaks.filter((peak) => isOn(peak, now));
  const staying = clusters.filter(({ name }) => !going.has(name));
  const spare = new Map(on.map((peak) => [peak, staying.filter((one) => countsFor(peak, one)).length - peak.clusters]));
  return (one) => {
    const its = on.filter((peak) => countsFor(peak, one));
    if (its.some((peak) => (spare.get(peak) ?? 0) <= 0)) return true;
    for (const peak of its) spare.set(peak, (spare.get(peak) ?? 0) - 1);
    return false;
  };
}

/**
 * When a cluster that may go at `due` goes: it stays until the end of its paid time, because work may return. @param
 * leaveMs time to leave
 */
export function paidUntil(
  { at, hourly, billing }: Pick<OwnCluster, 'at' | 'hourly' | 'billing'>,
  due: number,
  now: number,
  leaveMs = LEAVE_MS,
): number {
  if (!billing) return due;
  const since = Math.max(due, now);
  const ahead = paidAheadMs(Math.max(0, since - at), hourly, billing) - leaveMs;
  return ahead > 0 ? since + ahead : due;
}
