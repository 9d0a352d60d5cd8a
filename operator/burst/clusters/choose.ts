import { costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros } from '../../cost/money.ts';
import type { CandidateView, ClusterOffer, ClusterPrice, ClustersView, Limits } from './model.ts';
import { nodesLeft, shortOfNodes } from './node-limit.ts';
import { countedNodes } from './offer.ts';
import type { Alternative, ClusterOrder, Grant } from './plan-model.ts';
import { type Replicas, type TakenRoom, takenBy, totalOf } from './room.ts';
import { nodesText } from './words.ts';

/** Most clusters that one decision buys. */
const MOST_AT_ONCE = 10;

/** A cluster to buy, without a reason yet. */
export interface Chosen {
  readonly candidate: string;
  readonly nodes: ReadonlyMap<string, number>;
  /** Number of nodes that counts against limits. */
  readonly mostNodes: number;
  /** See ClusterOrder. */
  readonly granted?: NonNullable<ClusterOrder['granted']>;
  readonly price: ClusterPrice;
  readonly count: number;
  /** No candidate joins within startWithin, this one neither. */
  readonly isLate: boolean;
  readonly alternatives: readonly Alternative[];
}

/** What limits leave to buy. */
interface Left {
  clusters: number;
  nodes: number;
  hourly: Micros;
  monthly: Micros | undefined;
  readonly byCandidate: Map<string, number>;
}

/**
 * Remainder of maximums and budgets. Each cluster counts for its minimum life: that much is certain, and nobody knows
 * how much longer it will be needed.
 */
function leftOf(
  { limits, clusters, candidates, spent, grownHourly = 0n, grownNodes }: ClustersView,
  now: number,
): Left {
  const running = clusters.reduce((sum, { hourly }) => sum + hourly, grownHourly);
  const promised = clusters.reduce(
    (sum, { hourly, billing, at }) => {
      const age = Math.max(0, now - at);
      return sum + costOver(hourly, age + limits.minimumLifeMs, billing, age);
    },
    costOver(grownHourly, limits.minimumLifeMs, undefined),
  );
  return {
    clusters: limits.maximumClusters - clusters.length,
    nodes: nodesLeft({ limits, clusters, grownNodes }),
    hourly: limits.hourly - running,
    monthly: limits.monthly === undefined ? undefined : limits.monthly - spent - promised,
    byCandidate: new Map(candidates.map(({ name, left }) => [name, left])),
  };
}

/** Money that budgets leave, per hour and per month (undefined: no limit). */
export function moneyLeft(view: ClustersView, now: number): { hourly: Micros; monthly: Micros | undefined } {
  const { hourly, monthly } = leftOf(view, now);
  return { hourly, monthly };
}

/** Cost of a cluster over its minimum life, expected and as budgets count it. */
function forMinimumLife({ hourly, most, billing }: ClusterPrice, { minimumLifeMs }: Limits) {
  return { cost: costOver(hourly, minimumLifeMs, billing), most: costOver(most, minimumLifeMs, billing) };
}

/** Whether the candidate's startup time exceeds startWithin. */
const isLate = ({ startupMs }: Pick<CandidateView, 'startupMs'>, { startWithinMs }: Limits): boolean =>
  startWithinMs !== undefined && startupMs !== undefined && startupMs > startWithinMs;

/**
 * Clusters to buy for all of this work: among candidates in time and of the highest priority, those with the lowest
 * cost over their minimum life. Recently interrupted offers are passed over when others suffice. undefined: maximums,
 * budgets or candidates do not allow all of it; nothing is bought for a part.
 */
export function choose(view: ClustersView, replicas: readonly Replicas[], now: number): Chosen[] | undefined {
  const others = { ...view, candidates: steady(view.candidates) };
  return chooseAmong(others, replicas, now) ?? (hasLost(view) ? chooseAmong(view, replicas, now) : undefined);
}

const hasLost = ({ candidates }: ClustersView): boolean => candidates.some((one) => one.steady !== undefined);

/** Candidates without recently interrupted offers. */
const steady = (candidates: readonly CandidateView[]): CandidateView[] =>
  candidates.map((one) => (one.steady && one.problem === undefined ? { ...one, ...one.steady } : one));

function chooseAmong(view: ClustersView, replicas: readonly Replicas[], now: number): Chosen[] | undefined {
  // One large cluster or several small ones: either may be cheaper, or the only allowed choice.
  const take = remembered();
  const [few, many] = [true, false].map((wholeFirst) => chooseBy(wholeFirst, view, replicas, now, take));
  if (!few && !many && view.limits.startWithinMs !== undefined)
    // The budget may be too small for candidates in time: late is better than never.
    return chooseAmong({ ...view, limits: { ...view.limits, startWithinMs: undefined } }, replicas, now);
  if (!few || !many) return few ?? many;
  const lateness = (chosen: readonly Chosen[]) => chosen.filter((one) => one.isLate).length;
  if (lateness(few) !== lateness(many)) return lateness(few) < lateness(many) ? few : many;
  const [costFew, costMany] = [few, many].map((chosen) => costOf(chosen, view.limits)) as [Micros, Micros];
  return costMany < costFew || (costMany === costFew && many.length < few.length) ? many : few;
}

