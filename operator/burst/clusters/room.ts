import type { Micros } from '../../cost/money.ts';
import type { FitPod, NodeTemplate, PendingPod } from '../fit/model.ts';
import { nodeOf } from '../fit/node.ts';
import { pack } from '../fit/pack.ts';
import { ClusterState, type NodeState } from '../fit/state.ts';
import { isPlaceable, isServed } from './hub-filters.ts';
import type { ClusterOffer, GrowingPool, HubMember, OfferedPool, Supply, WaitingWork } from './model.ts';
import { countedNodes } from './offer.ts';

/** Replicas of work without a place, each once. */
export interface Replicas {
  readonly work: WaitingWork;
  readonly count: number;
}

/** How many replicas that is. */
export const totalOf = (parts: readonly { readonly count: number }[]): number =>
  parts.reduce((sum, { count }) => sum + count, 0);

/** No name of a cluster or of a node has it. */
const BETWEEN = ':';

/** Free room in clusters of a hub, and on the nodes that are on their way to them. Work goes only where the hub would place it. */
export class Room {
  readonly #state = new ClusterState();
  readonly #members = new Map<string, HubMember>();
  readonly #roomy: readonly NodeState[];

  /** @param waiting all work that will ever be asked for: nodes without room for any of it are not looked at for each */
  constructor(supply: readonly Supply[], waiting: readonly WaitingWork[]) {
    for (const { cluster, member, nodes, planned, pending } of supply) {
      this.#members.set(cluster, member);
      for (const { node, pods } of nodes) {
        const name = `${cluster}${BETWEEN}${node.name}`;
        this.#state.addNode({ ...node, name });
        for (const pod of pods) this.#state.place(pod, name);
      }
      for (const { template, count } of planned) addNodes(this.#state, cluster, template, count);
      if (pending) this.#settle(cluster, pending);
    }
    const least = (field: 'cpu' | 'memory') =>
      waiting.reduce((sum, { pod }) => Math.min(sum, pod.requests[field]), Infinity);
    const [cpu, memory] = [least('cpu'), least('memory')];
    // What is not asked for is not looked at: a node that has too little of it would do.
    const hasRoom = (most: number, used: number, wanted: number) => wanted === 0 || most - used >= wanted;
    this.#roomy = this.#state
      .nodes()
      .filter(
        ({ node: { allocatable }, used }) =>
          hasRoom(allocatable.cpu, used.cpu, cpu) && hasRoom(allocatable.memory, used.memory, memory),
      );
  }

  /** Pods that were placed on a cluster and wait for nodes there take these first: what is ordered for them is no room for others. */
  #settle(cluster: string, pods: readonly FitPod[]): void {
    const own = pods.map((pod, index): PendingPod => {
      const { acceptsNode } = pod;
      return {
        key: String(index),
        pod: { ...pod, acceptsNode: (node) => clusterOfNode(node.name) === cluster && acceptsNode(node) },
      };
    });
    pack(own, this.#state);
  }

  /** What of it finds no room, alike replicas together; nothing is taken. What goes to one cluster has no room in a part. */
  without(works: readonly WaitingWork[]): Replicas[] {
    const divided = works.filter(({ inOneCluster }) => !inOneCluster).map(asReplicas);
    const whole = works.filter(({ inOneCluster }) => inOneCluster).map(asReplicas);
    return [...together(this.whatIf(() => this.fill(divided).left)), ...whole];
  }

  /**
   * Takes room for sources of which each goes to one cluster as a whole; the first come first. They ask for the same for each replica, or there
   * is one of them.
   * @returns for each that has room now: on which cluster
   */
  fillOneEach(sources: readonly (readonly WaitingWork[])[]): Map<readonly WaitingWork[], string> {
    const found = new Map<readonly WaitingWork[], string>();
    for (const [cluster, among] of this.#roomyByCluster()) {
      let refused = Infinity;
      for (const source of sources) {
        const wanted = source.map(asReplicas);
        const count = totalOf(wanted);
        if (found.has(source) || count >= refused) continue;
        const fits = this.whatIf(() => this.fill(wanted, among).left.length === 0);
        if (fits) {
          this.fill(wanted, among);
          found.set(source, cluster);
        } else refused = count;
      }
    }
    return found;
  }

  /** Takes the room that there is for it. @returns what found none, and on which clusters the rest is */
  fill(wanted: readonly Replicas[], among = this.#roomy): { left: Replicas[]; on: ReadonlySet<string> } {
    // Most fleets for which clusters are bought are full.
    if (among.length === 0) return { left: [...wanted], on: new Set() };
    const { placed } = pack(podsOf(wanted, this.#mayGo), this.#state, { among });
    return {
      left: without(wanted, placed.keys()),
      on: new Set([...placed.values()].map(clusterOfNode)),
    };
  }

  /**
   * Takes room for sources that ask for the same for each replica: for each as a whole, or not at all; the first come first. Together, as there may be
   * thousands of them and of nodes.
   * @returns for each that has room now: on which clusters; and all clusters that any replica would go to
   */
  fillAlike(works: readonly WaitingWork[]): { whole: Map<WaitingWork, ReadonlySet<string>>; on: ReadonlySet<string> } {
    if (this.#roomy.length === 0) return { whole: new Map(), on: new Set() };
    const total = totalOf(works);
    const pending = podsOf([{ work: works[0]!, count: total }], this.#mayGo);
    const { placed } = pack(pending, this.#state, { among: this.#roomy });
    const nodes = [...placed.values()];
    const on = new Set(nodes.map(clusterOfNode));
    const whole = new Map<WaitingWork, ReadonlySet<string>>();
    let taken = 0;
    for (const work of works) {
      if (taken + work.count > nodes.length) continue;
      whole.set(work, new Set(nodes.slice(taken, taken + work.count).map(clusterOfNode)));
      taken += work.count;
    }
    for (const node of nodes.slice(taken)) this.#state.remove(pending[0]!.pod, node);
    return { whole, on };
  }

  #byCluster: Map<string, NodeState[]> | undefined;
  #roomyByCluster(): ReadonlyMap<string, NodeState[]> {
    if (this.#byCluster) return this.#byCluster;
    const found = new Map<string, NodeState[]>();
    for (const one of this.#roomy) {
      const cluster = clusterOfNode(one.node.name);
      const known = found.get(cluster);
      if (known) known.push(one);
      else found.set(cluster, [one]);
    }
    this.#byCluster = found;
    return found;
  }

  readonly #mayGo = (work: WaitingWork, node: string): boolean => {
    const member = this.#members.get(clusterOfNode(node));
    return member !== undefined && isPlaceable(work, member);
  };

  /** Does something, and takes back all that it has filled. */
  whatIf<T>(work: () => T): T {
    return this.#state.whatIf(work);
  }
}

const asReplicas = (work: WaitingWork): Replicas => ({ work, count: work.count });

const clusterOfNode = (node: string): string => node.slice(0, node.indexOf(BETWEEN));

function addNodes(state: ClusterState, cluster: string, template: NodeTemplate, count: number): void {
  for (let index = 0; index < count; index++)
    state.addNode(nodeOf(template, `${cluster}${BETWEEN}planned${BETWEEN}${template.id}${BETWEEN}${index}`));
}

/** What a new cluster would take. */
export interface Taken {
  readonly left: Replicas[];
  /** Nodes by pool that it needs for that, at least the minimum of each. */
  readonly nodes: ReadonlyMap<string, number>;
  /** How many replicas it takes. */
  readonly count: number;
  /** Of what it does not take: why, in the scheduler's words. */
  readonly misfits: readonly string[];
  /** It would take more with more nodes than the policy may have. */
  readonly isOutOfNodes?: true;
}

/**
 * How much of it one cluster of this offer takes, and with which nodes; of a source that goes to one cluster all or nothing. Deterministic.
 * @param mostNodes that it may count for; absent: any number
 */
export function takenBy(
  offer: ClusterOffer,
  wanted: readonly Replicas[],
  mostNodes: number = Number.POSITIVE_INFINITY,
): Taken {
  const { taken, torn } = untorn(wanted, (tried) => packedBy(offer, tried, mostNodes));
  if (torn.length === 0) return taken;
  const why = 'it goes to one cluster as a whole, and this one takes a part of it at most';
  return { ...taken, left: [...taken.left, ...torn], misfits: [...taken.misfits, why] };
}

/** Has all or nothing taken of each source that goes to one cluster. @returns what was taken of the others, and what was not even tried */
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

/** As a pool no name of one. */
const ALL_POOLS = 'all pools';

function packedBy(offer: ClusterOffer, wanted: readonly Replicas[], mostNodes: number): Taken {
  const cheapest = packedFor(offer, wanted, mostNodes, ({ price }) => price);
  if (!cheapest.isOutOfNodes) return cheapest;
  // Where nodes are short, a few large ones may take what many cheap ones do not.
  const fewest = packedFor(offer, wanted, mostNodes, () => undefined);
  return fewest.count > cheapest.count ? fewest : cheapest;
}

function packedFor(
  offer: ClusterOffer,
  wanted: readonly Replicas[],
  mostNodes: number,
  priceOf: (pool: OfferedPool) => Micros | undefined,
): Taken {
  const { accepted, refused } = byAcceptance(wanted, ({ work }) => isPlaceable(work, offer.member));
  const state = new ClusterState();
  for (const { template, minimum } of offer.pools) addNodes(state, 'new', template, minimum);
  const packed = pack(podsOf(accepted), state, {
    offers: offer.pools.map((pool) => ({
      template: pool.template,
      // Where a price is not known, the fewest nodes are best.
      price: Number(priceOf(pool) ?? 1n),
      countsAgainst: pool.autoscaledTo === undefined ? [pool.name, ALL_POOLS] : [pool.name],
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
  for (const { work } of refused) misfits.add(whyRefused(work, offer.member));
  for (const { misfits: why, atLimit } of packed.unplaced.values()) {
    for (const { message } of why) misfits.add(message);
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

/**
 * How much of it new nodes of this pool take, and how many of them that needs. Deterministic.
 * @param most nodes
 */
export function takenByPool(
  { template, member }: GrowingPool,
  wanted: readonly Replicas[],
  most: number,
): { left: Replicas[]; nodes: number; count: number } {
  // What goes to one cluster and is not held goes where its hub says; then its pods have nodes come there.
  const { accepted, refused } = byAcceptance(
    wanted,
    ({ work }) => (!work.inOneCluster || work.isHeld === true) && isPlaceable(work, member),
  );
  const { taken, torn } = untorn(accepted, (tried) => {
    const { opened } = pack(podsOf(tried), new ClusterState(), {
      offers: [{ template, price: 1, countsAgainst: [template.id] }],
      limits: new Map([[template.id, most]]),
    });
    const placed = opened.flatMap(({ pods }) => pods);
    return { left: without(tried, placed), nodes: opened.length, count: placed.length };
  });
  return { ...taken, left: [...refused, ...torn, ...taken.left] };
}

/** Why the hub would not place it on a new cluster. */
const whyRefused = ({ customKind }: WaitingWork, member: HubMember): string =>
  isServed(customKind, member)
    ? 'the hub would not place it there: its affinity asks for other clusters'
    : `a new cluster of it will not serve ${customKind?.kind}: the hub does not bring it there, and no clusters made like it show that they have it`;

/** Those that may go there, and those that may not. */
function byAcceptance(wanted: readonly Replicas[], mayGo: (one: Replicas) => boolean) {
  const { accepted = [], refused = [] } = Object.groupBy(wanted, (one) => (mayGo(one) ? 'accepted' : 'refused'));
  return { accepted, refused };
}

/** Replicas as pods that are packed; alike ones share a pod. @param mayGo whether the hub would place it on the node of this name; absent: on each */
function podsOf(wanted: readonly Replicas[], mayGo?: (work: WaitingWork, node: string) => boolean): PendingPod[] {
  const known = new Map<string, FitPod>();
  const likeness = likenessOf();
  const podOf = (work: WaitingWork): FitPod => {
    if (!mayGo) return work.pod;
    const alike = likeness(work);
    const { acceptsNode } = work.pod;
    const pod = known.get(alike) ?? {
      ...work.pod,
      acceptsNode: (node) => mayGo(work, node.name) && acceptsNode(node),
    };
    known.set(alike, pod);
    return pod;
  };
  return wanted.flatMap(({ work, count }, index) => {
    const pod = podOf(work);
    return Array.from({ length: count }, (_, replica) => ({ key: `${index}/${replica}`, pod }));
  });
}

/** Alike replicas together, of whichever source. */
export function together(replicas: readonly Replicas[]): Replicas[] {
  const likeness = likenessOf();
  const found = new Map<string, Replicas>();
  for (const one of replicas) {
    const key = likeness(one.work);
    found.set(key, { work: found.get(key)?.work ?? one.work, count: (found.get(key)?.count ?? 0) + one.count });
  }
  return [...found.values()];
}

/** A text for each work that is the same for what asks for the same, and may go to the same clusters. */
export function likenessOf(): (work: WaitingWork) => string {
  const numbers = new Map<unknown, number>();
  const numberOf = (one: unknown) => {
    const number = numbers.get(one) ?? numbers.size;
    numbers.set(one, number);
    return number;
  };
  return ({ pod, accepts, customKind, inOneCluster, isHeld }) =>
    `${numberOf(pod)}/${numberOf(accepts)}/${numberOf(customKind)}${inOneCluster ? '/one' : ''}${isHeld ? '/held' : ''}`;
}

/** What is left of it when the pods of these keys are placed. */
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
