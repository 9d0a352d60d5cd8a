import type { Steps } from '../../kube/steps.ts';
import type { FitNode, FitPod, Labels } from './model.ts';
import { PodIndex } from './pod-index.ts';
import { labelOf } from './selectors.ts';
import type { VolumeFacts } from './volume-facts.ts';

/** A node with its pods. Read only: `ClusterState` changes it. */
export interface NodeState {
  readonly node: FitNode;
  /** Equal pods with their count. */
  readonly pods: ReadonlyMap<FitPod, number>;
  readonly podCount: number;
  /** Sum of the pods' requests. */
  readonly used: { cpu: number; memory: number; storage: number; others: Map<string, number> };
}

interface OwnNodeState extends NodeState {
  pods: Map<FitPod, number>;
  podCount: number;
}

/** Facts about a cluster besides nodes and pods. */
export interface ClusterFacts {
  /** Labels of namespaces by name; undefined: not watched. */
  namespaces?: ReadonlyMap<string, Labels> | undefined;
  /** undefined: not watched, and pods with claims are not judged. */
  volumes?: VolumeFacts | undefined;
  /**
   * Remaining checks of a pod against a node for one decision, shared by its packings; decreases. undefined: unlimited.
   * Tenants choose the number of different pods, each of which is checked against each node.
   */
  work?: { left: number } | undefined;
}

const NOWHERE: ReadonlyMap<NodeState, number> = new Map();

/**
 * Nodes of a cluster with their pods, to find what would fit. Mutable; `whatIf()` reverts changes. Excludes finished
 * pods and pods without a node.
 */
export class ClusterState {
  readonly facts: ClusterFacts;
  readonly #nodes = new Map<string, OwnNodeState>();
  readonly #where = new Map<FitPod, Map<NodeState, number>>();
  readonly #index = new PodIndex(() => this.#where.keys());
  readonly #claims = new Map<string, number>();
  readonly #domains = new Map<string, { keys: readonly string[]; counts: readonly Map<string, number>[] }>();
  readonly #sorted: NodeState[] = [];
  #log: (() => void)[] | undefined;

  constructor(facts: ClusterFacts = {}) {
    this.facts = facts;
  }

  /** All nodes by name. A live view. */
  nodes(): readonly NodeState[] {
    return this.#sorted;
  }

  node(name: string): NodeState | undefined {
    return this.#nodes.get(name);
  }

  /** Nodes with a kind of pod, and their counts. */
  placesOf(pod: FitPod): ReadonlyMap<NodeState, number> {
    return this.#where.get(pod) ?? NOWHERE;
  }

  /** Index of pods by namespace and label. */
  get index(): Pick<PodIndex, 'in' | 'namespaces' | 'hasUnfriendly' | 'unfriendlyTo'> {
    return this.#index;
  }

