import { LEAVE_MS, paidUntil, restedAt } from './give-back.ts';
import type { ClustersView, EmptyingCluster, Movable, OwnCluster, Supply, WaitingWork } from './model.ts';
import { countsFor, isOn } from './peaks.ts';
import type { EmptyOrder, Kept } from './plan-model.ts';
import { Room, totalOf } from './room.ts';
import { byPriority, takenBySupply } from './sources.ts';
import { askedBy, listText, replicasText } from './words.ts';

/** Time for a hub to move work away, in addition to the time to leave: emptying begins this much earlier. */
const MOVE_MS = 5 * 60_000;
/**
 * Spare room required elsewhere beyond the moved work (and at least one replica), or the next replica would buy the
 * cluster again.
 */
const HEADROOM = 0.25;
/** Most underused clusters that one decision looks at, dearest first. */
const MOST_LOOKED_AT = 8;

/** Other decisions of the same cycle. */
interface Decided {
  /** Clusters that waiting work would go to, as `namespace/name`. */
  readonly needed: ReadonlySet<string>;
  readonly hasBought: boolean;
  readonly hasRemoved: boolean;
  readonly now: number;
}

/** Clusters to empty, reasons why others stay, and the next times to check, milliseconds since the epoch. */
interface Consolidated {
  readonly emptyings: readonly EmptyOrder[];
  readonly stays: ReadonlyMap<string, string>;
  readonly times: readonly number[];
}

/** Clusters with little work for long enough that their content should be read. Pure. */
export function underusedClusters(
  { clusters, limits, lastIn, lastOut }: Pick<ClustersView, 'clusters' | 'limits' | 'lastIn' | 'lastOut'>,
  now: number,
): { due: OwnCluster[]; times: number[] } {
  const times: number[] = [];
  if (limits.isSuspended) return { due: [], times };
  const due = clusters.filter((one) => {
    const { phase, warm, hasWork, underusedSince, idleSince, emptyingSince, leftAloneUntil = 0, at } = one;
    const isAsked = phase === 'Joined' && !warm && hasWork && idleSince === undefined && emptyingSince === undefined;
    if (!isAsked || underusedSince === undefined) return false;
    const rested = restedAt({ limits, lastIn, lastOut }, false, now);
    const earliest = Math.max(underusedSince + limits.idleForMs, at + limits.minimumLifeMs, rested, leftAloneUntil);
    const time = paidUntil(one, earliest, now, LEAVE_MS + MOVE_MS);
    if (time > now) times.push(time);
    return time <= now;
  });
  return { due: due.sort(dearestFirst).slice(0, MOST_LOOKED_AT), times };
}

const dearestFirst = (a: OwnCluster, b: OwnCluster): number =>
  a.hourly === b.hourly ? (a.name < b.name ? -1 : 1) : a.hourly > b.hourly ? -1 : 1;

/**
 * The cluster to empty: all of its work fits on free room elsewhere, and it saves most per moved replica. One at a
 * time, so that no room is promised twice; none while clusters come or go, or work waits. Pure.
 */
export function chooseEmptying(view: ClustersView, decided: Decided): Consolidated {
  const { due, times } = underusedClusters(view, decided.now);
  const unsettled = due.length > 0 ? whyUnsettled(view, decided) : undefined;
  const stays = new Map<string, string>();
  const found: { one: OwnCluster; work: readonly WaitingWork[]; on: ReadonlySet<string> }[] = [];
  for (const one of due) {
    const movable = view.movable?.get(one.key);
    if (!movable) continue;
    const elsewhere = unsettled ?? placeElsewhere(view, one.key, movable);
    if (typeof elsewhere === 'string') stays.set(one.name, elsewhere);
    else if (decided.needed.has(one.key)) stays.set(one.name, 'work that waits would go there');
    else if ('work' in movable) found.push({ one, work: movable.work, on: elsewhere });
  }
  const [best, ...others] = found.sort((a, b) => {
    const [x, y] = [BigInt(totalOf(a.work)) * b.one.hourly, BigInt(totalOf(b.work)) * a.one.hourly];
    return x === y ? dearestFirst(a.one, b.one) : x < y ? -1 : 1;
  });
  if (!best) return { emptyings: [], stays, times };
  for (const { one } of others) stays.set(one.name, `${best.one.name} is emptied first`);
  const sources = [...new Set(best.work.map(({ source }) => source))];
  const why = `it has little work: ${replicasText(best.work)} of ${listText(sources)}, for which there is room on ${listText([...best.on].sort())}`;
  return { emptyings: [{ kind: 'empty', name: best.one.name, why }], stays, times };
}

