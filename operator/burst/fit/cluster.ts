import { hasEnded } from '../../kube/pods.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import { type CSINode, fitNode } from './node.ts';
import { fitPod } from './pod.ts';
import { type ClusterFacts, ClusterState } from './state.ts';

/** What the caches of a cluster hold, or part of it. */
export interface ClusterObjects extends ClusterFacts {
  nodes: readonly Node[];
  /** All pods: those that have ended, and those without a node, are left out. */
  pods: readonly Pod[];
  csiNodes?: readonly CSINode[];
}

/** The state of a cluster as it is now. */
export function clusterState({ nodes, pods, csiNodes = [], ...facts }: ClusterObjects): ClusterState {
  const state = new ClusterState(facts);
  const limits = new Map(csiNodes.map((one) => [one.metadata.name, one]));
  for (const node of nodes) state.addNode(fitNode(node, limits.get(node.metadata.name)));
  for (const pod of pods) {
    const { nodeName } = pod.spec;
    // The node of a pod may be gone before the pod is.
    if (nodeName && !hasEnded(pod) && state.node(nodeName)) state.place(fitPod(pod), nodeName);
  }
  return state;
}
