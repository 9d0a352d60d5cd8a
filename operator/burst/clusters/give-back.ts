import { paidAheadMs } from '../../cost/billing.ts';
import type { ClustersView, OwnCluster } from './model.ts';
import { countsFor, isOn } from './peaks.ts';
import type { Removal } from './plan-model.ts';
import { mayFallAsleep } from './wake.ts';
import { warmToGo } from './warm.ts';
import { text } from './words.ts';

/** A cluster that has not joined its hub by then is given up. Clouds take 15 minutes and more for one that they manage. */
export const JOIN_LIMIT_MS = 30 * 60_000;
/** One that is woken needs machines and no control plane of a cloud. */
const WAKE_LIMIT_MS = 15 * 60_000;
/** A hub that takes work back and says it again has it wait on: for less than this no order is cancelled. */
const SOONEST_CANCEL_MS = 15_000;
/** A cluster needs so long to leave its hubs and to be destroyed: it begins before more of its time has to be paid for. */
export const LEAVE_MS = 5 * 60_000;

/** What else speaks for and against giving back. */
export interface Circumstances {
  /** Clusters that waiting work would go to, as `namespace/name`. */
  readonly needed: ReadonlySet<string>;
  /** Whether some work may be waiting for an order though nothing shows it. */
  readonly mayBeNeeded: (cluster: string) => boolean;
  /** Something is bought in this look. */
  readonly hasBought: boolean;
  /** Names of clusters whose work was moved away: they need not be idle for long. Absent: none. */
  readonly moved?: ReadonlySet<string>;
  readonly now: number;
}

/** What goes, and when more may, milliseconds since the epoch. */
export interface GivenBack {
  readonly removals: readonly Removal[];
  readonly times: readonly number[];
}

/** Clusters that go: those that did not come, those that no work waits for any more, and those that have been without work for long enough. */
export function giveBack(
  view: ClustersView,
  { needed, mayBeNeeded, hasBought, moved = new Set(), now }: Circumstances,
): GivenBack {
  const { clusters, limits } = view;
  const times: number[] = [];
  /** Whether its time has come; if not, it is looked at again then. */
  const isDue = (due: number) => {
    if (due > now) times.push(due);
    return due <= now;
  };
  const ofOthers = new Set<unknown>(view.woken);
  const failed = [...clusters, ...(view.woken ?? [])].flatMap((one): Removal[] => {
    const { name, phase, at, failure, hasWork } = one;
    // What has work has come, though a cache that is behind does not show that it has joined.
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
  /** Why an order is cancelled: less of it is paid for, and nothing of it has been of use yet. So no minimum life keeps it. */
  const whyCancelled = (one: OwnCluster): string | undefined => {
    const { phase, unneededSince: since, key, warm } = one;
    const isComing = phase === 'Ordered' || phase === 'Making' || phase === 'Waking';
    if (!isComing || warm || one.hasWork || since === undefined || mayBeNeeded(key) || going.has(one.name))
      return undefined;
    const due = since + Math.max(limits.pendingForMs, SOONEST_CANCEL_MS, quietFor(view, one, since));
    return isDue(paidUntil(one, due, now)) ? `no work has waited for it since ${text(since)}` : undefined;
  };
  const idle = clusters.flatMap((one): Removal[] => {
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
    return [{ name, why: `it has had no work since ${text(idleSince)}`, isFailure: false, ...toSleep() }];
  });
  const sleepAgain = (view.woken ?? []).flatMap((one): Removal[] => {
    const { phase, idleSince, at, name, key } = one;
    const cancelled = whyCancelled(one);
    if (cancelled !== undefined) return [{ name, why: cancelled, isFailure: false, toSleep: true, isOthers: true }];
    if (phase !== 'Joined' || idleSince === undefined || needed.has(key)) return [];
    const earliest = Math.max(idleSince + limits.idleForMs, at + limits.minimumLifeMs, rested);
    if (!isDue(paidUntil(one, earliest, now))) return [];
    const why = `it has had no work since ${text(idleSince)}`;
    return [{ name, why, isFailure: false, toSleep: true, isOthers: true }];
  });
  // What has failed goes as that.
  const warm = warmToGo(view).filter(({ name }) => !failed.some((one) => one.name === name));
  return { removals: [...failed, ...(hasBought ? [] : warm), ...idle, ...sleepAgain], times };
}

/**
 * How long no work may wait for an order before it is cancelled, milliseconds, as far as it is known how long it takes to come: for half of that, and
 * not past the moment in which it should be there. Work that comes and goes by the minute would else order the same again and again, and wait for each
 * from its beginning. Until its machines come an order costs no more than its control plane.
 */
function quietFor({ candidates }: ClustersView, { phase, candidate, at }: OwnCluster, since: number): number {
  const startupMs = candidates.find(({ name }) => name === candidate)?.startupMs;
  if (startupMs === undefined || phase === 'Waking') return 0;
  return Math.min(startupMs / 2, Math.max(0, at + startupMs - since));
}

/** When the rest is over after what was bought or given back last, milliseconds since the epoch. */
export function restedAt(
  { lastOut, lastIn, limits }: Pick<ClustersView, 'lastOut' | 'lastIn' | 'limits'>,
  hasBought: boolean,
  now: number,
): number {
  const last = hasBought ? now : Math.max(lastOut ?? -Infinity, lastIn ?? -Infinity);
  return last + limits.cooldownInMs;
}

/**
 * Whether a cluster stays because a peak is on; one that does not is gone for those that are asked about after it. @param going names of those that go
 * in any case: with them one more would go than may
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

/** When a cluster goes that may go at `due`: it stays as long as that costs nothing, as work may come back to it. @param leaveMs how long it takes to go */
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
