import { nodeMisfit } from '../fit/filters/node.ts';
import { roomFor } from '../fit/filters/resources.ts';
import type { FitNode, NodeTemplate } from '../fit/model.ts';
import { nodeOf } from '../fit/node.ts';
import { isPlaceable } from './hub-filters.ts';
import type { ClustersView, HubMember, Limits, WaitingWork } from './model.ts';
import { likenessOf, totalOf } from './room.ts';

/** Once so many replicas are looked at, no further source is; one that has more by itself never is. */
export const MOST_REPLICAS = 5_000;

/** Sources by whether they are looked at now; each the oldest first. */
export interface LookedAt {
  readonly sources: readonly WaitingWork[][];
  /** More than is looked at in one go, each by itself. */
  readonly tooLarge: readonly WaitingWork[][];
  readonly later: readonly WaitingWork[][];
}

/** For so long the same sources are looked at beside the shares of namespaces. */
const TURN_MS = 60_000;

/**
 * Which sources are looked at now. What nothing on offer would ever take comes after all others, however old: it must not keep them waiting. Beside
 * the shares of namespaces one goes after the other, by the clock: the oldest may be more than a policy can ever buy for.
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

/** Of each namespace as many replicas as of any other: one large source must not keep other namespaces waiting for good. */
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

/** Sources of each namespace in turn, in their order: nobody has so many that others never come. */
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

/** Work by whether its priority is enough; a source of several parts has that of the highest, as it is served as a whole. */
export function byPriority(
  waiting: readonly WaitingWork[],
  { minimumPriority = Number.NEGATIVE_INFINITY }: Pick<Limits, 'minimumPriority'>,
): { counted: WaitingWork[]; low: WaitingWork[] } {
  const sources = bySource(waiting);
  const isLow = (work: readonly WaitingWork[]) => priorityOf(work) < minimumPriority;
  return { counted: sources.filter((one) => !isLow(one)).flat(), low: sources.filter(isLow).flat() };
}

/** Work by whether it was served a while ago, and its hub says the same of it all the time. */
export function byService(
  waiting: readonly WaitingWork[],
  now: number,
): { fresh: readonly WaitingWork[]; served: readonly WaitingWork[] } {
  const { fresh = [], served = [] } = Object.groupBy(waiting, ({ servedUntil = now }) =>
    servedUntil > now ? 'served' : 'fresh',
  );
  return { fresh, served };
}

/** Why nothing is bought for work, a sentence. */
export const tooLow = (work: readonly WaitingWork[], { minimumPriority }: Pick<Limits, 'minimumPriority'>): string =>
  `nothing is bought for it: its priority is ${priorityOf(work)}, and the policy buys for ${minimumPriority} and more (minimumPriority)`;

/** Work of one source together, the oldest first. */
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
 * Whether an empty node of anything that could be bought, grown or opened would take a replica, were there money enough. What is not taken so
 * is served by no purchase.
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

/** Whether a replica goes onto one of the nodes of these clusters, were there nothing else on it. */
export const takenBySupply = (supply: ClustersView['supply']): ((work: WaitingWork) => boolean) =>
  takenByAny(supply.flatMap(({ member, nodes }) => nodes.map(({ node }) => ({ member, node }))));

/** Whether any of these empty nodes takes a replica. What is alike is looked at once. */
function takenByAny(nodes: readonly { member: HubMember; node: FitNode }[]): (work: WaitingWork) => boolean {
  const known = new Map<string, boolean>();
  const likeness = likenessOf();
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
