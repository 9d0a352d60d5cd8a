import type { FitNode, FitPod, Misfit, SpreadConstraint } from '../model.ts';
import { labelOf } from '../selectors.ts';
import { addTo, type ClusterState } from '../state.ts';
import { toleratesTaints } from './node.ts';

const NO_DOMAIN: Misfit = {
  plugin: 'PodTopologySpread',
  message: "node(s) didn't match pod topology spread constraints (missing required label)",
  everywhere: false,
};
const SKEWED: Misfit = {
  plugin: 'PodTopologySpread',
  message: "node(s) didn't match pod topology spread constraints",
  everywhere: false,
};

/** Topology domains of one constraint, with their pod counts. */
class Domains {
  /** Number of nodes by domain: of the whole cluster (shared), or of the nodes that the constraint includes. */
  readonly nodes: ReadonlyMap<string, number>;
  readonly #pods = new Map<string, number>();
  /** Number of domains by pod count (except zero). */
  readonly #having = new Map<number, number>();

  constructor(nodes: ReadonlyMap<string, number>) {
    this.nodes = nodes;
  }

  /** The scheduler's global minimum; Infinity without domains. */
  get least(): number {
    if (this.#pods.size < this.nodes.size) return 0;
    let least = Number.POSITIVE_INFINITY;
    for (const pods of this.#having.keys()) least = Math.min(least, pods);
    return least;
  }

  at(domain: string): number {
    return this.#pods.get(domain) ?? 0;
  }

  add(domain: string, pods: number): void {
    const before = this.at(domain);
    if (before > 0) addTo(this.#having, before, -1);
    addTo(this.#pods, domain, pods);
    if (before + pods > 0) addTo(this.#having, before + pods, 1);
  }
}

/**
 * PodTopologySpread of one pod: pod counts by domain and constraint. A domain needs a node: a new node may add a
 * domain, which is then the emptiest.
 */
export class TopologySpread {
  readonly #pod: FitPod;
  readonly #domains: Domains[];

  /** Domains counted separately because the constraint excludes nodes; by constraint index. */
  readonly #own: (Map<string, number> | undefined)[];

  constructor(pod: FitPod, state: ClusterState) {
    this.#pod = pod;
    const shared = state.domains(pod.spread.map(({ topologyKey }) => topologyKey));
    this.#own = pod.spread.map((constraint) => {
      const includesAll = !constraint.honorsTaints && (pod.acceptsAnyNode || !constraint.honorsAffinity);
      return includesAll ? undefined : new Map<string, number>();
    });
    this.#domains = pod.spread.map((_, index) => new Domains(this.#own[index] ?? shared[index]!));
    if (this.#own.some((own) => own)) for (const { node } of state.nodes()) this.nodeAdded(node);
    const counting = new Set(pod.spread.flatMap(({ label }) => [...state.index.in(pod.namespace, label)]));
    for (const other of counting) {
      const counted = this.#counted(other);
      if (counted) for (const [{ node }, count] of state.placesOf(other)) this.#count(counted, node, count);
    }
  }

  /** Records an empty node and its domain. `by` -1: removes it. */
  nodeAdded(node: FitNode, by: 1 | -1 = 1): void {
    if (!this.#hasAllKeys(node)) return;
    for (const [index, constraint] of this.#pod.spread.entries()) {
      const own = this.#own[index];
      if (own && this.#includes(constraint, node)) addTo(own, labelOf(node.labels, constraint.topologyKey)!, by);
    }
  }

  /** Records a pod on a node. `by` -1: removes it. */
  placed(other: FitPod, node: FitNode, by: 1 | -1 = 1): void {
    const counted = this.#counted(other);
    if (counted) this.#count(counted, node, by);
  }

  misfit(node: FitNode): Misfit | undefined {
    for (const [index, constraint] of this.#pod.spread.entries()) {
      const domain = labelOf(node.labels, constraint.topologyKey);
      if (domain === undefined) return NO_DOMAIN;
      const domains = this.#domains[index]!;
      const least = domains.nodes.size < constraint.minDomains ? 0 : domains.least;
      if (domains.at(domain) + (constraint.countsItself ? 1 : 0) - least > constraint.maxSkew) return SKEWED;
    }
    return undefined;
  }

  /** Constraints that count a pod; undefined: none. */
  #counted(other: FitPod): readonly SpreadConstraint[] | undefined {
    if (other.terminating || other.namespace !== this.#pod.namespace) return undefined;
    // Hot path: allocates only when a constraint counts the pod.
    let counted: SpreadConstraint[] | undefined;
    for (const constraint of this.#pod.spread)
      if (constraint.counts(other.labels)) {
        counted ??= [];
        counted.push(constraint);
      }
    return counted;
  }

  #count(counted: readonly SpreadConstraint[], node: FitNode, pods: number): void {
    if (!this.#hasAllKeys(node)) return;
    for (const [index, constraint] of this.#pod.spread.entries())
      if (counted.includes(constraint) && this.#includes(constraint, node))
        this.#domains[index]!.add(labelOf(node.labels, constraint.topologyKey)!, pods);
  }

  /** A node without the key of any constraint counts for none of them. */
  #hasAllKeys(node: FitNode): boolean {
    return this.#pod.spread.every(({ topologyKey }) => labelOf(node.labels, topologyKey) !== undefined);
  }

  #includes({ honorsAffinity, honorsTaints }: SpreadConstraint, node: FitNode): boolean {
    if (honorsAffinity && !this.#pod.acceptsNode(node)) return false;
    return !honorsTaints || toleratesTaints(this.#pod, node);
  }
}
