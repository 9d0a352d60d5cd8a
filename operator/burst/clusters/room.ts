import type { Micros } from '../../cost/money.ts';
import { nodeMisfit } from '../fit/filters/node.ts';
import { freeFor, roomFor } from '../fit/filters/resources.ts';
import type { FitPod, NodeTemplate, PendingPod } from '../fit/model.ts';
import { HOSTNAME, nodeOf } from '../fit/node.ts';
import { pack } from '../fit/pack.ts';
import { ClusterState, type NodeState } from '../fit/state.ts';
import { isPlaceable, isServed } from './hub-filters.ts';
import type { ClusterOffer, GrowingPool, HubMember, OfferedPool, Supply, WaitingWork } from './model.ts';
import { countedNodes } from './offer.ts';

/** Unplaced replicas of work. */
export interface Replicas {
  readonly work: WaitingWork;
  readonly count: number;
}

/** Sum of counts. */
export const totalOf = (parts: readonly { readonly count: number }[]): number =>
  parts.reduce((sum, { count }) => sum + count, 0);

/** A cluster with room. Judged alone: affinity holds within one cluster, and zone names may repeat across clusters. */
interface Site {
  readonly cluster: string;
  readonly member: HubMember;
  readonly state: ClusterState;
  /** Nodes that may have room for some of the work. */
  readonly roomy: readonly NodeState[];
}

/** Free room in a hub's clusters, including ordered nodes. Work goes only where the hub would place it. */
export class Room {
  readonly #sites: readonly Site[];

  /** @param waiting all work that will be asked for: nodes without room for any of it are skipped */
  constructor(supply: readonly Supply[], waiting: readonly WaitingWork[]) {
    const hasRoom = roomForAny(waiting);
    this.#sites = supply
      .map((one) => {
        const state = stateOf(one);
        return { cluster: one.cluster, member: one.member, state, roomy: state.nodes().filter(hasRoom) };
      })
      // Most fleets for which clusters are bought are full.
      .filter(({ roomy }) => roomy.length > 0)
      .sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  }

  /** Work without room, similar replicas merged; reserves nothing. A source for one cluster needs room as a whole. */
  without(works: readonly WaitingWork[]): Replicas[] {
    const divided = works.filter(({ inOneCluster }) => !inOneCluster).map(asReplicas);
    const whole = works.filter(({ inOneCluster }) => inOneCluster).map(asReplicas);
    return [...together(this.whatIf(() => this.fill(divided).left)), ...whole];
  }

  /**
   * Reserves room for sources that each go to one cluster as a whole, in order. Replicas of all sources are equal, or
   * there is one source.
   * @returns the cluster of each source with room
   */
  fillOneEach(sources: readonly (readonly WaitingWork[])[]): Map<readonly WaitingWork[], string> {
    const found = new Map<readonly WaitingWork[], string>();
    for (const site of this.#sites) {
      let refused = Infinity;
      for (const source of sources) {
        const wanted = source.map(asReplicas);
        const count = totalOf(wanted);
        if (found.has(source) || count >= refused) continue;
        const fits = site.state.whatIf(() => packedOn(site, wanted).size === count);
        if (fits) {
          packedOn(site, wanted);
          found.set(source, site.cluster);
        } else refused = count;
      }
    }
    return found;
  }

  /** Reserves room. @returns replicas without room, and the clusters of the others */
  fill(wanted: readonly Replicas[]): { left: Replicas[]; on: ReadonlySet<string> } {
    const on = new Set<string>();
    let left = [...wanted];
    for (const site of this.#sites) {
      if (left.length === 0) break;
      const placed = packedOn(site, left);
      if (placed.size === 0) continue;
      left = without(left, placed.keys());
      on.add(site.cluster);
    }
    return { left, on };
  }

  /** Like fill, but reserves nothing for a part of a source that goes to one cluster. */
  fillWhole(wanted: readonly Replicas[]): { left: Replicas[]; on: ReadonlySet<string> } {
    const on = new Set<string>();
    const left: Replicas[] = [];
    const { whole = [], divided = [] } = Object.groupBy(wanted, ({ work }) =>
      work.inOneCluster ? 'whole' : 'divided',
    );
    for (const parts of Map.groupBy(whole, ({ work }) => work.source).values()) {
      const source = parts.map(({ work, count }) => ({ ...work, count }));
      const cluster = this.fillOneEach([source]).get(source);
      if (cluster === undefined) left.push(...parts);
      else on.add(cluster);
    }
    const rest = this.fill(divided);
    return { left: [...left, ...rest.left], on: new Set([...on, ...rest.on]) };
  }

