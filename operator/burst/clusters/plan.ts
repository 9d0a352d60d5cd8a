import { formatMoney } from '../../cost/money.ts';
import { type Chosen, whyNone } from './choose.ts';
import { chooseEmptying, emptiedClusters, keepNeeded } from './consolidate.ts';
import { cutOrders, needsOf } from './cut.ts';
import { gpusInVain, withPoolsForGPUs } from './for-gpus.ts';
import { giveBack } from './give-back.ts';
import { whyNotGrown } from './grow.ts';
import type { ClustersView, WaitingWork } from './model.ts';
import { type Served, serveMost } from './most.ts';
import { choosePeaks, countsFor } from './peaks.ts';
import type {
  ClusterOrder,
  ClustersPlan,
  Kept,
  NodesOrder,
  OpenOrder,
  OrderNeed,
  WakeOrder,
  WorkState,
  WorkVerdict,
} from './plan-model.ts';
import { type Raised, raiseGrants } from './raise-grants.ts';
import { restsEnd, withRests } from './rests.ts';
import { Room, totalOf, workLikeness } from './room.ts';
import { byPriority, byService, lookedAt, MOST_REPLICAS, takenByOffers, tooLow } from './sources.ts';
import { whyNotWoken } from './wake.ts';
import { chooseWarm, WORDS } from './warm.ts';
import { askedBy, listText, nodesText, plainText, replicasText, sourceText } from './words.ts';

/**
 * Decision of one policy about work that its hub cannot place: what to buy, what to give back, and a verdict per
 * source. Pure and deterministic. Work that fits on existing or ordered room buys nothing; a source is served as a
 * whole or not at all.
 */
export function planClusters(view: ClustersView, now: number): ClustersPlan {
  return new Planning(view, now).plan();
}

/** Purchases for work. */
interface Bought {
  readonly purchases: readonly ClusterOrder[];
  readonly growths: readonly NodesOrder[];
  readonly openings: readonly (OpenOrder | WakeOrder)[];
}
const NOTHING: Bought = { purchases: [], growths: [], openings: [] };

class Planning {
  readonly #view: ClustersView;
  readonly #now: number;
  readonly #room: Room;
  readonly #isTaken: (work: WaitingWork) => boolean;
  readonly #verdicts: WorkVerdict[] = [];
  readonly #left: WaitingWork[] = [];
  readonly #times: number[] = [];
  /** Clusters that waiting work would go to. */
  readonly #needed = new Set<string>();

  readonly #kept: readonly Kept[];

  readonly #lacking: Raised;

  /** Clusters that further, unserved work would go to. */
  readonly #mayBeNeeded = new Set<string>();
  /** Some waiting work was not looked at. */
  #isPartial = false;

  constructor(before: ClustersView, now: number) {
    const { view, kept } = keepNeeded(withPoolsForGPUs(withRests(before, now)), now);
    this.#times.push(...restsEnd(view, now));
    // Pods that run for a hub already take precedence over work without a place.
    this.#lacking = raiseGrants(view, now);
    this.#view = this.#lacking.view;
    this.#verdicts.push(...this.#lacking.verdicts);
    this.#kept = kept;
    this.#now = now;
    this.#room = new Room(view.supply, view.waiting);
    this.#isTaken = takenByOffers(view);
  }

