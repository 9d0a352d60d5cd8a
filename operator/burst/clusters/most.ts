import { type Serving, serve } from './grow.ts';
import type { ClustersView, WaitingWork } from './model.ts';
import { likenessOf, type Room } from './room.ts';

/** Of work that cannot be served so many sources, and those that ask for the same, are told why; the oldest first. */
const MOST_REFUSED = 8;
/** After these so many more are tried, the smallest first: what is left of a budget may be enough for them. */
const MOST_PASSED_BY = 32;

/** What becomes of sources that have waited long enough. */
export interface Served {
  readonly served: readonly WaitingWork[][];
  readonly serving: Serving;
  /** Sources that ask for the same together, of which the first was tried. */
  readonly refused: readonly WaitingWork[][][];
  /** More of them that nothing on offer takes. Each kind is asked about by itself, and there may be thousands. */
  readonly hopeless: readonly WaitingWork[][];
  /** More that were tried in vain: what is left is not enough for them. */
  readonly notEnough: readonly WaitingWork[][];
  /** Those that were not tried. */
  readonly later: readonly WaitingWork[][];
}

/**
 * As many sources as can be served, the oldest first; one that cannot is passed by, so that it keeps nobody waiting.
 * @param isTaken whether anything on offer takes a replica of it at all
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
  const likeness = likenessOf();
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
    // Who asks for the same cannot be served either: a hundred such jobs must not keep those after them from being looked at.
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

/** Most machines have 4 GiB for each CPU: so much memory counts as one. */
const BYTES_PER_MILLICORE = 2 ** 32 / 1000;

/** How much a source asks for. */
const sizeOf = (work: readonly WaitingWork[]): number =>
  work.reduce(
    (sum, { count, pod: { requests } }) => sum + count * (requests.cpu + requests.memory / BYTES_PER_MILLICORE),
    0,
  );

/** Of each kind once. */
function byKind(sources: readonly WaitingWork[][], likeness: (work: WaitingWork) => string): WaitingWork[][][] {
  const kinds = Map.groupBy(sources, (work) => (work.length === 1 ? likeness(work[0]!) : work[0]!.source));
  return [...kinds.values()];
}

/**
 * The largest number up to `most` that can be, where any less can be too: of those that can be, the largest is tried last. All at once is tried
 * only if `expectsAll`; else 1, then twice as many each time, then by halves, because what can be had is often little, and to try much takes long.
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

/** Whether a source asks for what another one asks for, or for more of it. */
function asksAsMuch(
  [part, ...parts]: readonly WaitingWork[],
  [known, ...others]: readonly WaitingWork[],
  likeness: (work: WaitingWork) => string,
): boolean {
  if (!part || !known || parts.length > 0 || others.length > 0) return false;
  return part.count >= known.count && likeness(part) === likeness(known);
}
