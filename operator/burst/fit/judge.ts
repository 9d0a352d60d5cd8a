import { nodeMisfit, portMisfit } from './filters/node.ts';
import { PodAffinity } from './filters/pod-affinity.ts';
import { hasRoom, resourceMisfits } from './filters/resources.ts';
import { TopologySpread } from './filters/topology-spread.ts';
import { PodVolumes } from './filters/volumes.ts';
import type { FitNode, FitPod, Misfit, PodTerm, Verdict } from './model.ts';
import type { NotJudgedReason } from './not-judged.ts';
import type { ClusterState, NodeState } from './state.ts';

/**
 * kube-scheduler 1.36's verdict on a pod and a node of the cluster at present, without preemption. Throws when there is
 * no such node.
 */
export function judgePod(pod: FitPod, node: string, state: ClusterState): Verdict {
  const there = state.node(node);
  if (!there) throw new Error(`there is no node ${node}`);
  const asked = new Judged(pod, state);
  if (asked.notJudged.length > 0) return { verdict: 'NotJudged', reasons: asked.notJudged };
  const misfits = asked.misfits(there);
  return misfits.length > 0 ? { verdict: 'DoesNotFit', misfits } : { verdict: 'Fits' };
}

/**
 * Judges one pod (and equal ones) against the nodes of a cluster. Counts over the whole cluster are computed once and
 * updated with each placed pod and added node; other changes of the state make it stale.
 */
export class Judged {
  readonly pod: FitPod;
  /** Why the pod cannot be judged; empty: it can. */
  readonly notJudged: readonly NotJudgedReason[];
  /** Faults on every node, including new ones. */
  readonly everywhere: readonly Misfit[];
  readonly #spread: TopologySpread | undefined;
  readonly #affinity: PodAffinity;
  readonly #volumes: PodVolumes | undefined;

  constructor(pod: FitPod, state: ClusterState) {
    this.pod = pod;
    this.#volumes = pod.claims.length > 0 ? new PodVolumes(pod, state) : undefined;
    this.notJudged = [...pod.notJudged, ...namespacesUnknown(pod, state), ...(this.#volumes?.notJudged ?? [])];
    this.everywhere = this.#volumes?.everywhere ?? [];
    this.#spread = pod.spread.length > 0 ? new TopologySpread(pod, state) : undefined;
    this.#affinity = new PodAffinity(pod, state);
  }

  /** Whether other nodes matter (spread, affinity): placing a pod or adding a node may change the result elsewhere. */
  get looksAround(): boolean {
    return this.#spread !== undefined || this.#affinity.concerns;
  }

  /** Whether only the node's properties matter on an empty node. */
  get isPlain(): boolean {
    return !this.looksAround && this.#volumes === undefined && this.pod.ports.length === 0;
  }

  /** Faults of the first plugin that rejects the node, in the scheduler's order; empty: the pod fits. */
  misfits(at: NodeState): readonly Misfit[] {
    if (this.everywhere.length > 0) return this.everywhere;
    const byNode = nodeMisfit(this.pod, at.node) ?? portMisfit(this.pod, at);
    if (byNode) return [byNode];
    const byResources = resourceMisfits(this.pod, at);
    if (byResources.length > 0) return byResources;
    const byVolumes = this.#volumes?.misfits(at) ?? [];
    if (byVolumes.length > 0) return byVolumes;
    const around = this.misfitAround(at.node);
    return around ? [around] : [];
  }

  /** Whether the pod fits; checks run cheapest first, because most nodes are full. */
  fits(at: NodeState): boolean {
    return this.fitsAlone(at) && this.misfitAround(at.node) === undefined;
  }

  /** Whether the pod fits apart from other nodes. A false result stays false as pods are added. */
  fitsAlone(at: NodeState): boolean {
    return (
      hasRoom(this.pod, at) &&
      this.everywhere.length === 0 &&
      nodeMisfit(this.pod, at.node) === undefined &&
      portMisfit(this.pod, at) === undefined &&
      (this.#volumes === undefined || this.#volumes.misfits(at).length === 0)
    );
  }

  /** Fault of a node by spread and affinity. */
  misfitAround(node: FitNode): Misfit | undefined {
    return this.#spread?.misfit(node) ?? (this.#affinity.concerns ? this.#affinity.misfit(node) : undefined);
  }

  /** Records a pod on a node. `by` -1: removes it. */
  placed(other: FitPod, node: FitNode, by: 1 | -1 = 1): void {
    this.#spread?.placed(other, node, by);
    this.#affinity.placed(other, node, by);
    this.#volumes?.placed(other, by);
  }

  /** Records an empty node. `by` -1: removes it. */
  nodeAdded(node: FitNode, by: 1 | -1 = 1): void {
    this.#spread?.nodeAdded(node, by);
  }
}

const namespacesUnknown = ({ affinity, antiAffinity }: FitPod, state: ClusterState): NotJudgedReason[] => {
  const looksThemUp = ({ namespaceMatches }: PodTerm) => namespaceMatches !== undefined;
  return !state.facts.namespaces && (affinity.some(looksThemUp) || antiAffinity.some(looksThemUp))
    ? ['NamespacesUnknown']
    : [];
};