  plan(): ClustersPlan {
    const { limits } = this.#view;
    const { counted, low } = byPriority(this.#view.waiting, limits);
    // A suspended policy serves nothing and says so.
    const { fresh, served } = limits.isSuspended ? { fresh: counted, served: [] } : byService(counted, this.#now);
    const sources = this.#bounded(fresh);
    const fitting = this.#fitting(sources, this.#needed);
    const waits: WaitingWork[][] = [];
    for (const work of sources) {
      const on = fitting.get(work);
      const since = Math.min(...work.map((one) => one.since));
      const due = since + limits.pendingForMs;
      if (on) this.#sayWhere(work, on);
      else if (limits.isSuspended) this.#say(work, 'Suspended', 'the policy is suspended: nothing is bought');
      else if (due > this.#now) {
        this.#times.push(due);
        const wait = `it has waited since ${plainText(since)}; it is served when it still does at ${plainText(due)}`;
        this.#say(work, 'Stabilising', wait);
      } else waits.push(work);
    }
    const forPeaks = this.#buyForPeaks();
    const bought = this.#buy(waits, forPeaks.purchases.length + forPeaks.openings.length > 0);
    const openings = [...forPeaks.openings, ...bought.openings];
    const { growths } = bought;
    const unfit = this.#tellLast(served, (work) => this.#tellServed(work), this.#mayBeNeeded);
    // Work of lower priority keeps no order.
    const needs = this.#needsOfOrders(unfit && [...sources.filter((work) => !fitting.has(work)).flat(), ...unfit]);
    this.#tellLast(low, (work) => this.#say(work, 'LowPriority', tooLow(work, limits)));
    // A growing cluster is about to get work.
    for (const { cluster } of [...growths, ...this.#lacking.raises]) this.#needed.add(cluster);
    const forWork = [...forPeaks.purchases, ...bought.purchases];
    const hasActed = forWork.length + growths.length + openings.length > 0;
    // Waiting work takes precedence for the budget, unless no offer takes it.
    const mayNeedMoney = waits.some((work) => work.every(this.#isTaken));
    const purchases = hasActed || mayNeedMoney ? forWork : this.#buyWarm();
    const hasBought = hasActed || purchases.length > 0;
    const decided = { needed: this.#needed, hasBought, now: this.#now };
    const mayBeNeeded = (cluster: string) => this.#mayNeed(cluster);
    const { removals, times } = giveBack(this.#view, { ...decided, mayBeNeeded, moved: emptiedClusters(this.#view) });
    const less = chooseEmptying(this.#view, { ...decided, hasRemoved: removals.length > 0 });
    const going = new Set(removals.map(({ name }) => name));
    const fewer = cutOrders(this.#view, needs, going, this.#now);
    this.#times.push(...times, ...less.times, ...fewer.times);
    const coming = this.#times.filter((time) => time > this.#now);
    return {
      orders: [...growths, ...this.#lacking.raises, ...purchases, ...openings, ...fewer.cuts, ...less.emptyings],
      removals,
      kept: this.#kept,
      stays: less.stays,
      verdicts: this.#verdicts,
      left: this.#left,
      needed: this.#needed,
      needs,
      next: coming.length > 0 ? Math.min(...coming) : undefined,
    };
  }

  /** Nodes that orders need; none may be cut while some work is not looked at. @param unfit work without room; undefined: too much */
  #needsOfOrders(unfit: readonly WaitingWork[] | undefined): ReadonlyMap<string, OrderNeed> {
    const isUnknown = this.#view.isPartial || this.#isPartial || this.#view.limits.isSuspended;
    if (!unfit || isUnknown || this.#view.clusters.every(({ order }) => !order)) return new Map();
    return needsOf(this.#view, this.#room.reservedOnOrders(unfit));
  }

  /** Whether work may be waiting for an ordered cluster. Without its profile the cluster's room is unknown. */
  #mayNeed(cluster: string): boolean {
    const { waiting, supply } = this.#view;
    if (this.#view.isPartial) return true;
    if (waiting.length === 0) return false;
    if (this.#isPartial || this.#needed.has(cluster) || this.#mayBeNeeded.has(cluster)) return true;
    const its = supply.find((one) => one.cluster === cluster);
    return !its || its.planned.length + its.nodes.length === 0;
  }

  #say(work: readonly WaitingWork[], state: WorkState, message: string, more: Partial<WorkVerdict> = {}): void {
    this.#verdicts.push({ source: work[0]!.source, state, message, ...more });
    if (state === 'Suspended' || state === 'Refused' || state === 'LowPriority') this.#left.push(...work);
  }

  #later(work: readonly WaitingWork[]): void {
    this.#say(work, 'Later', 'too much work waits to consider all of it at once, and older work goes first');
  }

  /**
   * Verdicts for work that buys nothing. They come last and mark no cluster as needed: otherwise bought room would look
   * taken and be bought twice, or an empty cluster would stay for such work.
   * @returns work without room; undefined: there is too much of it
   */
  #tellLast(
    waiting: readonly WaitingWork[],
    say: (work: readonly WaitingWork[]) => void,
    needed: Set<string> = new Set(),
  ): readonly WaitingWork[] | undefined {
    const { sources, tooLarge, later } = lookedAt(waiting, this.#isTaken, this.#now);
    const fitting = this.#fitting(sources, needed);
    for (const work of [...sources, ...tooLarge, ...later]) {
      const on = fitting.get(work);
      if (on) this.#sayWhere(work, on);
      else say(work);
    }
    return tooLarge.length + later.length > 0 ? undefined : sources.filter((work) => !fitting.has(work)).flat();
  }

  #tellServed(work: readonly WaitingWork[]): void {
    const due = Math.max(...work.map(({ servedUntil = this.#now }) => servedUntil));
    this.#times.push(due);
    const same = 'what was bought for it has work, and its hub says the same of it as before';
    this.#say(work, 'Stabilising', `${same}; it is served when it still does at ${plainText(due)}`);
  }

  /** Sources of this decision, oldest first. */
  #bounded(waiting: readonly WaitingWork[]): readonly WaitingWork[][] {
    const { sources, tooLarge, later } = lookedAt(waiting, this.#isTaken, this.#now);
    this.#isPartial = tooLarge.length + later.length > 0;
    for (const work of tooLarge) {
      const advice = `it has ${totalOf(work)} replicas, more than ${MOST_REPLICAS}: make several workloads of it`;
      this.#say(work, 'Refused', advice);
    }
    for (const work of later) this.#later(work);
    return sources;
  }

  /**
   * Sources that fit as a whole on existing and ordered room, with their clusters; the room is reserved.
   * @param needed receives those clusters
   */
  #fitting(sources: readonly WaitingWork[][], needed: Set<string>): Map<WaitingWork[], ReadonlySet<string>> {
    const found = new Map<WaitingWork[], ReadonlySet<string>>();
    const likeness = workLikeness();
    const alike = new Map<string, WaitingWork[][]>();
    for (const source of sources) {
      const key = source.length === 1 ? likeness(source[0]!) : source[0]!.source;
      alike.set(key, [...(alike.get(key) ?? []), source]);
    }
    for (const group of alike.values()) {
      const [first] = group;
      if (first![0]!.inOneCluster) {
        for (const [source, cluster] of this.#room.fillOneEach(group)) {
          needed.add(cluster);
          found.set(source as WaitingWork[], new Set([cluster]));
        }
        continue;
      }
      if (first!.length > 1) {
        const on = this.#fitsTogether(first!, needed);
        if (on) found.set(first!, on);
        continue;
      }
      const { whole, on } = this.#room.fillAlike(group.map(([work]) => work!));
      // A part of a source that does not fit as a whole would go there, and the rest to a purchase.
      for (const cluster of on) needed.add(cluster);
      for (const source of group) {
        const its = whole.get(source[0]!);
        if (its) found.set(source, its);
      }
    }
    return found;
  }

  /** For a source whose parts differ. */
  #fitsTogether(work: readonly WaitingWork[], needed: Set<string>): ReadonlySet<string> | undefined {
    const wanted = work.map((one) => ({ work: one, count: one.count }));
    const { left, on } = this.#room.whatIf(() => this.#room.fill(wanted));
    for (const cluster of on) needed.add(cluster);
    return left.length > 0 ? undefined : this.#room.fill(wanted).on;
  }

  #sayWhere(work: readonly WaitingWork[], on: ReadonlySet<string>): void {
    const coming = this.#view.supply.some(({ cluster, planned }) => on.has(cluster) && planned.length > 0);
    const where = listText([...on].sort());
    if (coming) this.#say(work, 'RoomOrdered', `room for it is on its way: ${where}`);
    else this.#say(work, 'Fits', `it fits on ${where}, and the hub has not placed it there yet: nothing is bought`);
  }

  /** Clusters for peaks. */
  #buyForPeaks(): Pick<Bought, 'purchases' | 'openings'> {
    const { limits, clusters, peaks = [] } = this.#view;
    for (const { from, until, isMinimum } of peaks) if (!isMinimum) this.#times.push(from, until);
    if (limits.isSuspended) return { purchases: [], openings: [] };
    const { openings, chosen, refused } = choosePeaks(this.#view, this.#now);
    for (const { peak, alternatives } of refused) {
      const reasons = alternatives.map(({ candidate, whyNot }) => `${candidate}: ${whyNot}`).join('; ');
      const message = `${askedBy(peak)}, and has fewer: ${reasons}`;
      this.#verdicts.push({ source: sourceText(peak), state: 'Refused', message, alternatives });
    }
    const purchases = chosen.map(({ peak, cluster }): ClusterOrder => {
      const { candidate, price, alternatives } = cluster;
      const there = clusters.filter((one) => countsFor(peak, one)).length;
      return {
        kind: 'cluster',
        candidate,
        ...sizeOf(cluster),
        price,
        sources: [sourceText(peak)],
        why: `${askedBy(peak)}, and ${there} ${there === 1 ? 'is' : 'are'} there`,
        alternatives,
        ...this.#revisionOf(candidate),
      };
    });
    const opened = openings.map(({ peak, warm: { name, candidate, waking } }): OpenOrder | WakeOrder => {
      const order = { name, candidate, sources: [sourceText(peak)], why: askedBy(peak) };
      return waking ? { kind: 'wake', ...order, waking } : { kind: 'open', ...order };
    });
    return { purchases, openings: opened };
  }

  /** Clusters to buy as warm or sleeping reserve. */
  #buyWarm(): ClusterOrder[] {
    const { limits } = this.#view;
    if (limits.isSuspended) return [];
    const { chosen, refused } = chooseWarm(this.#view, this.#now);
    // One refusal per candidate: two with the same source would replace each other in each cycle.
    for (const [candidate, its] of Map.groupBy(refused, (one) => one.candidate)) {
      const messages = its.map(
        ({ wait, why }) =>
          `fewer of its clusters ${WORDS[wait].many} than it asks for: ${why.map(({ whyNot }) => whyNot).join('; ')}`,
      );
      this.#verdicts.push({ source: `candidate ${candidate}`, state: 'Refused', message: messages.join('; ') });
    }
    return chosen.map(({ candidate, wait, cluster }) => ({
      kind: 'cluster',
      candidate: candidate.name,
      ...sizeOf(cluster),
      price: cluster.price,
      sources: [],
      why: `it ${WORDS[wait].one}, as candidate ${candidate.name} asks for ${candidate[wait]} of`,
      alternatives: [],
      waits: wait,
      revision: candidate.revision,
    }));
  }

  /** Text about nodes of a candidate beyond its minimums. */
  #grownIn({ candidate, nodes }: Chosen) {
    const pools = this.#view.candidates.find(({ name }) => name === candidate)?.offer?.pools ?? [];
    return pools.flatMap(({ name, minimum, template }) => ((nodes.get(name) ?? 0) > minimum ? [template] : []));
  }

  #revisionOf(candidate: string): Pick<ClusterOrder, 'revision'> {
    const revision = this.#view.candidates.find(({ name }) => name === candidate)?.revision;
    return revision === undefined ? {} : { revision };
  }

  /** @param hasBought whether this cycle bought already: the next cycle knows which work that takes */
  #buy(waits: readonly WaitingWork[][], hasBought: boolean): Bought {
    if (waits.length === 0) return NOTHING;
    const { limits, lastOut } = this.#view;
    const last = hasBought ? this.#now : (lastOut ?? Number.NEGATIVE_INFINITY);
    const rested = last + limits.cooldownOutMs;
    if (hasBought || rested > this.#now) return this.#openOnly(waits, hasBought, rested);
    const most = serveMost(this.#view, this.#room, waits, this.#isTaken, this.#now);
    for (const work of most.later) this.#later(work);
    for (const work of most.notEnough)
      this.#say(work, 'Later', 'what the policy may still buy is not enough for it, nor for older work');
    // Unserved work is left to the next policy, which may have the means.
    this.#left.push(...[...most.later, ...most.notEnough].flat());
    for (const alike of most.refused) this.#refuse(alike);
    for (const work of most.hopeless)
      this.#say(work, 'Refused', `nothing is bought for its ${replicasText(work)}: no node that is for sale takes one`);
    return this.#served(most);
  }

  /** During the cool-down only warm clusters are opened: they are paid for already. */
  #openOnly(waits: readonly WaitingWork[][], hasBought: boolean, rested: number): Bought {
    this.#times.push(rested);
    const warm = hasBought ? [] : (this.#view.warm ?? []).filter(({ waking }) => !waking);
    const candidates = this.#view.candidates.map((one) => ({ ...one, problem: 'something was bought a moment ago' }));
    const view = { ...this.#view, candidates, growth: [], warm };
    const most = warm.length > 0 ? serveMost(view, this.#room, waits, this.#isTaken, this.#now) : undefined;
    for (const work of most ? [...most.refused.flat(), ...most.hopeless, ...most.notEnough, ...most.later] : waits)
      this.#say(
        work,
        'CoolingDown',
        `something was bought a moment ago: the next time not before ${plainText(rested)}`,
      );
    return most ? this.#served(most) : NOTHING;
  }

  #served({ served, serving }: Served): Bought {
    const { limits } = this.#view;
    if (served.length === 0) return NOTHING;
    const { clusters, growths, openings, instead = [] } = serving;
    const work = served.flat();
    const sources = [...new Set(work.map(({ source }) => source))];
    const why = `${replicasText(work)} of ${listText(sources)} have no place`;
    const grown = growths.map(({ pool, nodes }) => `${nodesText(nodes)} of pool ${pool.pool} of ${pool.cluster}`);
    for (const one of served) {
      const opened = openings.map(({ warm }) => warm.name);
      const names = listText([...clusters.map(({ candidate }) => candidate), ...grown, ...opened]);
      if (clusters.length > 0) this.#say(one, 'Bought', `bought for it: ${names}`);
      else if (openings.some(({ warm }) => warm.waking)) this.#say(one, 'Waking', `woken for it: ${names}`);
      else if (growths.length === 0) this.#say(one, 'Opened', `opened to work for it: ${names}`);
      else this.#say(one, 'Growing', `added for it: ${names}`);
    }
    return {
      purchases: clusters.map((cluster) => ({
        kind: 'cluster',
        candidate: cluster.candidate,
        ...sizeOf(cluster),
        price: cluster.price,
        sources,
        why: `${why}; ${cluster.candidate} takes ${cluster.count} of them for ${formatMoney(cluster.price.hourly)} ${limits.currency} an hour${gpusInVain(work, this.#grownIn(cluster))}${grantedText(cluster)}`,
        alternatives: cluster.alternatives,
        ...this.#revisionOf(cluster.candidate),
      })),
      openings: openings.map(({ warm: { name, candidate, waking, entry }, count }): OpenOrder | WakeOrder => {
        const takes = `${why}; ${name}, which ${waking ? 'sleeps' : 'waited warm'}, takes ${count} of them`;
        const order = { name, candidate, sources, why: takes };
        return waking
          ? { kind: 'wake', ...order, waking, alternatives: instead, ...(entry !== undefined && { entry }) }
          : { kind: 'open', ...order };
      }),
      growths: growths.map(({ entry, pool, nodes, more, count }) => ({
        kind: 'nodes',
        entry,
        cluster: pool.cluster,
        pool: pool.pool,
        nodes,
        each: pool.hourly,
        ...(entry === undefined && more > 0 && { granted: more }),
        sources,
        why: `${why}; ${nodesText(nodes)} more of pool ${pool.pool} ${nodes === 1 ? 'takes' : 'take'} ${count} of them${gpusInVain(work, [pool.template])}${entry === undefined && more > 0 ? `; granted for it: ${nodesText(more)} more` : ''}`,
      })),
    };
  }

  /** @param alike similar sources, of which the first was tried */
  #refuse(alike: readonly (readonly WaitingWork[])[]): void {
    const wanted = this.#room.without(alike[0]!);
    const [view, now] = [this.#view, this.#now];
    const alternatives = [
      ...whyNotGrown(view, wanted, now),
      ...whyNotWoken(view, wanted, now),
      ...whyNone(view, wanted, now),
    ];
    const reasons = alternatives.map(({ candidate, whyNot }) => `${candidate}: ${whyNot}`).join('; ');
    for (const work of alike)
      this.#say(work, 'Refused', `nothing is bought for its ${replicasText(work)}: ${reasons}`, { alternatives });
  }
}

/** Grants of a bought cluster, as the end of a sentence; empty: none. */
const grantedText = ({ granted }: Chosen): string =>
  granted ? `; granted to it: ${nodesText(Object.values(granted).reduce((sum, { nodes }) => sum + nodes, 0))}` : '';

function sizeOf({ nodes, mostNodes, granted }: Chosen): Pick<ClusterOrder, 'nodes' | 'mostNodes' | 'granted'> {
  const asked = [...nodes.values()].reduce((sum, count) => sum + count, 0);
  return { nodes: Object.fromEntries(nodes), ...(mostNodes > asked && { mostNodes }), ...(granted && { granted }) };
}