  /**
   * Reserves room for equal sources, each as a whole or not at all, in order. Handles them together, because there may
   * be thousands of sources and nodes.
   * @returns clusters of each source with room; and all clusters that any replica would go to
   */
  fillAlike(works: readonly WaitingWork[]): { whole: Map<WaitingWork, ReadonlySet<string>>; on: ReadonlySet<string> } {
    const work = works[0]!;
    const total = totalOf(works);
    const placed: { site: Site; node: string }[] = [];
    for (const site of this.#sites) {
      if (placed.length === total) break;
      for (const node of packedOn(site, [{ work, count: total - placed.length }]).values()) placed.push({ site, node });
    }
    const clustersOf = (some: typeof placed) => new Set(some.map(({ site }) => site.cluster));
    const whole = new Map<WaitingWork, ReadonlySet<string>>();
    let taken = 0;
    for (const one of works) {
      if (taken + one.count > placed.length) continue;
      whole.set(one, clustersOf(placed.slice(taken, taken + one.count)));
      taken += one.count;
    }
    for (const { site, node } of placed.slice(taken)) site.state.remove(work.pod, node);
    return { whole, on: clustersOf(placed) };
  }

  /**
   * Pods of reservations on ordered nodes, by cluster; clusters without any are absent. @param more further work that
   * would go there
   */
  reservedOnOrders(more: readonly WaitingWork[]): Map<string, readonly FitPod[]> {
    return this.whatIf(() => {
      this.fillWhole(more.map(asReplicas));
      return new Map(
        this.#sites.flatMap(({ cluster, state }): [string, readonly FitPod[]][] => {
          const pods = state.nodes().flatMap((at) => (at.node.name.startsWith(PLANNED) ? podsOn(at) : []));
          return pods.length > 0 ? [[cluster, pods]] : [];
        }),
      );
    });
  }

  /** Runs `work` and reverts its reservations. */
  whatIf<T>(work: () => T): T {
    return this.#sites.reduce(
      (inner, { state }) =>
        () =>
          state.whatIf(inner),
      work,
    )();
  }
}

/** Beginning of the names of ordered nodes: names of existing nodes have no colon. */
const PLANNED = 'planned:';

const podsOn = ({ pods }: NodeState): FitPod[] =>
  [...pods].flatMap(([pod, count]) => Array.from({ length: count }, () => pod));

/** Existing and ordered nodes of a cluster, with running pods and pods that wait for them. */
export function stateOf({ nodes, planned, pending }: Supply): ClusterState {
  const state = new ClusterState();
  for (const { node, pods } of nodes) {
    state.addNode(node);
    for (const pod of pods) state.place(pod, node.name);
  }
  for (const { template, count } of planned) addNodesOf(state, PLANNED, template, count);
  // Pending pods of the cluster take ordered nodes first.
  if (pending)
    pack(
      pending.map((pod, index) => ({ key: String(index), pod })),
      state,
    );
  return state;
}

/** Returns a check whether a node may have room for any of the work. */
function roomForAny(waiting: readonly WaitingWork[]): (at: NodeState) => boolean {
  const least = (field: 'cpu' | 'memory') =>
    waiting.reduce((sum, { pod }) => Math.min(sum, pod.requests[field]), Infinity);
  const [cpu, memory] = [least('cpu'), least('memory')];
  // Ignore resources that are not requested: a node may be overcommitted on them.
  const hasRoom = (most: number, used: number, wanted: number) => wanted === 0 || most - used >= wanted;
  return ({ node: { allocatable }, used }) =>
    hasRoom(allocatable.cpu, used.cpu, cpu) && hasRoom(allocatable.memory, used.memory, memory);
}

