import { atOnce, type Steps } from '../../kube/steps.ts';
import { addNewNode, daemonsOn } from './daemons.ts';
import { nodeMisfit } from './filters/node.ts';
import { hasRoom, roomFor } from './filters/resources.ts';
import { Judged } from './judge.ts';
import type {
  Closed,
  FitNode,
  FitPod,
  Misfit,
  NodeTemplate,
  OpenedNode,
  Packed,
  PendingPod,
  PricedTemplate,
  SpreadConstraint,
  Unplaced,
} from './model.ts';
import { HOSTNAME, nodeOf } from './node.ts';
import { labelOf } from './selectors.ts';
import { ClusterState, type NodeState } from './state.ts';

export interface PackOptions {
  /** Offers to buy; empty: only existing nodes are filled. */
  offers?: readonly PricedTemplate[];
  /** How many more nodes may count against each key of `countsAgainst`; other keys have no limit. */
  limits?: ReadonlyMap<string, number>;
  /** DaemonSets of the cluster, by `daemonPod()`: their share is reserved on each new node. */
  daemons?: readonly FitPod[];
  /** Existing nodes to fill; absent: all. Scanning many thousands in each of many calls takes too long. */
  among?: readonly NodeState[];
  /** Called for each pod that got a node, in order. */
  onPlaced?: (key: string, node: string) => void;
}

/** Checks or placements between pauses of a packing: a millisecond or two. */
const PAUSE_AFTER = 500;

/** After this many scans, full nodes are left out. */
const ASKED_OFTEN = 50;

/** Result for pods that were not looked at, because the work limit of the decision was used up. */
const NOT_LOOKED_AT: Unplaced = {
  misfits: [
    {
      plugin: 'Coppice',
      message: 'not looked at: there are too many different pods to hold each against each node',
      everywhere: false,
    },
  ],
  atLimit: [],
};

/**
 * Runs `ask` with this share of a decision's remaining work limit, so that later steps keep the rest.
 * @param share 0 to 1
 */
export function* withShare<T>({ facts: { work } }: ClusterState, share: number, ask: () => Steps<T>): Steps<T> {
  if (!work) return yield* ask();
  const kept = Math.floor(Math.max(0, work.left) * (1 - share));
  work.left -= kept;
  try {
    return yield* ask();
  } finally {
    work.left = Math.max(0, work.left) + kept;
  }
}

/** Equal pods. */
interface Group {
  pod: FitPod;
  keys: string[];
  isLast: boolean;
}

/**
 * Finds a node for each pod: by priority, then by size; on existing nodes first, then on new ones, opening the cheapest
 * for what it would hold. Deterministic. Leaves the pods and new nodes in the state: call it within `state.whatIf()`
 * for a trial.
 */
export const pack = (pending: readonly PendingPod[], state: ClusterState, options: PackOptions = {}): Packed =>
  atOnce(packInSteps(pending, state, options));

/** Like pack, with pauses. The state must not be used until it has ended. */
export function* packInSteps(
  pending: readonly PendingPod[],
  state: ClusterState,
  options: PackOptions = {},
): Steps<Packed> {
  const groups = inOrder(pending);
  const packing = new Packing(groups, state, options);
  const later: Group[] = [];
  for (const group of groups) {
    yield;
    if (group.isLast) later.push({ ...group, keys: yield* packing.fill(group) });
    else yield* packing.add(group);
  }
  for (const group of later) {
    yield;
    if (group.keys.length > 0) yield* packing.add(group);
  }
  return packing.packed;
}

function inOrder(pending: readonly PendingPod[]): Group[] {
  const byPod = new Map<FitPod, { keys: string[]; isLast: boolean }>();
  for (const { key, pod, isLast = false } of pending) {
    const known = byPod.get(pod);
    if (known) known.keys.push(key);
    else byPod.set(pod, { keys: [key], isLast });
  }
  const groups = [...byPod].map(([pod, { keys, isLast }]) => ({ pod, keys: keys.sort(), isLast }));
  const most = (field: 'cpu' | 'memory') => Math.max(1, ...groups.map(({ pod }) => pod.requests[field]));
  const [cpu, memory] = [most('cpu'), most('memory')];
  const sizeOf = ({ requests }: FitPod) => Math.max(requests.cpu / cpu, requests.memory / memory);
  return groups
    .map((group) => ({ ...group, size: sizeOf(group.pod) }))
    .sort((a, b) => b.pod.priority - a.pod.priority || b.size - a.size || (a.keys[0]! < b.keys[0]! ? -1 : 1));
}

