import { formatMoney, type Micros } from '../../cost/money.ts';
import type { Alternative, CandidateView, ClusterOffer, ClusterPrice, ClustersView, WaitingWork } from './model.ts';
import { type Replicas, type Room, type Taken, takenBy, together } from './room.ts';

/** More candidates than this are never bought in one decision. */
const MOST_AT_ONCE = 10;

/** A cluster that is to be bought, before it has a reason. */
export interface Chosen {
  readonly candidate: string;
  readonly nodes: ReadonlyMap<string, number>;
  readonly price: ClusterPrice;
  readonly count: number;
  readonly alternatives: readonly Alternative[];
}

/** What may still be bought. */
interface Left {
  clusters: number;
  hourly: Micros;
  monthly: Micros | undefined;
  readonly byCandidate: Map<string, number>;
}

const HOUR_MS = 3_600_000n;

/**
 * What is left of maximums and budgets. What runs and what is bought counts for as long as a cluster lives at least: for less nothing can be
 * had, and how much longer it will be needed nobody knows.
 */
function leftOf({ limits, clusters, candidates, spent }: ClustersView): Left {
  const running = clusters.reduce((sum, { hourly }) => sum + hourly, 0n);
  return {
    clusters: limits.maximumClusters - clusters.length,
    hourly: limits.hourly - running,
    monthly: limits.monthly === undefined ? undefined : limits.monthly - spent - forMinimumLife(running, limits),
    byCandidate: new Map(candidates.map(({ name, left }) => [name, left])),
  };
}

const forMinimumLife = (hourly: Micros, { minimumLifeMs }: ClustersView['limits']): Micros =>
  (hourly * BigInt(Math.ceil(minimumLifeMs)) + HOUR_MS - 1n) / HOUR_MS;

/**
 * Clusters that take all of this work, which is more than the room that there is takes: of the highest priority the cheapest each time.
 * undefined: maximums, budgets or candidates do not allow that, and nothing is bought for a part of it.
 */
export function choose(view: ClustersView, room: Room, work: readonly WaitingWork[]): Chosen[] | undefined {
  const replicas = withoutRoom(room, work);
  // One large cluster, or several small ones: each may be the cheaper way to the end, and the only one that is allowed.
  const take = remembered();
  const [few, many] = [chooseBy(true, view, replicas, take), chooseBy(false, view, replicas, take)];
  if (!few || !many) return few ?? many;
  const [costFew, costMany] = [costOf(few), costOf(many)];
  return costMany < costFew || (costMany === costFew && many.length < few.length) ? many : few;
}

const costOf = (chosen: readonly Chosen[]): Micros => chosen.reduce((sum, { price }) => sum + price.hourly, 0n);

const withoutRoom = (room: Room, work: readonly WaitingWork[]): Replicas[] =>
  together(room.whatIf(() => room.fill(work.map((one) => ({ work: one, count: one.count }))).left));

/** As long as both ways choose the same, they ask the same. */
function remembered(): typeof takenBy {
  const known = new Map<readonly Replicas[], Map<ClusterOffer, Taken>>();
  return (offer, wanted) => {
    const ofWanted = known.get(wanted) ?? new Map<ClusterOffer, Taken>();
    known.set(wanted, ofWanted);
    const taken = ofWanted.get(offer) ?? takenBy(offer, wanted);
    ofWanted.set(offer, taken);
    return taken;
  };
}

function chooseBy(
  wholeFirst: boolean,
  view: ClustersView,
  wanted: readonly Replicas[],
  take: typeof takenBy,
): Chosen[] | undefined {
  let replicas = wanted;
  const left = leftOf(view);
  const chosen: Chosen[] = [];
  while (replicas.length > 0) {
    if (chosen.length === MOST_AT_ONCE) return undefined;
    const offers = view.candidates.map((candidate) => judged(candidate, replicas, left, view, take));
    const best = offers.filter(isPossible).sort(better(wholeFirst))[0];
    if (!best) return undefined;
    chosen.push({
      candidate: best.candidate.name,
      nodes: best.taken.nodes,
      price: best.price,
      count: best.taken.count,
      alternatives: offers.filter((one) => one !== best).map((one) => alternative(one, best)),
    });
    left.clusters--;
    left.hourly -= best.price.most;
    if (left.monthly !== undefined) left.monthly -= forMinimumLife(best.price.most, view.limits);
    left.byCandidate.set(best.candidate.name, (left.byCandidate.get(best.candidate.name) ?? 0) - 1);
    replicas = best.taken.left;
  }
  return chosen;
}

