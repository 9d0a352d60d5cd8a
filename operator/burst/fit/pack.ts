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
  Offer,
  OpenedNode,
  Packed,
  PendingPod,
  SpreadConstraint,
  Unplaced,
} from './model.ts';
import { HOSTNAME, nodeOf } from './node.ts';
import { labelOf } from './selectors.ts';
import { ClusterState, type NodeState } from './state.ts';

export interface PackOptions {
  /** What may be bought; none: only what is there is filled. */
  offers?: readonly Offer[];
  /** How many more nodes may count against each key of `countsAgainst`; a key that is not named has no limit. */
  limits?: ReadonlyMap<string, number>;
  /** The DaemonSets of the cluster, by `daemonPod()`: their share is taken on each new node first. */
  daemons?: readonly FitPod[];
  /** Of the nodes that are there only these are filled; absent: all. To look at each of many thousands for each of many calls takes too long. */
  among?: readonly NodeState[];
  /** Hears of each pod that got a node, in order: what was right for it then. */
  onPlaced?: (key: string, node: string) => void;
}

/** A packing pauses after holding a pod against so many nodes, or putting so many on one: a millisecond or two. */
const PAUSE_AFTER = 500;

/** After so many questions nodes that are full now are left out. */
const ASKED_OFTEN = 50;

/** What is said of pods that nobody has looked at, because others took all the work that one decision may be. */
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
 * Does something that may take this share of the work that a decision has left: what comes after has the rest, whatever this takes.
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

/** Alike pods. */
interface Group {
  pod: FitPod;
  keys: string[];
  isLast: boolean;
}

/**
 * Finds a node for each pod: the most important first, then the largest; on nodes that are there, then on new ones, of which the cheapest for
 * what it would hold is opened. Deterministic. The state is left as it would be then, pods and new nodes in it: call it within
 * `state.whatIf()` to only ask.
 */
export const pack = (pending: readonly PendingPod[], state: ClusterState, options: PackOptions = {}): Packed =>
  atOnce(packInSteps(pending, state, options));