  /** For each label key, node counts by value, over nodes that have all keys. A live view. */
  domains(keys: readonly string[]): readonly ReadonlyMap<string, number>[] {
    const name = JSON.stringify(keys);
    let found = this.#domains.get(name);
    if (!found) {
      found = { keys, counts: keys.map(() => new Map<string, number>()) };
      for (const { node } of this.#sorted) addDomains(found, node, 1);
      this.#domains.set(name, found);
    }
    return found.counts;
  }

  /** Number of running pods that use a claim. */
  usersOf(namespace: string, claim: string): number {
    return this.#claims.get(`${namespace}/${claim}`) ?? 0;
  }

  addNode(node: FitNode): NodeState {
    if (this.#nodes.has(node.name)) throw new Error(`node ${node.name} is there already`);
    const added = {
      node,
      pods: new Map<FitPod, number>(),
      podCount: 0,
      used: { cpu: 0, memory: 0, storage: 0, others: new Map<string, number>() },
    };
    this.#nodes.set(node.name, added);
    this.#sorted.splice(this.#indexOf(node.name), 0, added);
    for (const domains of this.#domains.values()) addDomains(domains, node, 1);
    this.#log?.push(() => this.removeNode(node.name));
    return added;
  }

  /** Removes a node. Returns its pods with counts. */
  removeNode(name: string): ReadonlyMap<FitPod, number> {
    const removed = this.#nodes.get(name);
    if (!removed) throw new Error(`there is no node ${name}`);
    const pods = new Map(removed.pods);
    for (const [pod, count] of pods) this.#change(removed, pod, -count);
    this.#nodes.delete(name);
    this.#sorted.splice(this.#indexOf(name), 1);
    for (const domains of this.#domains.values()) addDomains(domains, removed.node, -1);
    this.#log?.push(() => {
      this.addNode(removed.node);
      for (const [pod, count] of pods) this.place(pod, name, count);
    });
    return pods;
  }

  /** Places pods on a node without checking the fit. */
  place(pod: FitPod, name: string, count = 1): void {
    this.#change(this.#known(name), pod, count);
    this.#log?.push(() => this.#change(this.#known(name), pod, -count));
  }

  /** Removes pods from a node. */
  remove(pod: FitPod, name: string, count = 1): void {
    const node = this.#known(name);
    if ((node.pods.get(pod) ?? 0) < count) throw new Error(`there are not ${count} such pods on node ${name}`);
    this.#change(node, pod, -count);
    this.#log?.push(() => this.#change(this.#known(name), pod, count));
  }

  /** Runs `work` and reverts its changes, also after an error. May be nested. */
  whatIf<T>(work: () => T): T {
    const takeBack = this.#note();
    try {
      return work();
    } finally {
      takeBack();
    }
  }

  /** Like whatIf, for work that pauses. The state must not be used until it has ended. */
  *whatIfInSteps<T>(work: () => Steps<T>): Steps<T> {
    const takeBack = this.#note();
    try {
      return yield* work();
    } finally {
      takeBack();
    }
  }

  /** Logs all changes from now on. @returns a function that reverts them and stops */
  #note(): () => void {
    const outer = this.#log;
    const log: (() => void)[] = [];
    this.#log = log;
    return () => {
      this.#log = undefined;
      for (const undo of log.reverse()) undo();
      this.#log = outer;
    };
  }

  /** Binary search: sorting 10,000 nodes again for each trial node takes too long. */
  #indexOf(name: string): number {
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#sorted[middle]!.node.name < name) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #known(name: string): OwnNodeState {
    const found = this.#nodes.get(name);
    if (!found) throw new Error(`there is no node ${name}`);
    return found;
  }

  #change(at: OwnNodeState, pod: FitPod, count: number): void {
    const left = (at.pods.get(pod) ?? 0) + count;
    if (left > 0) at.pods.set(pod, left);
    else at.pods.delete(pod);
    at.podCount += count;
    const { requests } = pod;
    at.used.cpu += count * requests.cpu;
    at.used.memory += count * requests.memory;
    at.used.storage += count * requests.storage;
    for (const [name, amount] of requests.others)
      at.used.others.set(name, (at.used.others.get(name) ?? 0) + count * amount);

    const places = this.#where.get(pod) ?? new Map<NodeState, number>();
    if (places.size === 0) {
      this.#where.set(pod, places);
      this.#index.add(pod);
    }
    if (left > 0) places.set(at, left);
    else places.delete(at);
    if (places.size === 0) {
      this.#where.delete(pod);
      this.#index.delete(pod);
    }
    for (const { name } of pod.claims) {
      const key = `${pod.namespace}/${name}`;
      this.#claims.set(key, (this.#claims.get(key) ?? 0) + count);
    }
  }
}

function addDomains(
  { keys, counts }: { keys: readonly string[]; counts: readonly Map<string, number>[] },
  { labels }: FitNode,
  by: 1 | -1,
): void {
  const values = keys.map((key) => labelOf(labels, key));
  if (values.includes(undefined)) return;
  for (const [index, value] of values.entries()) addTo(counts[index]!, value!, by);
}

/** Adds to a count; removes it at zero. */
export function addTo<K>(counts: Map<K, number>, key: K, by: number): void {
  const left = (counts.get(key) ?? 0) + by;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