/** What each candidate has to say to work that nothing is bought for. */
export function whyNone(view: ClustersView, room: Room, work: readonly WaitingWork[]): Alternative[] {
  const replicas = withoutRoom(room, work);
  const left = leftOf(view);
  return view.candidates.map((candidate) => {
    const one = judged(candidate, replicas, left, view);
    if (!isPossible(one)) return alternative(one, undefined);
    const total = replicas.reduce((sum, { count }) => sum + count, 0);
    const whyNot = `one more takes ${one.taken.count} of ${total} replicas, and maximum or budget does not allow as many as are needed`;
    return { candidate: candidate.name, hourly: one.price.hourly, whyNot };
  });
}

interface Judged {
  readonly candidate: CandidateView;
  readonly taken?: Taken;
  readonly price?: ClusterPrice;
  readonly whyNot?: string;
}
type Possible = Judged & { readonly taken: Taken; readonly price: ClusterPrice };

const isPossible = (one: Judged): one is Possible => one.whyNot === undefined;

function judged(
  candidate: CandidateView,
  replicas: readonly Replicas[],
  left: Left,
  { limits }: ClustersView,
  take = takenBy,
): Judged {
  const { name, offer, problem } = candidate;
  if (problem !== undefined || !offer) return { candidate, whyNot: problem ?? 'it cannot be made' };
  const taken = take(offer, replicas);
  if (taken.count === 0) return { candidate, whyNot: taken.misfits.join('; ') || 'it takes none of it' };
  const price = offer.price(taken.nodes);
  if (typeof price === 'string') return { candidate, taken, whyNot: price };
  const { currency } = limits;
  const show = (amount: Micros) => `${formatMoney(amount > 0n ? amount : 0n)} ${currency}`;
  const known = { candidate, taken, price };
  if (left.clusters <= 0) return { ...known, whyNot: `the policy has its ${limits.maximumClusters} clusters` };
  if ((left.byCandidate.get(name) ?? 0) <= 0) return { ...known, whyNot: 'there are as many of it as it allows' };
  if (price.most > left.hourly)
    return {
      ...known,
      whyNot: `it costs ${show(price.most)} an hour, and ${show(left.hourly)} of the budget of ${show(limits.hourly)} are left`,
    };
  if (left.monthly !== undefined && forMinimumLife(price.most, limits) > left.monthly)
    return {
      ...known,
      // What is left becomes less by the second, and is not said for that.
      whyNot: `for its minimum life it costs ${show(forMinimumLife(price.most, limits))}, more than is left of the budget of the month of ${show(limits.monthly ?? 0n)}`,
    };
  return known;
}

/** Priority, then (where that is asked for) who takes all of it, then who does it for less: of all, or of each replica. */
const better =
  (wholeFirst: boolean) =>
  (a: Possible, b: Possible): number => {
    if (a.candidate.priority !== b.candidate.priority) return b.candidate.priority - a.candidate.priority;
    const [wholeA, wholeB] = [a.taken.left.length === 0, b.taken.left.length === 0];
    const [costA, costB] = [a.price.hourly, b.price.hourly];
    if (wholeFirst && wholeA !== wholeB) return wholeA ? -1 : 1;
    if (wholeA && wholeB && costA !== costB) return costA < costB ? -1 : 1;
    // For each replica, without a fraction.
    const [eachA, eachB] = [costA * BigInt(b.taken.count), costB * BigInt(a.taken.count)];
    if (eachA !== eachB) return eachA < eachB ? -1 : 1;
    if (a.taken.count !== b.taken.count) return b.taken.count - a.taken.count;
    return a.candidate.name < b.candidate.name ? -1 : 1;
  };

function alternative({ candidate, price, whyNot, taken }: Judged, best: Possible | undefined): Alternative {
  const chosen = best && `${best.candidate.name} was better`;
  const reason =
    whyNot ??
    (best && candidate.priority < best.candidate.priority
      ? `${chosen}: it has a higher priority`
      : best && taken && taken.count < best.taken.count
        ? `${chosen}: this one takes ${taken.count} of the replicas, that one ${best.taken.count}`
        : (chosen ?? ''));
  return { candidate: candidate.name, ...(price && { hourly: price.hourly }), whyNot: reason };
}