/** Cost of the chosen clusters over their minimum life. */
export const costOf = (chosen: readonly Chosen[], limits: Limits): Micros =>
  chosen.reduce((sum, { price }) => sum + forMinimumLife(price, limits).cost, 0n);

/** Caches takenBy: both strategies ask the same questions until they differ. */
function remembered(): typeof takenBy {
  const known = new Map<readonly Replicas[], Map<ClusterOffer, TakenRoom>>();
  return (offer, wanted, mostNodes) => {
    const ofWanted = known.get(wanted) ?? new Map<ClusterOffer, TakenRoom>();
    known.set(wanted, ofWanted);
    const taken = ofWanted.get(offer) ?? takenBy(offer, wanted, mostNodes);
    ofWanted.set(offer, taken);
    return taken;
  };
}

function chooseBy(
  wholeFirst: boolean,
  view: ClustersView,
  wanted: readonly Replicas[],
  now: number,
  take: typeof takenBy,
): Chosen[] | undefined {
  let replicas = wanted;
  const { limits } = view;
  const left = leftOf(view, now);
  const chosen: Chosen[] = [];
  while (replicas.length > 0) {
    if (chosen.length === MOST_AT_ONCE) return undefined;
    const offers = view.candidates.map((candidate) => judged(candidate, replicas, left, view, take));
    const best = offers.filter(isPossible).sort(better(wholeFirst, limits))[0];
    if (!best) return undefined;
    chosen.push(asChosen(best, offers, limits));
    left.clusters--;
    left.nodes -= chosen.at(-1)!.mostNodes;
    left.hourly -= best.price.most;
    if (left.monthly !== undefined) left.monthly -= forMinimumLife(best.price, limits).most;
    left.byCandidate.set(best.candidate.name, (left.byCandidate.get(best.candidate.name) ?? 0) - 1);
    replicas = best.taken.left;
  }
  return chosen;
}

/** The best cluster to have regardless of work, at its least size; or why there is none. */
export function chooseLeast(
  view: ClustersView,
  now: number,
  candidates: readonly CandidateView[],
): Chosen | { readonly alternatives: Alternative[] } {
  const found = leastOf(view, now, steady(candidates));
  return 'candidate' in found ? found : leastOf(view, now, candidates);
}

function leastOf(
  view: ClustersView,
  now: number,
  candidates: readonly CandidateView[],
): Chosen | { readonly alternatives: Alternative[] } {
  const { limits } = view;
  const left = leftOf(view, now);
  const offers = candidates.map((candidate) => judged(candidate, [], left, view));
  const best = offers.filter(isPossible).sort(better(true, limits))[0];
  if (!best) return { alternatives: offers.map((one) => alternative(one, undefined, limits)) };
  return asChosen(best, offers, limits);
}

const asChosen = (best: Possible, offers: readonly Judged[], limits: Limits): Chosen => ({
  candidate: best.candidate.name,
  nodes: best.taken.nodes,
  mostNodes: countedNodes(best.candidate.offer!, best.taken.nodes),
  ...grantedIn(best.candidate.offer!, best.taken.nodes),
  price: best.price,
  count: best.taken.count,
  isLate: isLate(best.candidate, limits),
  alternatives: offers.filter((one) => one !== best).map((one) => alternative(one, best, limits)),
});

/** Nodes granted to pools that Coppice sizes, for a cluster bought with these nodes. */
function grantedIn({ pools }: ClusterOffer, nodes: ReadonlyMap<string, number>): Pick<Chosen, 'granted'> {
  const granted = pools.flatMap(({ name, minimum, price, isGranted }): [string, Grant][] =>
    // Nodes without a price of their own are counted with their cluster.
    isGranted ? [[name, { nodes: nodes.get(name) ?? minimum, each: price ?? 0n }]] : [],
  );
  return granted.length > 0 ? { granted: Object.fromEntries(granted) } : {};
}

/** Reason of each candidate for not serving this work. */
export function whyNone(view: ClustersView, replicas: readonly Replicas[], now: number): Alternative[] {
  const left = leftOf(view, now);
  return view.candidates.map((candidate) => {
    const one = judged(candidate, replicas, left, view);
    if (!isPossible(one)) return alternative(one, undefined, view.limits);
    const total = totalOf(replicas);
    const short = one.taken.isOutOfNodes
      ? shortOfNodes(view.limits, left.nodes)
      : total > MOST_AT_ONCE * one.taken.count
        ? `no more than ${MOST_AT_ONCE} clusters are bought at once: make several workloads of it`
        : 'maximum or budget does not allow as many as are needed';
    const whyNot = `one more takes ${one.taken.count} of ${total} replicas, and ${short}`;
    return { candidate: candidate.name, hourly: one.price.hourly, whyNot };
  });
}