/** Places as many replicas as fit on a cluster. @returns node by key */
function packedOn({ member, state, roomy }: Site, wanted: readonly Replicas[]): ReadonlyMap<string, string> {
  // Try no more replicas than the sizes of the nodes allow: there may be thousands of replicas and hundreds of clusters
  // with little room each.
  const most = new Map<FitPod, number>();
  const total = totalOf(wanted);
  const pods = podsOf(wanted, (work, count) => {
    const known = most.get(work.pod) ?? freeOn(roomy, work.pod, total);
    const tried = known > 0 && isPlaceable(work, member) ? Math.min(count, known) : 0;
    most.set(work.pod, known - tried);
    return tried;
  });
  return pods.length > 0 ? pack(pods, state, { among: roomy }).placed : NOWHERE;
}

const NOWHERE: ReadonlyMap<string, string> = new Map();

/** How many of a pod fit on nodes by size alone, up to `most`. */
function freeOn(nodes: readonly NodeState[], pod: FitPod, most: number): number {
  let free = 0;
  for (const at of nodes) {
    free += freeFor(pod, at);
    if (free >= most) return most;
  }
  return free;
}

const asReplicas = (work: WaitingWork): Replicas => ({ work, count: work.count });

/** Adds open nodes of a template. @param prefix of their names */
export function addNodesOf(state: ClusterState, prefix: string, template: NodeTemplate, count: number): void {
  for (let index = 0; index < count; index++) state.addNode(nodeOf(template, `${prefix}${template.id}:${index}`));
}

/** What a new cluster would take. */
export interface TakenRoom {
  readonly left: Replicas[];
  /** Required nodes by pool, at least the minimums. */
  readonly nodes: ReadonlyMap<string, number>;
  /** Number of replicas that it takes. */
  readonly count: number;
  /** Why the rest does not fit, in the scheduler's words. */
  readonly misfits: readonly string[];
  /** It would take more with more nodes than the policy may have. */
  readonly isOutOfNodes?: true;
}

/**
 * How many replicas one cluster of this offer takes, and with which nodes; a source for one cluster is taken as a whole
 * or not at all. Deterministic.
 * @param mostNodes most nodes that may count; absent: no limit
 */
export function takenBy(
  offer: ClusterOffer,
  wanted: readonly Replicas[],
  mostNodes: number = Number.POSITIVE_INFINITY,
): TakenRoom {
  const { taken, torn } = untorn(wanted, (tried) => packedBy(offer, tried, mostNodes));
  if (torn.length === 0) return taken;
  const why = 'it goes to one cluster as a whole, and this one takes a part of it at most';
  return { ...taken, left: [...taken.left, ...torn], misfits: [...taken.misfits, why] };
}

/**
 * Takes sources for one cluster as a whole or not at all. @returns what was taken of the others, and what was not tried
 */
function untorn<T extends { readonly left: readonly Replicas[] }>(
  wanted: readonly Replicas[],
  take: (tried: readonly Replicas[]) => T,
): { taken: T; torn: Replicas[] } {
  const sources = new Set<string>();
  for (;;) {
    const taken = take(wanted.filter(({ work }) => !sources.has(work.source)));
    const { size } = sources;
    for (const { work } of taken.left) if (work.inOneCluster) sources.add(work.source);
    if (sources.size === size) return { taken, torn: wanted.filter(({ work }) => sources.has(work.source)) };
  }
}

/** Not a valid pool name, so no pool has it. */
const ALL_POOLS = 'all pools';

function packedBy(offer: ClusterOffer, wanted: readonly Replicas[], mostNodes: number): TakenRoom {
  const cheapest = packedFor(offer, wanted, mostNodes, ({ price }) => price);
  if (!cheapest.isOutOfNodes) return cheapest;
  // When the node limit binds, few large nodes may take more than many cheap ones.
  const fewest = packedFor(offer, wanted, mostNodes, () => undefined);
  return fewest.count > cheapest.count ? fewest : cheapest;
}

