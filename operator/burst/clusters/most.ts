import { type Serving, serve } from './grow.ts';
import type { ClustersView, WaitingWork } from './model.ts';
import { type Room, workLikeness } from './room.ts';

/** Most unservable sources (with similar ones) that get a reason, oldest first. */
const MOST_REFUSED = 8;
/** Beyond these, this many more sources are tried, smallest first: the rest of a budget may suffice for them. */
const MOST_PASSED_BY = 32;

/** Result for sources that have waited long enough. */
export interface Served {
  readonly served: readonly WaitingWork[][];
  readonly serving: Serving;
  /** Groups of similar sources, of which the first was tried. */
  readonly refused: readonly WaitingWork[][][];
  /** Sources that no offer takes. Judged by kind, because there may be thousands. */
  readonly hopeless: readonly WaitingWork[][];
  /** Sources that were tried in vain: the rest of the budget is too small. */
  readonly notEnough: readonly WaitingWork[][];
  /** Sources that were not tried. */
  readonly later: readonly WaitingWork[][];
}

/**
 * Serves as many sources as possible, oldest first; an unservable one is skipped, so that it blocks nobody.
 * @param isTaken whether any offer takes a replica of the work
 */
export function serveMost(
  view: ClustersView,
  room: Room,
  waits: readonly WaitingWork[][],
  isTaken: (work: WaitingWork) => boolean,
  now: number,
): Served {
  let served: WaitingWork[][] = [];
  let serving: Serving = { growths: [], openings: [], clusters: [] };
  const refused: WaitingWork[][][] = [];
  const likeness = workLikeness();
  const { possible = [], hopeless = [] } = Object.groupBy(waits, (work) =>
    work.every(isTaken) ? 'possible' : 'hopeless',
  );
  let left = possible;
  while (left.length > 0 && refused.length < MOST_REFUSED + MOST_PASSED_BY) {
    if (refused.length === MOST_REFUSED) left = left.toSorted((a, b) => sizeOf(a) - sizeOf(b));
    const isFirst = served.length + refused.length === 0;
    const can = mostThat(left.length, isFirst, (tried) => {
      const wanted = room.without([...served, ...left.slice(0, tried)].flat());
      const found = serve(view, wanted, now);
      if (found) serving = found;
      return found !== undefined;
    });
    served = [...served, ...left.slice(0, can)];
    const cannot = left[can];
    left = left.slice(can + 1);
    if (!cannot) continue;
    // Similar sources cannot be served either: a hundred of them must not delay those behind.
    const alike = left.filter((work) => asksAsMuch(work, cannot, likeness));
    refused.push([cannot, ...alike]);
    left = left.filter((work) => !alike.includes(work));
  }
  const kinds = byKind(hopeless, likeness);
  return {
    served,
    serving,
    refused: [...refused.slice(0, MOST_REFUSED), ...kinds.slice(0, MOST_REFUSED)],
    hopeless: kinds.slice(MOST_REFUSED).flat(),
    notEnough: refused.slice(MOST_REFUSED).flat(),
    later: left,
  };
}

/** Most machines have 4 GiB per CPU: this much memory counts as one CPU. */
const BYTES_PER_MILLICORE = 2 ** 32 / 1000;

/** Size of a source for sorting. */
const sizeOf = (work: readonly WaitingWork[]): number =>
  work.reduce(
    (sum, { count, pod: { requests } }) => sum + count * (requests.cpu + requests.memory / BYTES_PER_MILLICORE),
    0,
  );

/** Groups similar sources. */
function byKind(sources: readonly WaitingWork[][], likeness: (work: WaitingWork) => string): WaitingWork[][][] {
  const kinds = Map.groupBy(sources, (work) => (work.length === 1 ? likeness(work[0]!) : work[0]!.source));
  return [...kinds.values()];
}

/**
 * Largest number up to `most` for which `canBe` holds, where a smaller number holds too; the last call is with the
 * result. Tries `most` first only if `expectsAll`; else doubles from 1 and then bisects, because the result is often
 * small and large tries are slow.
 */
function mostThat(most: number, expectsAll: boolean, canBe: (tried: number) => boolean): number {
  if (expectsAll && canBe(most)) return most;
  let [can, cannot] = [0, expectsAll ? most : most + 1];
  for (let next = 1; cannot - can > 1; ) {
    const tried = next < cannot ? next : (can + cannot) >> 1;
    if (canBe(tried)) [can, next] = [tried, Math.max(next, 2 * tried)];
    else [cannot, next] = [tried, Number.POSITIVE_INFINITY];
  }
  return can;
}

/** Whether a source asks for at least as much as another one. */
function asksAsMuch(
  [part, ...parts]: readonly WaitingWork[],
  [known, ...others]: readonly WaitingWork[],
  likeness: (work: WaitingWork) => string,
): boolean {
  if (!part || !known || parts.length > 0 || others.length > 0) return false;
  return part.count >= known.count && likeness(part) === likeness(known);
}