/** The same, with pauses. Nobody else may use the state until it has ended. */
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
  readonly #offers: readonly Offer[];
  readonly #limits: Map<string, number>;
  readonly #daemons: readonly FitPod[];
  readonly #onPlaced: (key: string, node: string) => void;
  /** How many of the pods that are added now a node has room for. */
  readonly #most = new Map<NodeTemplate, number>();
  /** The least that any of the pods asks for. */
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

  /** Nodes that may have room: most of a full cluster need not be looked at for each of many different pods. */
  #nodesWithRoom(): readonly NodeState[] {
    this.#asked += 1;
    if (this.#asked % ASKED_OFTEN === 0) this.#withRoom = this.#withRoom.filter(this.#hasRoomForAny);
    return this.#withRoom;
  }

  /** Puts pods on nodes that are there. @returns keys of those that find no room there, and of those that cannot be judged */
  *fill({ pod, keys }: Pick<Group, 'pod' | 'keys'>): Steps<string[]> {
    const judged = new Judged(pod, this.#state);
    if (judged.notJudged.length > 0 || judged.everywhere.length > 0) return [...keys];
    const left = keys.toReversed();
    this.#most.clear();
    yield* this.#fillNodes(judged, left);
    return left.reverse();
  }

  /** Takes so much of the work that a decision may be. @returns whether there is any left */
  #works(questions: number): boolean {
    const { work } = this.#state.facts;
    if (!work) return true;
    work.left -= questions;
    return work.left > 0;
  }

  *add({ pod, keys }: Pick<Group, 'pod' | 'keys'>): Steps<void> {
    // What is counted over all nodes is counted for each group.
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

  /** Puts pods on nodes that are there, opened ones too. */
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
    // A node that said no for what is around it may say yes after the next pod: all are asked again until none takes any.
    for (let before = -1; left.length > 0 && before !== left.length && this.#works(nodes.length); ) {
      before = left.length;
      for (const at of nodes) {
        if (++asked % PAUSE_AFTER === 0) yield;
        // One at a time, so that pods that are spread come to all of the nodes.
        this.#fill(judged, at, left, 1);
        if (left.length === 0) return;
      }
      nodes = nodes.filter((at) => hasRoom(judged.pod, at));
    }
  }

  /** Puts as many on a node as fit. @param isNew as for #fill */
  *#fillWhole(judged: Judged, at: NodeState, left: string[], isNew = false): Steps<void> {
    for (let isFirst = isNew; ; isFirst = false) {
      const before = left.length;
      this.#fill(judged, at, left, PAUSE_AFTER, isFirst);
      if (before - left.length < PAUSE_AFTER) return;
      yield;
    }
  }

  /** Puts as many on a node as fit, at most so many. @param isNew of a node that is opened for the first of them: none is opened for nobody */
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

  #isLimited = ({ countsAgainst }: Offer): boolean => countsAgainst.some((key) => (this.#limits.get(key) ?? 1) <= 0);

  /** The offer whose node costs least for each of the pods that it would hold. */
  #cheapest(judged: Judged, wanted: number): Offer | undefined {
    const offers = this.#byLeast(judged, wanted);
    // Where nothing else counts than the size of a node, so many come there.
    if (this.#isPlain(judged)) return offers[0]?.offer;
    let best: { offer: Offer; each: number } | undefined;
    for (const { offer, least } of offers) {
      // Spread and affinity let fewer on a node, never more.
      if (best && least >= best.each) break;
      const count = this.#onTrial(judged, offer, (at) => this.#countOn(judged, at, wanted));
      const each = offer.price / count;
      if (count > 0 && (!best || each < best.each)) best = { offer, each };
    }
    return best?.offer;
  }

  /** Offers that would do by their size alone, those first of which the least for each pod is to be paid if so many came there. */
  #byLeast(judged: Judged, wanted: number): { offer: Offer; least: number }[] {
    return this.#offers
      .filter((offer) => !this.#isLimited(offer))
      .map((offer) => {
        const most = this.#mostOn(judged.pod, offer);
        return { offer, most, least: offer.price / Math.min(most, wanted) };
      })
      .filter(({ most }) => most > 0)
      .sort((a, b) => a.least - b.least || b.most - a.most || (a.offer.template.id < b.offer.template.id ? -1 : 1));
  }

  /** How many of a pod a node of an offer has room for, beside its DaemonSets; none when it does not accept the pod. */
  #mostOn(pod: FitPod, offer: Offer): number {
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

  /** How many would fit on an empty node; nothing is changed. */
  #countOn(judged: Judged, at: NodeState, wanted: number): number {
    return this.#state.whatIf(() => {
      let count = 0;
      for (; count < wanted && judged.fits(at); count++) this.#place(judged, at.node);
      for (let undone = 0; undone < count; undone++) judged.placed(judged.pod, at.node, -1);
      return count;
    });
  }

  /** Asks something of a new node, and takes it away again. */
  #onTrial<T>(judged: Judged, offer: Offer, ask: (at: NodeState) => T): T {
    return this.#state.whatIf(() => {
      const at = this.#newNode(offer, judged);
      const answer = ask(at);
      for (const daemon of podsOn(at)) judged.placed(daemon, at.node, -1);
      judged.nodeAdded(at.node, -1);
      return answer;
    });
  }

  /** Whether on a new node nothing matters but what the node is: nobody there, and nobody around, can say no. */
  #isPlain(judged: Judged): boolean {
    return judged.isPlain && this.#daemons.every(({ antiAffinity }) => antiAffinity.length === 0);
  }

  readonly #empty = new Map<Offer, NodeState>();
  /** A node of an offer with nothing on it but its DaemonSets, in a cluster of its own: for pods to which nothing else matters. */
  #emptyNode(offer: Offer): NodeState {
    const known = this.#empty.get(offer);
    if (known) return known;
    const { template } = offer;
    const made = addNewNode(new ClusterState(), template, `new:${template.id}`, this.#daemons);
    this.#empty.set(offer, made);
    return made;
  }

  #newNode({ template }: Offer, judged: Judged): NodeState {
    // No name of a real node has a colon.
    const name = `new:${template.id}:${this.packed.opened.length + 1}`;
    const at = addNewNode(this.#state, template, name, this.#daemons);
    judged.nodeAdded(at.node);
    for (const daemon of podsOn(at)) judged.placed(daemon, at.node);
    return at;
  }

  *#open(offer: Offer, judged: Judged, left: string[]): Steps<void> {
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
    // Pods that are spread may fit on older nodes now that there is one more domain.
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

/**
 * Nodes of different domains in turn: pods that must be spread are then placed one after the other, and not one in each pass over the nodes of
 * one zone.
 */
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
