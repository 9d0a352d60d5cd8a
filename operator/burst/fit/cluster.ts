import { hasEnded } from '../../kube/pods.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import { type CSINode, fitNode } from './node.ts';
import { fitPod } from './pod.ts';
import { type ClusterFacts, ClusterState } from './state.ts';

/** Cached objects of a cluster, all or a part. */
interface ClusterObjects extends ClusterFacts {
  nodes: readonly Node[];
  /** All pods; those that have ended or have no node are skipped. */
  pods: readonly Pod[];
  csiNodes?: readonly CSINode[];
}

/** Present state of a cluster. */
export function clusterState({ nodes, pods, csiNodes = [], ...facts }: ClusterObjects): ClusterState {
  const state = new ClusterState(facts);
  const limits = new Map(csiNodes.map((one) => [one.metadata.name, one]));
  for (const node of nodes) state.addNode(fitNode(node, limits.get(node.metadata.name)));
  for (const pod of pods) {
    const { nodeName } = pod.spec;
    // A Node may be deleted before its pods.
    if (nodeName && !hasEnded(pod) && state.node(nodeName)) state.place(fitPod(pod), nodeName);
  }
  return state;
}
