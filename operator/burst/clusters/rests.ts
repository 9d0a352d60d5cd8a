import type { ClustersView, UnusedRest, WaitingWork } from './model.ts';
import { type ClusterPurchase, clusterWaitOf, isUseless, joinedAtOf } from './purchases.ts';
import { type BurstReceipt, isRestOf } from './receipt.ts';
import { isForPeak } from './words.ts';

/** Whether and how a candidate, or a sleeping cluster, rests. */
interface Resting {
  /** For all work, a sentence. Absent: it does not rest. */
  readonly problem?: string;
  /** For work that has not waited long. Absent: it does not rest. */
  readonly unused?: UnusedRest;
}

/**
 * How something rests according to the receipt. One that did not come rests for all work. One that came too late is
 * used for work that has waited as long as a startup takes: such work would not have ended before.
 * @param name key of the rest
 * @param startupMs startup time; undefined: unknown; at least that of the last useless one
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

/** Shortest time that a purchase needs to take work, as observed; undefined: it was of use, or not meant for work. */
export function unusedMs(purchase: ClusterPurchase, now: number): number | undefined {
  const { work, sources, at, wokenAt } = purchase;
  // A useless cluster rests already.
  if (work || clusterWaitOf(purchase) || isUseless(purchase) || (sources.length > 0 && sources.every(isForPeak)))
    return undefined;
  const since = Date.parse(wokenAt ?? at);
  const joinedAt = joinedAtOf(purchase);
  return Math.max(0, (joinedAt === undefined ? now : Date.parse(joinedAt)) - since);
}

/** The view in which resting offers take only work that has waited long enough. */
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

/** When work will have waited long enough to use resting offers, milliseconds since the epoch. */
export function restsEnd({ candidates, warm = [], waiting }: ClustersView, now: number): number[] {
  return [...candidates, ...warm].flatMap(({ unused }) => {
    const times = unused ? waiting.map(({ since }) => since + unused.startsInMs).filter((time) => time > now) : [];
    return times.length > 0 ? [times.reduce((a, b) => Math.min(a, b))] : [];
  });
}