class Packing {
  readonly packed: Packed = { placed: new Map(), opened: [], unplaced: new Map(), notJudged: new Map() };
  readonly #state: ClusterState;
  readonly #offers: readonly PricedTemplate[];
  readonly #limits: Map<string, number>;
  readonly #daemons: readonly FitPod[];
  readonly #onPlaced: (key: string, node: string) => void;
  /** Capacity of a template for the current pod. */
  readonly #most = new Map<NodeTemplate, number>();
  /** Smallest requests of all pods. */
  readonly #least: { cpu: number; memory: number };
  #withRoom: NodeState[];
  #asked = 0;
  readonly #opened = new Map<string, OpenedNode>();

  constructor(
    groups: readonly Group[],
    state: ClusterState,
    { offers = [], limits = new Map(), daemons = [], among = state.nodes(), onPlaced = () => {} }: PackOptions,
  ) {
    this.#state = state;
    this.#offers = [...offers].sort((a, b) => (a.template.id < b.template.id ? -1 : 1));
    this.#limits = new Map(limits);
    this.#daemons = daemons;
    this.#onPlaced = onPlaced;
    const least = (field: 'cpu' | 'memory') => Math.min(...groups.map(({ pod }) => pod.requests[field]));
    this.#least = { cpu: least('cpu'), memory: least('memory') };
    this.#withRoom = among.filter(this.#hasRoomForAny);
  }

  readonly #hasRoomForAny = ({ node: { allocatable }, used, podCount }: NodeState): boolean =>
    podCount < allocatable.pods &&
    (this.#least.cpu === 0 || allocatable.cpu - used.cpu >= this.#least.cpu) &&
    (this.#least.memory === 0 || allocatable.memory - used.memory >= this.#least.memory);

  /** Nodes that may have room: skips full nodes for each of many different pods. */
  #nodesWithRoom(): readonly NodeState[] {
    this.#asked += 1;
    if (this.#asked % ASKED_OFTEN === 0) this.#withRoom = this.#withRoom.filter(this.#hasRoomForAny);
    return this.#withRoom;
  }

  /** Places pods on existing nodes. @returns keys of pods without room, and of pods that cannot be judged */
  *fill({ pod, keys }: Pick<Group, 'pod' | 'keys'>): Steps<string[]> {
    const judged = new Judged(pod, this.#state);
    if (judged.notJudged.length > 0 || judged.everywhere.length > 0) return [...keys];
    const left = keys.toReversed();
    this.#most.clear();
    yield* this.#fillNodes(judged, left);
    return left.reverse();
  }

  /** Uses up part of the decision's work limit. @returns whether any is left */
  #works(questions: number): boolean {
    const { work } = this.#state.facts;
    if (!work) return true;
    work.left -= questions;
    return work.left > 0;
  }

  *add({ pod, keys }: Pick<Group, 'pod' | 'keys'>): Steps<void> {
    // Counts over all nodes are made per group.
    if (!this.#works(this.#withRoom.length)) {
      this.#leave(keys, NOT_LOOKED_AT);
      return;
    }
    const judged = new Judged(pod, this.#state);
    if (judged.notJudged.length > 0) {
      for (const key of keys) this.packed.notJudged.set(key, judged.notJudged);
      return;
    }
    if (judged.everywhere.length > 0) {
      this.#leave(keys, { misfits: judged.everywhere, atLimit: [] });
      return;
    }
    const left = keys.toReversed();
    this.#most.clear();
    yield* this.#fillNodes(judged, left);
    while (left.length > 0) {
      yield;
      const best = this.#cheapest(judged, left.length);
      const isLookedAt = this.#works(this.#offers.length);
      if (!best || !isLookedAt) {
        this.#leave(left, isLookedAt ? this.#whyNot(judged) : NOT_LOOKED_AT);
        return;
      }
      yield* this.#open(best, judged, left);
    }
  }

  #leave(keys: readonly string[], why: Unplaced): void {
    for (const key of keys) this.packed.unplaced.set(key, why);
  }

  /** Places pods on existing and opened nodes. */
  *#fillNodes(judged: Judged, left: string[]): Steps<void> {
    let asked = 0;
    if (!judged.looksAround) {
      for (const at of this.#nodesWithRoom()) {
        if (left.length === 0) return;
        if (++asked % PAUSE_AFTER === 0) yield;
        yield* this.#fillWhole(judged, at, left);
      }
      return;
    }
    const fitting: NodeState[] = [];
    for (const at of this.#nodesWithRoom()) {
      if (++asked % PAUSE_AFTER === 0) yield;
      if (judged.fitsAlone(at)) fitting.push(at);
    }
    let nodes = inTurn(fitting, judged.pod.spread);
    // A node that failed on spread or affinity may accept after the next placement: repeat until no node accepts.
    for (let before = -1; left.length > 0 && before !== left.length && this.#works(nodes.length); ) {
      before = left.length;
      for (const at of nodes) {
        if (++asked % PAUSE_AFTER === 0) yield;
        // One at a time, so that spread pods reach all nodes.
        this.#fill(judged, at, left, 1);
        if (left.length === 0) return;
      }
      nodes = nodes.filter((at) => hasRoom(judged.pod, at));
    }
  }

  /** Places as many pods on a node as fit. @param isNew as for #fill */
  *#fillWhole(judged: Judged, at: NodeState, left: string[], isNew = false): Steps<void> {
    for (let isFirst = isNew; ; isFirst = false) {
      const before = left.length;
      this.#fill(judged, at, left, PAUSE_AFTER, isFirst);
      if (before - left.length < PAUSE_AFTER) return;
      yield;
    }
  }

