import type { FitNode, FitPod, Labels, Misfit, PodTerm } from '../model.ts';
import { labelOf } from '../selectors.ts';
import { addTo, type ClusterState } from '../state.ts';

const misfit = (message: string): Misfit => ({ plugin: 'InterPodAffinity', message, everywhere: false });

const NOT_NEAR = misfit("node(s) didn't match pod affinity rules");
const TOO_NEAR = misfit("node(s) didn't match pod anti-affinity rules");
const UNWANTED = misfit("node(s) didn't satisfy existing pods anti-affinity rules");

type NamespaceLabels = ReadonlyMap<string, Labels> | undefined;

/** Whether another pod's term selects the pod. An unknown namespace has no labels, as in the scheduler. */
const speaksOf = ({ namespaces, namespaceMatches, matches }: PodTerm, pod: FitPod, known: NamespaceLabels): boolean =>
  (namespaces.has(pod.namespace) || namespaceMatches?.(known?.get(pod.namespace) ?? {}) === true) &&
  matches(pod.labels);

/**
 * Whether the pod's own term selects another pod. kube-scheduler resolves matching namespaces, and in addition
 * evaluates the selector against no labels: a selector that only excludes labels (DoesNotExist, NotIn) matches all
 * namespaces.
 */
const ownSpeaksOf = (term: PodTerm, other: FitPod, known: NamespaceLabels): boolean =>
  speaksOf(term, other, known) || (term.namespaceMatches?.({}) === true && term.matches(other.labels));

/** Counts by topology key and value. */
class Pairs {
  /** undefined: nothing was counted yet, as for most pods. */
  #counts: Map<string, Map<string, number>> | undefined;

  get isEmpty(): boolean {
    return !this.#counts || this.#counts.size === 0;
  }

  add(key: string, node: FitNode, count: number): void {
    const value = labelOf(node.labels, key);
    if (value === undefined) return;
    this.#counts ??= new Map();
    const ofKey = this.#counts.get(key) ?? new Map<string, number>();
    addTo(ofKey, value, count);
    if (ofKey.size > 0) this.#counts.set(key, ofKey);
    else this.#counts.delete(key);
  }

  has(key: string, value: string): boolean {
    return this.#counts?.get(key)?.has(value) ?? false;
  }

  /** Whether any counted pair is among the node's labels. */
  hasAnyOf(labels: Labels): boolean {
    for (const [key, values] of this.#counts ?? []) {
      const value = labelOf(labels, key);
      if (value !== undefined && values.has(value)) return true;
    }
    return false;
  }
}

/**
 * InterPodAffinity of one pod: topology domains with pods that it has affinity to, with pods that it has anti-affinity
 * to, and with pods that have anti-affinity to it. Terminating pods count until they are gone.
 */
export class PodAffinity {
  readonly #pod: FitPod;
  readonly #namespaces: NamespaceLabels;
  readonly #near = new Pairs();
  readonly #away = new Pairs();
  readonly #unwanted = new Pairs();
  readonly #isItsOwn: boolean;

  constructor(pod: FitPod, state: ClusterState) {
    this.#pod = pod;
    this.#namespaces = state.facts.namespaces;
    this.#isItsOwn = pod.affinity.length > 0 && pod.affinity.every((term) => ownSpeaksOf(term, pod, this.#namespaces));
    if (pod.affinity.length + pod.antiAffinity.length === 0 && !state.index.hasUnfriendly) return;
    const related = new Set(state.index.unfriendlyTo(pod.labels));
    // A pod matches affinity only if it matches all terms, so looking up the first term finds all.
    for (const term of [...pod.affinity.slice(0, 1), ...pod.antiAffinity])
      for (const namespace of term.namespaceMatches ? state.index.namespaces() : term.namespaces)
        for (const other of state.index.in(namespace, term.label)) related.add(other);
    for (const other of related) {
      const relation = this.#relationTo(other);
      if (relation) for (const [{ node }, count] of state.placesOf(other)) this.#add(relation, node, count);
    }
  }

  /** Whether affinity can reject any node: then each node must be checked. */
  get concerns(): boolean {
    return this.#pod.affinity.length > 0 || this.#pod.antiAffinity.length > 0 || !this.#unwanted.isEmpty;
  }

  /** Records a pod on a node. `by` -1: removes it. */
  placed(other: FitPod, node: FitNode, by: 1 | -1 = 1): void {
    const relation = this.#relationTo(other);
    if (relation) this.#add(relation, node, by);
  }

  misfit(node: FitNode): Misfit | undefined {
    let areNear = true;
    for (const { topologyKey } of this.#pod.affinity) {
      const value = labelOf(node.labels, topologyKey);
      if (value === undefined) return NOT_NEAR;
      areNear &&= this.#near.has(topologyKey, value);
    }
    // The first pod of a group with affinity to itself needs no other pod.
    if (!areNear && !(this.#near.isEmpty && this.#isItsOwn)) return NOT_NEAR;
    for (const { topologyKey } of this.#pod.antiAffinity) {
      const value = labelOf(node.labels, topologyKey);
      if (value !== undefined && this.#away.has(topologyKey, value)) return TOO_NEAR;
    }
    return this.#unwanted.hasAnyOf(node.labels) ? UNWANTED : undefined;
  }

  /** Hot path: allocates only when there is a relation. */
  #relationTo(other: FitPod): Relation | undefined {
    const { affinity, antiAffinity } = this.#pod;
    const isWanted = affinity.length > 0 && affinity.every((term) => ownSpeaksOf(term, other, this.#namespaces));
    const away = antiAffinity.some((term) => ownSpeaksOf(term, other, this.#namespaces))
      ? antiAffinity.filter((term) => ownSpeaksOf(term, other, this.#namespaces))
      : NONE;
    const unwanted = other.antiAffinity.some((term) => speaksOf(term, this.#pod, this.#namespaces))
      ? other.antiAffinity.filter((term) => speaksOf(term, this.#pod, this.#namespaces))
      : NONE;
    return isWanted || away !== NONE || unwanted !== NONE ? { isWanted, away, unwanted } : undefined;
  }

  #add({ isWanted, away, unwanted }: Relation, node: FitNode, count: number): void {
    if (isWanted) for (const { topologyKey } of this.#pod.affinity) this.#near.add(topologyKey, node, count);
    for (const { topologyKey } of away) this.#away.add(topologyKey, node, count);
    for (const { topologyKey } of unwanted) this.#unwanted.add(topologyKey, node, count);
  }
}

const NONE: readonly PodTerm[] = [];

interface Relation {
  isWanted: boolean;
  away: readonly PodTerm[];
  unwanted: readonly PodTerm[];
}
