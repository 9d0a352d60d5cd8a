import type { ClustersView, UnusedRest, WaitingWork } from './model.ts';
import { type ClusterPurchase, isUseless, joinedAtOf, waitOf } from './purchases.ts';
import { type BurstReceipt, isRestOf } from './receipt.ts';
import { isForPeak } from './words.ts';

/** Whether and how a candidate, or a cluster that sleeps, is left alone. */
export interface Resting {
  /** For all work, a sentence. Absent: it is not. */
  readonly problem?: string;
  /** For work that has not waited long. Absent: it is not. */
  readonly unused?: UnusedRest;
}

/**
 * How something rests by a receipt. What did not come is not tried for anybody. What came too late is tried for work that has waited as long as
 * a start takes: that work would not have ended before.
 * @param name by which it rests
 * @param startupMs how long a start takes; undefined: not known, and as long as the last one that was of no use at least
 */
export function restingOf(
  { rests }: Pick<BurstReceipt, 'rests'>,
  name: string,
  revision: string | undefined,
  startupMs: number | undefined,
  now: number,
): Resting {
  const rest = rests[name];
  if (!rest || !isRestOf(rest, revision) || Date.parse(rest.until) <= now) return {};
  const why = `it is in back-off until ${rest.until}, because of ${rest.why}`;
  if (rest.unusedSeconds === undefined) return { problem: why };
  return { unused: { why, startsInMs: startupMs ?? rest.unusedSeconds * 1000 } };
}

/** How long a purchase needs to take work at least, as far as it shows; undefined: it was of use, or none of it was meant for work. */
export function unusedMs(purchase: ClusterPurchase, now: number): number | undefined {
  const { work, sources, at, wokenAt } = purchase;
  // One that is useless rests for that already.
  if (work || waitOf(purchase) || isUseless(purchase) || (sources.length > 0 && sources.every(isForPeak)))
    return undefined;
  const since = Date.parse(wokenAt ?? at);
  const joinedAt = joinedAtOf(purchase);
  return Math.max(0, (joinedAt === undefined ? now : Date.parse(joinedAt)) - since);
}

/** The view in which what rests takes only work that has waited for long enough. */
export function withRests(view: ClustersView, now: number): ClustersView {
  const isResting = [...view.candidates, ...(view.warm ?? [])].some(({ unused }) => unused !== undefined);
  if (!isResting) return view;
  return {
    ...view,
    candidates: view.candidates.map((one) => {
      const { unused, offer, steady } = one;
      if (!unused) return one;
      const keepsFrom = keeperOf(unused, now);
      const its = { offer: offer && { ...offer, keepsFrom } };
      return {
        ...one,
        ...its,
        ...(steady && { steady: { ...steady, offer: steady.offer && { ...steady.offer, keepsFrom } } }),
      };
    }),
    warm: (view.warm ?? []).map((one) => (one.unused ? { ...one, keepsFrom: keeperOf(one.unused, now) } : one)),
  };
}

const keeperOf =
  ({ why, startsInMs }: UnusedRest, now: number) =>
  ({ since }: WaitingWork): string | undefined =>
    since + startsInMs > now ? `${why}; work that has waited as long as a start takes ends that` : undefined;

/** When work has waited for long enough that ends a rest, milliseconds since the epoch. */
export function restsEnd({ candidates, warm = [], waiting }: ClustersView, now: number): number[] {
  return [...candidates, ...warm].flatMap(({ unused }) => {
    const times = unused ? waiting.map(({ since }) => since + unused.startsInMs).filter((time) => time > now) : [];
    return times.length > 0 ? [times.reduce((a, b) => Math.min(a, b))] : [];
  });
}