/** Why no cluster at all is emptied now; undefined: nothing prevents it. */
function whyUnsettled(view: ClustersView, { hasBought, hasRemoved, now }: Decided): string | undefined {
  const { clusters, waiting, hubWaiting = waiting, supply, peaks = [], limits, unsettled } = view;
  // Work that no node could take even when empty waits for something else.
  if (hubWaiting.some(takenBySupply(supply))) return 'work of the hub waits for room';
  const busy = clusters.find(({ phase, emptyingSince }) => phase !== 'Joined' || emptyingSince !== undefined);
  if (hasBought || hasRemoved || busy) return 'another cluster of the policy comes or goes';
  if (supply.some(({ planned }) => planned.length > 0)) return 'nodes of the hub are on their way';
  // A peak within the minimum life would buy the cluster again: moving work is not worthwhile.
  const peak = peaks.find(
    ({ from, until, isMinimum }) => !isMinimum && from <= now + limits.minimumLifeMs && until > now,
  );
  if (peak) return `peak ${peak.name} is on, or begins soon`;
  return neededForMinimum(view) ?? unsettled;
}

/**
 * Why the minimum number of clusters prevents any from going; undefined: one may go. A cluster being emptied counts
 * until it is given back.
 */
function neededForMinimum({ clusters, peaks = [] }: ClustersView): string | undefined {
  const least = peaks.find(
    (peak) => peak.isMinimum && clusters.filter((one) => countsFor(peak, one)).length <= peak.clusters,
  );
  return least && askedBy(least);
}

/** Other clusters with room for a cluster's work plus headroom; or a sentence why it stays. */
function placeElsewhere(
  { supply, clusters }: ClustersView,
  key: string,
  movable: Movable,
): ReadonlySet<string> | string {
  if ('stays' in movable) return movable.stays;
  // Idle clusters are about to go, and ordered nodes may not arrive.
  const goes = new Set(clusters.filter(({ idleSince }) => idleSince !== undefined).map((one) => one.key));
  const others = supply
    .filter(({ cluster }) => cluster !== key && !goes.has(cluster))
    .map((one) => ({ ...one, planned: [] }));
  const wanted = movable.work.map((one) => ({
    ...one,
    count: one.count + Math.max(1, Math.ceil(one.count * HEADROOM)),
  }));
  const { on, left } = fillWith(others, wanted);
  return left.length === 0 ? on : `there is not enough room elsewhere for its ${replicasText(movable.work)}`;
}

/** Reserves room in these clusters for all of the work. */
function fillWith(supply: readonly Supply[], works: readonly WaitingWork[]) {
  const { on, left } = new Room(supply, works).fillWhole(works.map((work) => ({ work, count: work.count })));
  return { on, left: left.map(({ work, count }) => ({ ...work, count })) };
}

/**
 * Clusters whose emptying stops because work needs them, and the view with their room. Pure. Nothing is lost: the hub
 * places new work on the drained part.
 */
export function keepNeeded(view: ClustersView, now: number): { view: ClustersView; kept: readonly Kept[] } {
  const kept: Kept[] = [];
  let { supply } = view;
  for (const one of view.emptying ?? []) {
    const own = view.clusters.find(({ name, phase }) => name === one.name && phase !== 'Leaving');
    const why = own && whyKept({ ...view, supply }, one, own, now);
    if (!why) continue;
    kept.push({ name: one.name, ...why });
    supply = [...supply, one.supply];
  }
  if (kept.length === 0) return { view, kept };
  const clusters = view.clusters.map((one) =>
    kept.some(({ name }) => name === one.name) ? { ...one, emptyingSince: undefined } : one,
  );
  // Do not begin another emptying in the same cycle.
  return { view: { ...view, supply, clusters, lastIn: now }, kept };
}

function whyKept(
  view: ClustersView,
  one: EmptyingCluster,
  { key }: OwnCluster,
  now: number,
): Omit<Kept, 'name'> | undefined {
  const { limits, peaks = [], supply, waiting, movable } = view;
  if (one.problem !== undefined) return { why: one.problem, isFailure: true };
  if (limits.isSuspended) return { why: 'the policy is suspended', isFailure: false };
  const peak = peaks.find((other) => !other.isMinimum && isOn(other, now));
  const asked = peak ? `peak ${peak.name} is on` : neededForMinimum(view);
  if (asked) return { why: asked, isFailure: false };
  const { counted } = byPriority(waiting, limits);
  const homeless = counted.length > 0 ? fillWith(supply, counted).left : [];
  const there = homeless.length > 0 ? fillWith([one.supply], homeless).on : new Set();
  if (there.size > 0)
    return { why: `${replicasText(homeless)} of ${homeless[0]!.source} have room nowhere else`, isFailure: false };
  const known = movable?.get(key);
  if (one.hasBegun || one.isDone || !known) return undefined;
  const elsewhere = placeElsewhere(view, key, known);
  return typeof elsewhere === 'string' ? { why: elsewhere, isFailure: true } : undefined;
}

/** Names of clusters whose work was moved away and where nothing runs any more. Pure. */
export const emptiedClusters = ({ clusters, emptying = [] }: ClustersView): ReadonlySet<string> =>
  new Set(
    emptying.flatMap(({ name, isDone, problem }) => {
      const own = clusters.find((one) => one.name === name);
      const isEmpty = own?.emptyingSince !== undefined && own.phase === 'Joined' && own.idleSince !== undefined;
      return isDone && isEmpty && problem === undefined ? [name] : [];
    }),
  );
