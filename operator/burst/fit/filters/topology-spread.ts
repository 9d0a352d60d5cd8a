import type { FitNode, FitPod, Misfit, SpreadConstraint } from '../model.ts';
import { labelOf } from '../selectors.ts';
import type { ClusterState } from '../state.ts';
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

/** How many pods count in each domain that has nodes, and the least of that, kept while both change. */
class Domains {
  readonly #counts = new Map<string, { pods: number; nodes: number }>();
  /** Count of pods → how many domains have it. */
  readonly #having = new Map<number, number>();
  /** What the scheduler calls the global minimum; of no domain at all: more than any count. */
  least = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#counts.size;
  }

  at(domain: string): number {
    return this.#counts.get(domain)?.pods ?? 0;
  }

  add(domain: string, pods: number, nodes: number): void {
    const before = this.#counts.get(domain);
    const after = { pods: (before?.pods ?? 0) + pods, nodes: (before?.nodes ?? 0) + nodes };
    if (before) this.#have(before.pods, -1);
    if (after.nodes > 0) {
      this.#counts.set(domain, after);
      this.#have(after.pods, 1);
    } else this.#counts.delete(domain);
    if (after.nodes > 0 && after.pods <= this.least) this.least = after.pods;
    else if (!this.#having.has(this.least)) this.least = Math.min(...this.#having.keys());
  }

  #have(pods: number, domains: number): void {
    const left = (this.#having.get(pods) ?? 0) + domains;
    if (left > 0) this.#having.set(pods, left);
    else this.#having.delete(pods);
  }
}

/**
 * PodTopologySpread of one pod: pods that count in each domain of each constraint. Domains are those that have nodes: one more node may
 * make one more domain, which is then the emptiest.
 */
export class TopologySpread {
  readonly #pod: FitPod;
  readonly #domains: Domains[];

  constructor(pod: FitPod, state: ClusterState) {
    this.#pod = pod;
    this.#domains = pod.spread.map(() => new Domains());
    for (const { node } of state.nodes()) this.nodeAdded(node);
    for (const [other, places] of state.pods()) {
      const counted = this.#counted(other);
      if (counted) for (const [{ node }, count] of places) this.#count(counted, node, count, 0);
    }
  }

  /** A node has come with nothing on it: its domain is there, if it was not. `by` -1: it is gone again. */
  nodeAdded(node: FitNode, by: 1 | -1 = 1): void {
    this.#count(undefined, node, 0, by);
  }

  /** A pod has come to a node. `by` -1: it is gone again. */
  placed(other: FitPod, node: FitNode, by: 1 | -1 = 1): void {
    const counted = this.#counted(other);
    if (counted) this.#count(counted, node, by, 0);
  }

  misfit(node: FitNode): Misfit | undefined {
    for (const [index, constraint] of this.#pod.spread.entries()) {
      const domain = labelOf(node.labels, constraint.topologyKey);
      if (domain === undefined) return NO_DOMAIN;
      const domains = this.#domains[index]!;
      const least = domains.size < constraint.minDomains ? 0 : domains.least;
      if (domains.at(domain) + (constraint.countsItself ? 1 : 0) - least > constraint.maxSkew) return SKEWED;
    }
    return undefined;
  }

  /** Which constraints count a pod; undefined: none does. */
  #counted(other: FitPod): readonly boolean[] | undefined {
    if (other.terminating || other.namespace !== this.#pod.namespace) return undefined;
    const counted = this.#pod.spread.map(({ counts }) => counts(other.labels));
    return counted.includes(true) ? counted : undefined;
  }

  #count(counted: readonly boolean[] | undefined, node: FitNode, pods: number, nodes: number): void {
    if (!this.#hasAllKeys(node)) return;
    for (const [index, constraint] of this.#pod.spread.entries())
      if ((!counted || counted[index]) && this.#includes(constraint, node))
        this.#domains[index]!.add(labelOf(node.labels, constraint.topologyKey)!, pods, nodes);
  }

  /** A node that lacks the key of any constraint counts for none of them. */
  #hasAllKeys(node: FitNode): boolean {
    return this.#pod.spread.every(({ topologyKey }) => labelOf(node.labels, topologyKey) !== undefined);
  }

  #includes({ honorsAffinity, honorsTaints }: SpreadConstraint, node: FitNode): boolean {
    if (honorsAffinity && !this.#pod.acceptsNode(node)) return false;
    return !honorsTaints || toleratesTaints(this.#pod, node);
  }
}