interface Judged {
  readonly candidate: CandidateView;
  readonly taken?: TakenRoom;
  readonly price?: ClusterPrice;
  readonly whyNot?: string;
}
type Possible = Judged & { readonly taken: TakenRoom; readonly price: ClusterPrice };

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
  const least = countedNodes(offer, new Map());
  if (least > left.nodes) {
    const autoscales = offer.pools.some(({ minimum, autoscaledTo = 0 }) => autoscaledTo > minimum);
    const many = `${nodesText(least)} ${autoscales ? 'with those that its autoscaler may add' : 'at least'}`;
    return { candidate, whyNot: `it counts for ${many}, and ${shortOfNodes(limits, left.nodes)}` };
  }
  const taken = take(offer, replicas, left.nodes);
  if (taken.count === 0 && replicas.length > 0) {
    const short = taken.isOutOfNodes ? [shortOfNodes(limits, left.nodes)] : [];
    return { candidate, whyNot: [...taken.misfits, ...short].join('; ') || 'it takes none of it' };
  }
  const price = offer.price(taken.nodes);
  if (typeof price === 'string') return { candidate, taken, whyNot: price };
  const { currency } = limits;
  const show = (amount: Micros) => `${formatMoney(amount > 0n ? amount : 0n)} ${currency}`;
  const known = { candidate, taken, price };
  if (left.clusters <= 0)
    return { ...known, whyNot: `the policy has reached its maximum of ${limits.maximumClusters} clusters` };
  if ((left.byCandidate.get(name) ?? 0) <= 0)
    return { ...known, whyNot: candidate.noMore ?? 'it has reached its own maximum' };
  if (price.most > left.hourly)
    return {
      ...known,
      whyNot: `it costs ${show(price.most)} an hour, and ${show(left.hourly)} of the budget of ${show(limits.hourly)} are left`,
    };
  const forLife = forMinimumLife(price, limits).most;
  if (left.monthly !== undefined && forLife > left.monthly)
    return {
      ...known,
      // Without the remaining amount, which changes every second.
      whyNot: `for its minimum life it costs ${show(forLife)}, more than is left of the budget of the month of ${show(limits.monthly ?? 0n)}`,
    };
  return known;
}

/**
 * Order of candidates: those that start in time (otherwise the quickest), then priority, then those that serve all of the
 * work (with `wholeFirst`), then cost in total or per replica.
 */
const better =
  (wholeFirst: boolean, limits: Limits) =>
  (a: Possible, b: Possible): number => {
    const [lateA, lateB] = [isLate(a.candidate, limits), isLate(b.candidate, limits)];
    if (lateA !== lateB) return lateA ? 1 : -1;
    const [startA, startB] = [a, b].map(({ candidate }) => candidate.startupMs ?? Number.MAX_SAFE_INTEGER) as [
      number,
      number,
    ];
    if (lateA && startA !== startB) return startA - startB;
    if (a.candidate.priority !== b.candidate.priority) return b.candidate.priority - a.candidate.priority;
    const [wholeA, wholeB] = [a.taken.left.length === 0, b.taken.left.length === 0];
    const [costA, costB] = [forMinimumLife(a.price, limits).cost, forMinimumLife(b.price, limits).cost];
    if (wholeFirst && wholeA !== wholeB) return wholeA ? -1 : 1;
    if (wholeA && wholeB && costA !== costB) return costA < costB ? -1 : 1;
    // Cross-multiplied cost per replica, to avoid fractions.
    const [eachA, eachB] = [costA * BigInt(b.taken.count), costB * BigInt(a.taken.count)];
    if (eachA !== eachB) return eachA < eachB ? -1 : 1;
    if (a.taken.count !== b.taken.count) return b.taken.count - a.taken.count;
    if (a.price.hourly !== b.price.hourly) return a.price.hourly < b.price.hourly ? -1 : 1;
    if (startA !== startB) return startA - startB;
    return a.candidate.name < b.candidate.name ? -1 : 1;
  };

function alternative(
  { candidate, price, whyNot, taken }: Judged,
  best: Possible | undefined,
  limits: Limits,
): Alternative {
  const inMinutes = (ms = 0) => `${Math.ceil(ms / 60_000)} minutes`;
  const chosen = best && `${best.candidate.name} was better`;
  const reason =
    whyNot ??
    (best && isLate(candidate, limits)
      ? `${chosen}: this one needs ${inMinutes(candidate.startupMs)} to start, and ${inMinutes(limits.startWithinMs)} are allowed`
      : best && candidate.priority < best.candidate.priority
        ? `${chosen}: it has a higher priority`
        : best && taken && taken.count < best.taken.count
          ? `${chosen}: this one has room for ${taken.count} of the replicas, that one for ${best.taken.count}`
          : best && price && taken && price.hourly <= best.price.hourly && taken.left.length === best.taken.left.length
            ? `${chosen}: as its time is billed, this one costs ${formatMoney(forMinimumLife(price, limits).cost)} ${limits.currency} at least, that one ${formatMoney(forMinimumLife(best.price, limits).cost)}`
            : (chosen ?? ''));
  return { candidate: candidate.name, ...(price && { hourly: price.hourly }), whyNot: reason };
}
