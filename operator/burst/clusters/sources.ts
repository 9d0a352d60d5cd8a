import { nodeMisfit } from '../fit/filters/node.ts';
import { roomFor } from '../fit/filters/resources.ts';
import type { FitNode, NodeTemplate } from '../fit/model.ts';
import { nodeOf } from '../fit/node.ts';
import { isPlaceable } from './hub-filters.ts';
import type { ClustersView, HubMember, Limits, WaitingWork } from './model.ts';
import { totalOf, workLikeness } from './room.ts';

/** Most replicas that one decision looks at; a source with more by itself is never looked at. */
export const MOST_REPLICAS = 5_000;

/** Sources by whether this decision looks at them; oldest first. */
interface LookedAt {
  readonly sources: readonly WaitingWork[][];
  /** Sources that alone exceed the limit. */
  readonly tooLarge: readonly WaitingWork[][];
  readonly later: readonly WaitingWork[][];
}

/** How long the same sources are looked at in addition to the shares of namespaces. */
const TURN_MS = 60_000;

/**
 * Sources that this decision looks at. Those that no offer would take come last, however old, so that they block
 * nobody. Beyond the shares of namespaces, further sources take turns by the clock: the oldest may exceed what the
 * policy can ever buy.
 */
export function lookedAt(
  waiting: readonly WaitingWork[],
  isTaken: (work: WaitingWork) => boolean,
  now: number,
): LookedAt {
  const all = bySource(waiting);
  const tooLarge = all.filter((work) => totalOf(work) > MOST_REPLICAS);
  const { taken = [], hopeless = [] } = Object.groupBy(
    all.filter((work) => totalOf(work) <= MOST_REPLICAS),
    (work) => (work.every(isTaken) ? 'taken' : 'hopeless'),
  );
  const ordered = inTurn(taken);
  const chosen = new Set(sharesOf(ordered));
  let replicas = [...chosen].reduce((sum, work) => sum + totalOf(work), 0);
  const left = ordered.filter((work) => !chosen.has(work));
  const turn = Math.floor(now / TURN_MS) % Math.max(1, left.length);
  for (const work of [...left.slice(turn), ...left.slice(0, turn), ...hopeless]) {
    if (replicas >= MOST_REPLICAS) break;
    chosen.add(work);
    replicas += totalOf(work);
  }
  const sources = all.filter((work) => chosen.has(work));
  return { sources, tooLarge, later: all.filter((work) => !chosen.has(work) && !tooLarge.includes(work)) };
}

/** Equal shares of replicas per namespace: one large source must not block other namespaces. */
function sharesOf(sources: readonly WaitingWork[][]): WaitingWork[][] {
  const namespaces = Map.groupBy(sources, ([first]) => first?.namespace);
  return [...namespaces.values()].flatMap((its) => {
    let left = MOST_REPLICAS / namespaces.size;
    return its.filter((work) => {
      const fits = totalOf(work) <= left;
      if (fits) left -= totalOf(work);
      return fits;
    });
  });
}

/** Alternates namespaces, keeping the order within each. */
export function inTurn<Source extends readonly Pick<WaitingWork, 'namespace'>[]>(sources: readonly Source[]): Source[] {
  const before = new Map<string | undefined, number>();
  const turns = sources.map((source) => {
    const whose = source[0]?.namespace;
    const turn = before.get(whose) ?? 0;
    before.set(whose, turn + 1);
    return { source, turn };
  });
  return turns.sort((a, b) => a.turn - b.turn).map(({ source }) => source);
}

const priorityOf = (work: readonly WaitingWork[]): number => Math.max(...work.map(({ priority = 0 }) => priority));

/**
 * Splits work by the policy's minimum priority; a source has the highest priority of its parts, as it is served as a
 * whole.
 */
export function byPriority(
  waiting: readonly WaitingWork[],
  { minimumPriority = Number.NEGATIVE_INFINITY }: Pick<Limits, 'minimumPriority'>,
): { counted: WaitingWork[]; low: WaitingWork[] } {
  const sources = bySource(waiting);
  const isLow = (work: readonly WaitingWork[]) => priorityOf(work) < minimumPriority;
  return { counted: sources.filter((one) => !isLow(one)).flat(), low: sources.filter(isLow).flat() };
}

/** Splits work by whether it was served and its hub still reports it unchanged. */
export function byService(
  waiting: readonly WaitingWork[],
  now: number,
): { fresh: readonly WaitingWork[]; served: readonly WaitingWork[] } {
  const { fresh = [], served = [] } = Object.groupBy(waiting, ({ servedUntil = now }) =>
    servedUntil > now ? 'served' : 'fresh',
  );
  return { fresh, served };
}

/** Why work of low priority buys nothing, a sentence. */
export const tooLow = (work: readonly WaitingWork[], { minimumPriority }: Pick<Limits, 'minimumPriority'>): string =>
  `nothing is bought for it: its priority is ${priorityOf(work)}, and the policy buys for ${minimumPriority} and more (minimumPriority)`;

/** Work grouped by source, oldest first. */
function bySource(waiting: readonly WaitingWork[]): WaitingWork[][] {
  const found = new Map<string, WaitingWork[]>();
  for (const work of waiting) {
    const known = found.get(work.source);
    if (known) known.push(work);
    else found.set(work.source, [work]);
  }
  const since = (work: readonly WaitingWork[]) => Math.min(...work.map((one) => one.since));
  return [...found.values()].sort((a, b) => since(a) - since(b) || (a[0]!.source < b[0]!.source ? -1 : 1));
}

/**
 * Returns a check whether an empty node of any offer would take a replica, regardless of money. No purchase serves
 * other work.
 */
export function takenByOffers({
  candidates,
  growth = [],
  warm = [],
}: Pick<ClustersView, 'candidates' | 'growth' | 'warm'>): (work: WaitingWork) => boolean {
  const fresh = (member: HubMember, template: NodeTemplate) => ({
    member,
    node: nodeOf(template, `new:${template.id}`),
  });
  const nodes: readonly { member: HubMember; node: FitNode }[] = [
    ...candidates.flatMap(
      ({ offer }) =>
        offer?.pools.flatMap(({ template, most }) => (most > 0 ? [fresh(offer.member, template)] : [])) ?? [],
    ),
    ...growth.flatMap(({ pools }) => pools.map(({ member, template }) => fresh(member, template))),
    ...warm.flatMap(({ supply: { member, nodes: there, planned } }) => [
      ...there.map(({ node }) => ({ member, node })),
      ...planned.map(({ template }) => fresh(member, template)),
    ]),
  ];
  return takenByAny(nodes);
}

/** Returns a check whether an existing node of these clusters would take a replica if it were empty. */
export const takenBySupply = (supply: ClustersView['supply']): ((work: WaitingWork) => boolean) =>
  takenByAny(supply.flatMap(({ member, nodes }) => nodes.map(({ node }) => ({ member, node }))));

/** Returns a check whether any of these empty nodes takes a replica. Cached by likeness. */
function takenByAny(nodes: readonly { member: HubMember; node: FitNode }[]): (work: WaitingWork) => boolean {
  const known = new Map<string, boolean>();
  const likeness = workLikeness();
  return (work) => {
    const alike = likeness(work);
    let isTaken = known.get(alike);
    if (isTaken === undefined) {
      const { pod } = work;
      isTaken = nodes.some(
        ({ member, node }) => isPlaceable(work, member) && !nodeMisfit(pod, node) && roomFor(pod, node, []) > 0,
      );
      known.set(alike, isTaken);
    }
    return isTaken;
  };
}