function packedFor(
  offer: ClusterOffer,
  wanted: readonly Replicas[],
  mostNodes: number,
  priceOf: (pool: OfferedPool) => Micros | undefined,
): TakenRoom {
  const { accepted, refused } = byAcceptance(
    wanted,
    ({ work }) => isPlaceable(work, offer.member) && offer.keepsFrom?.(work) === undefined,
  );
  const state = new ClusterState();
  for (const { template, minimum } of offer.pools) addNodesOf(state, PLANNED, template, minimum);
  const packed = pack(podsOf(accepted), state, {
    offers: offer.pools
      .filter(({ most }) => most > 0)
      .map((pool) => ({
        template: pool.template,
        // Without prices, prefer fewer nodes.
        price: Number(priceOf(pool) ?? 1n),
        countsAgainst: pool.autoscaledTo === undefined ? [pool.name, ALL_POOLS] : [pool.name],
        ...(pool.keepsFrom && { closedTo: closedTo(pool.keepsFrom, accepted) }),
      })),
    limits: new Map([
      ...offer.pools.map(({ name, minimum, most }) => [name, most - minimum] as const),
      [ALL_POOLS, mostNodes - countedNodes(offer, new Map())] as const,
    ]),
  });
  const nodes = new Map(offer.pools.map(({ name, minimum }) => [name, minimum]));
  for (const { offer: opened } of packed.opened)
    for (const pool of opened.countsAgainst) if (pool !== ALL_POOLS) nodes.set(pool, (nodes.get(pool) ?? 0) + 1);
  const placed = [...packed.placed.keys(), ...packed.opened.flatMap(({ pods }) => pods)];
  const misfits = new Set<string>();
  for (const { work } of refused) misfits.add(offer.keepsFrom?.(work) ?? whyRefused(work, offer.member));
  for (const { misfits: why, atLimit, closed = [] } of packed.unplaced.values()) {
    for (const { message } of why) misfits.add(message);
    for (const { why: message } of closed) misfits.add(message);
    for (const pool of atLimit) if (pool !== ALL_POOLS) misfits.add(`pool ${pool} is at its maximum`);
  }
  const isOutOfNodes = [...packed.unplaced.values()].some(({ atLimit }) => atLimit.includes(ALL_POOLS));
  for (const reasons of packed.notJudged.values()) for (const reason of reasons) misfits.add(`not judged: ${reason}`);
  return {
    left: [...refused, ...without(accepted, placed)],
    nodes,
    count: placed.length,
    misfits: [...misfits],
    ...(isOutOfNodes && { isOutOfNodes }),
  };
}

/** Pods that a pool has no nodes for, and why. */
const closedTo = (keepsFrom: NonNullable<OfferedPool['keepsFrom']>, wanted: readonly Replicas[]) =>
  new Map(
    wanted.flatMap(({ work }) => {
      const why = keepsFrom(work);
      return why === undefined ? [] : [[work.pod, { reason: 'ForGPUs', why }] as const];
    }),
  );

/**
 * How many replicas new nodes of this pool take, and the number of nodes. Deterministic.
 * @param most nodes
 */
export function takenByPool(
  { template, member, keepsFrom }: GrowingPool,
  wanted: readonly Replicas[],
  most: number,
): { left: Replicas[]; nodes: number; count: number } {
  // Work for one cluster that is not held goes where its hub says; its pods then wait there for nodes.
  const mayGo = (work: WaitingWork) =>
    keepsFrom?.(work) === undefined &&
    (!work.inOneCluster || work.isHeld === true) &&
    !looksBeyondItsNode(work.pod) &&
    isPlaceable(work, member);
  const node = nodeOf(template, `new:${template.id}`);
  const onNode = (work: WaitingWork) => (mayGo(work) && !nodeMisfit(work.pod, node) ? roomFor(work.pod, node, []) : 0);
  const { tried, rest } = forNodes(wanted, most, onNode);
  const { taken, torn } = untorn(tried, (some) => {
    const { opened } = pack(podsOf(some), new ClusterState(), {
      offers: [{ template, price: 1, countsAgainst: [template.id] }],
      limits: new Map([[template.id, most]]),
    });
    const placed = opened.flatMap(({ pods }) => pods);
    return { left: without(some, placed), nodes: opened.length, count: placed.length };
  });
  return { ...taken, left: [...torn, ...taken.left, ...rest] };
}

/** Replicas tried on nodes, as a multiple of their capacity: small ones fill the gaps of large ones. */
const TRIED_TIMES = 2;