  /**
   * Places pods on a node, at most `most`. @param isNew a newly opened node gets at least the first pod, even beyond
   * the work limit
   */
  #fill(judged: Judged, at: NodeState, left: string[], most: number, isNew = false): void {
    const works = (count: number) => this.#works(1) || (isNew && count === 0);
    for (let count = 0; count < most && left.length > 0 && works(count) && judged.fits(at); count++) {
      const key = left.pop()!;
      this.#place(judged, at.node);
      this.#onPlaced(key, at.node.name);
      const opened = this.#opened.get(at.node.name);
      if (opened) opened.pods.push(key);
      else this.packed.placed.set(key, at.node.name);
    }
  }

  #place(judged: Judged, node: FitNode): void {
    this.#state.place(judged.pod, node.name);
    judged.placed(judged.pod, node);
  }

  #isLimited = ({ countsAgainst }: PricedTemplate): boolean =>
    countsAgainst.some((key) => (this.#limits.get(key) ?? 1) <= 0);

  /** The offer with the lowest price per pod that its node would hold. */
  #cheapest(judged: Judged, wanted: number): PricedTemplate | undefined {
    const offers = this.#byLeast(judged, wanted);
    // When only the node's size matters, the bound is exact.
    if (this.#isPlain(judged)) return offers[0]?.offer;
    let best: { offer: PricedTemplate; each: number } | undefined;
    for (const { offer, least } of offers) {
      // Spread and affinity can only reduce the number of pods per node.
      if (best && least >= best.each) break;
      const count = this.#onTrial(judged, offer, (at) => this.#countOn(judged, at, wanted));
      const each = offer.price / count;
      if (count > 0 && (!best || each < best.each)) best = { offer, each };
    }
    return best?.offer;
  }

  /** Offers that fit by size, sorted by a lower bound of the price per pod. */
  #byLeast(judged: Judged, wanted: number): { offer: PricedTemplate; least: number }[] {
    return this.#offers
      .filter((offer) => !this.#isLimited(offer))
      .map((offer) => {
        const most = this.#mostOn(judged.pod, offer);
        return { offer, most, least: offer.price / Math.min(most, wanted) };
      })
      .filter(({ most }) => most > 0)
      .sort((a, b) => a.least - b.least || b.most - a.most || (a.offer.template.id < b.offer.template.id ? -1 : 1));
  }

  /** How many of a pod fit on an offer's node beside its DaemonSets; 0 when the node rejects the pod. */
  #mostOn(pod: FitPod, offer: PricedTemplate): number {
    const { template } = offer;
    if (offer.closedTo?.has(pod)) return 0;
    let most = this.#most.get(template);
    if (most === undefined) {
      const node = nodeOf(template, `new:${template.id}`);
      most = nodeMisfit(pod, node) ? 0 : roomFor(pod, node, daemonsOn(node, this.#daemons));
      this.#most.set(template, most);
    }
    return most;
  }

  /** How many would fit on an empty node; changes nothing. */
  #countOn(judged: Judged, at: NodeState, wanted: number): number {
    return this.#state.whatIf(() => {
      let count = 0;
      for (; count < wanted && judged.fits(at); count++) this.#place(judged, at.node);
      for (let undone = 0; undone < count; undone++) judged.placed(judged.pod, at.node, -1);
      return count;
    });
  }

  /** Evaluates `ask` on a trial node, which is removed again. */
  #onTrial<T>(judged: Judged, offer: PricedTemplate, ask: (at: NodeState) => T): T {
    return this.#state.whatIf(() => {
      const at = this.#newNode(offer, judged);
      const answer = ask(at);
      for (const daemon of podsOn(at)) judged.placed(daemon, at.node, -1);
      judged.nodeAdded(at.node, -1);
      return answer;
    });
  }

  /** Whether only the new node's properties matter: no existing pod can reject. */
  #isPlain(judged: Judged): boolean {
    return judged.isPlain && this.#daemons.every(({ antiAffinity }) => antiAffinity.length === 0);
  }

  readonly #empty = new Map<PricedTemplate, NodeState>();
  /** An offer's node with its DaemonSets only, in a cluster of its own: for pods without rules about others. */
  #emptyNode(offer: PricedTemplate): NodeState {
    const known = this.#empty.get(offer);
    if (known) return known;
    const { template } = offer;
    const made = addNewNode(new ClusterState(), template, `new:${template.id}`, this.#daemons);
    this.#empty.set(offer, made);
    return made;
  }

  #newNode({ template }: PricedTemplate, judged: Judged): NodeState {
    // Names of real nodes have no colon.
    const name = `new:${template.id}:${this.packed.opened.length + 1}`;
    const at = addNewNode(this.#state, template, name, this.#daemons);
    judged.nodeAdded(at.node);
    for (const daemon of podsOn(at)) judged.placed(daemon, at.node);
    return at;
  }

  *#open(offer: PricedTemplate, judged: Judged, left: string[]): Steps<void> {
    const at = this.#newNode(offer, judged);
    this.#withRoom.push(at);
    const opened: OpenedNode = { offer, node: at.node, daemons: podsOn(at), pods: [] };
    this.packed.opened.push(opened);
    this.#opened.set(at.node.name, opened);
    for (const key of offer.countsAgainst) {
      const limit = this.#limits.get(key);
      if (limit !== undefined) this.#limits.set(key, limit - 1);
    }
    yield* this.#fillWhole(judged, at, left, true);
    // A new domain may let spread pods fit on older nodes.
    if (judged.looksAround) yield* this.#fillNodes(judged, left);
  }

  #whyNot(judged: Judged): Unplaced {
    const misfits = new Map<string, Misfit>();
    const atLimit = new Set<string>();
    const closed = new Set<Closed>();
    for (const offer of this.#offers) {
      const found = this.#isPlain(judged)
        ? judged.misfits(this.#emptyNode(offer))
        : this.#onTrial(judged, offer, (at) => judged.misfits(at));
      for (const misfit of found) misfits.set(misfit.message, misfit);
      const why = offer.closedTo?.get(judged.pod);
      if (found.length === 0 && why !== undefined) closed.add(why);
      else if (found.length === 0)
        for (const key of offer.countsAgainst) if ((this.#limits.get(key) ?? 1) <= 0) atLimit.add(key);
    }
    return { misfits: [...misfits.values()], atLimit: [...atLimit], ...(closed.size > 0 && { closed: [...closed] }) };
  }
}

const podsOn = ({ pods }: NodeState): FitPod[] =>
  [...pods].flatMap(([pod, count]) => Array.from({ length: count }, () => pod));

/** Interleaves nodes of different domains, so that spread pods are placed in one pass instead of one per pass. */
function inTurn(nodes: readonly NodeState[], spread: readonly SpreadConstraint[]): NodeState[] {
  if (spread.length === 0) return [...nodes];
  const seen = new Map<string, number>();
  return nodes
    .map((at) => {
      const domain = JSON.stringify(
        spread.map(({ topologyKey }) => (topologyKey === HOSTNAME ? '' : labelOf(at.node.labels, topologyKey))),
      );
      const turn = seen.get(domain) ?? 0;
      seen.set(domain, turn + 1);
      return { at, turn };
    })
    .sort((a, b) => a.turn - b.turn)
    .map(({ at }) => at);
}
