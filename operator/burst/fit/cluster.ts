import { hasEnded } from '../../kube/pods.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import { eachInSteps, type Steps } from '../../kube/steps.ts';
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

/** Present state of a cluster, with pauses. */
export function* clusterStateInSteps({ nodes, pods, csiNodes = [], ...facts }: ClusterObjects): Steps<ClusterState> {
  const state = new ClusterState(facts);
  const limits = new Map(csiNodes.map((one) => [one.metadata.name, one]));
  yield* eachInSteps(nodes, (node) => state.addNode(fitNode(node, limits.get(node.metadata.name))));
  yield* eachInSteps(pods, (pod) => {
    const { nodeName } = pod.spec;
    // A Node may be deleted before its pods.
    if (nodeName && !hasEnded(pod) && state.node(nodeName)) state.place(fitPod(pod), nodeName);
  });
  return state;
}