/**
 * Replicas to try on a pool's nodes, in order, up to their capacity: trying thousands on each of hundreds of pools
 * would take minutes. A source for one cluster is tried as a whole.
 * @param onNode how many fit on an empty node
 */
function forNodes(wanted: readonly Replicas[], nodes: number, onNode: (work: WaitingWork) => number) {
  const tried: Replicas[] = [];
  const rest: Replicas[] = [];
  const barred = new Set(wanted.flatMap(({ work }) => (work.inOneCluster && onNode(work) === 0 ? [work.source] : [])));
  const begun = new Set<string>();
  let left = TRIED_TIMES * nodes;
  for (const [index, one] of wanted.entries()) {
    if (left <= 0 && begun.size === 0) return { tried, rest: [...rest, ...wanted.slice(index)] };
    const { work, count } = one;
    const isAsked = (left > 0 || begun.has(work.source)) && !barred.has(work.source);
    const each = isAsked ? onNode(work) : 0;
    if (each === 0) {
      rest.push(one);
      continue;
    }
    if (work.inOneCluster) begun.add(work.source);
    const most = work.inOneCluster ? count : Math.min(count, Math.ceil(left * each));
    tried.push({ work, count: most });
    if (most < count) rest.push({ work, count: count - most });
    left = Math.max(0, left - most / each);
  }
  return { tried, rest };
}

/** Why the hub would not place the work on a new cluster. */
const whyRefused = ({ customKind }: WaitingWork, member: HubMember): string =>
  isServed(customKind, member)
    ? 'the hub would not place it there: its affinity asks for other clusters'
    : `a new cluster of it will not serve ${customKind?.kind}: the hub does not bring it there, and no clusters made like it show that they have it`;

/** Whether the pod has rules about other nodes: growing pools are judged without the cluster's existing pods. */
const looksBeyondItsNode = ({ affinity, antiAffinity, spread }: FitPod): boolean =>
  affinity.length + spread.length > 0 || antiAffinity.some(({ topologyKey }) => topologyKey !== HOSTNAME);

/** Splits replicas into acceptable ones and others. */
function byAcceptance(wanted: readonly Replicas[], mayGo: (one: Replicas) => boolean) {
  const { accepted = [], refused = [] } = Object.groupBy(wanted, (one) => (mayGo(one) ? 'accepted' : 'refused'));
  return { accepted, refused };
}

/** Replicas as pods for packing. @param most how many of them, in order; absent: all */
const podsOf = (wanted: readonly Replicas[], most = (_: WaitingWork, count: number) => count): PendingPod[] =>
  wanted.flatMap(({ work, count }, index) =>
    Array.from({ length: most(work, count) }, (_, replica) => ({ key: `${index}/${replica}`, pod: work.pod })),
  );

/** Merges equal replicas across sources. */
function together(replicas: readonly Replicas[]): Replicas[] {
  const likeness = workLikeness();
  const found = new Map<string, Replicas>();
  for (const one of replicas) {
    const key = likeness(one.work);
    found.set(key, { work: found.get(key)?.work ?? one.work, count: (found.get(key)?.count ?? 0) + one.count });
  }
  return [...found.values()];
}

/** Returns a function whose text is equal for work with equal requests and equal cluster selection. */
export function workLikeness(): (work: WaitingWork) => string {
  const numbers = new Map<unknown, number>();
  const numberOf = (one: unknown) => {
    const number = numbers.get(one) ?? numbers.size;
    numbers.set(one, number);
    return number;
  };
  return ({ pod, accepts, customKind, inOneCluster, isHeld }) =>
    `${numberOf(pod)}/${numberOf(accepts)}/${numberOf(customKind)}${inOneCluster ? '/one' : ''}${isHeld ? '/held' : ''}`;
}

/** What is left after the pods of these keys were placed. */
function without(wanted: readonly Replicas[], keys: Iterable<string>): Replicas[] {
  const placed = new Map<number, number>();
  for (const key of keys) {
    const index = Number(key.slice(0, key.indexOf('/')));
    placed.set(index, (placed.get(index) ?? 0) + 1);
  }
  return wanted.flatMap(({ work, count }, index) => {
    const left = count - (placed.get(index) ?? 0);
    return left > 0 ? [{ work, count: left }] : [];
  });
}
