import { nodeMisfit, portMisfit } from './filters/node.ts';
import { PodAffinity } from './filters/pod-affinity.ts';
import { hasRoom, resourceMisfits } from './filters/resources.ts';
import { TopologySpread } from './filters/topology-spread.ts';
import { PodVolumes } from './filters/volumes.ts';
import type { FitNode, FitPod, Misfit, PodTerm, Verdict } from './model.ts';
import type { NotJudgedReason } from './not-judged.ts';
import type { ClusterState, NodeState } from './state.ts';

/**
 * What kube-scheduler 1.36 would say to this pod on this node of the cluster as it is now, preemption aside. Throws when there is no such
 * node.
 */
export function judge(pod: FitPod, node: string, state: ClusterState): Verdict {
  const there = state.node(node);
  if (!there) throw new Error(`there is no node ${node}`);
  const asked = new Judged(pod, state);
  if (asked.notJudged.length > 0) return { verdict: 'NotJudged', reasons: asked.notJudged };
  const misfits = asked.misfits(there);
  return misfits.length > 0 ? { verdict: 'DoesNotFit', misfits } : { verdict: 'Fits' };
}

/**
 * One pod (and all that are alike) before the nodes of a cluster: what is counted over the whole cluster is counted once, and followed
 * when pods and nodes come. It says nothing true any more when the state changed without its being told.
 */
export class Judged {
  readonly pod: FitPod;
  /** Why it cannot be judged; empty: it can. */
  readonly notJudged: readonly NotJudgedReason[];
  /** What holds on every node, new ones too. */
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

  /** Whether what it is near to matters: a pod or a node that comes may change what is true of other nodes. */
  get looksAround(): boolean {
    return this.#spread !== undefined || this.#affinity.concerns;
  }

  /** Whether on a node that is empty nothing matters but what the node is. */
  get isPlain(): boolean {
    return !this.looksAround && this.#volumes === undefined && this.pod.ports.length === 0;
  }

  /** What the first plugin that says no to the node has to say; empty: it fits. In the scheduler's order. */
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

  /** Whether it fits; asked in the order that is cheapest, because most nodes are full. */
  fits(at: NodeState): boolean {
    return this.fitsAlone(at) && this.misfitAround(at.node) === undefined;
  }

  /** Whether it fits, whatever is around the node. What does not will not when more has come. */
  fitsAlone(at: NodeState): boolean {
    return (
      hasRoom(this.pod, at) &&
      this.everywhere.length === 0 &&
      nodeMisfit(this.pod, at.node) === undefined &&
      portMisfit(this.pod, at) === undefined &&
      (this.#volumes === undefined || this.#volumes.misfits(at).length === 0)
    );
  }

  /** What spread and affinity say of a node. */
  misfitAround(node: FitNode): Misfit | undefined {
    return this.#spread?.misfit(node) ?? (this.#affinity.concerns ? this.#affinity.misfit(node) : undefined);
  }

  /** A pod has come to a node. `by` -1: it is gone again. */
  placed(other: FitPod, node: FitNode, by: 1 | -1 = 1): void {
    this.#spread?.placed(other, node, by);
    this.#affinity.placed(other, node, by);
    this.#volumes?.placed(other, by);
  }

  /** A node has come, with nothing on it. `by` -1: it is gone again. */
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
