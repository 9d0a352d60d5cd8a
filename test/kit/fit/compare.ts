import { Judged, judgePod } from '../../../operator/burst/fit/judge.ts';
import type { FitPod, Verdict } from '../../../operator/burst/fit/model.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import type { ClusterState } from '../../../operator/burst/fit/state.ts';
import { volumeFacts } from '../../../operator/burst/fit/volume-facts.ts';
import { slimNode } from '../../../operator/clusters/kept-objects.ts';
import { keptPod } from '../../../operator/clusters/kept-pod.ts';
import { clusterState } from '../burst/plan-at-once.ts';
import { type FitCase, NAMESPACES_OF_CASES, OPEN, objectsOf } from './case.ts';

/** The cluster of a case and its pod, of what the operator's caches keep of them. */
export function stateOf(of: FitCase): { state: ClusterState; pod: FitPod } {
  const { nodes, pods, csiNodes, subject, ...volumes } = objectsOf(of);
  const state = clusterState({
    nodes: nodes.map(slimNode),
    pods: pods.map(keptPod),
    csiNodes,
    namespaces: new Map(Object.entries(NAMESPACES_OF_CASES)),
    volumes: volumeFacts(volumes),
  });
  return { state, pod: fitPod(keptPod(subject)) };
}

/** Our verdict of a case, and what kube-scheduler would write if that were right. */
export function comparison(of: FitCase): { ours: Verdict; message: string } {
  const { state, pod } = stateOf(of);
  return { ours: judgePod(pod, OPEN, state), message: messageOf(pod, state) };
}

/** How many nodes give which reason, sorted; what holds everywhere is said once. */
function messageOf(pod: FitPod, state: ClusterState): string {
  const judged = new Judged(pod, state);
  const prefix = `0/${state.nodes().length} nodes are available: `;
  const [never] = judged.everywhere;
  if (never) return `${prefix}${never.message}.`;
  const counts = new Map<string, number>();
  for (const at of state.nodes())
    for (const { message } of judged.misfits(at)) counts.set(message, (counts.get(message) ?? 0) + 1);
  const reasons = [...counts].map(([message, count]) => `${count} ${message}`);
  return `${prefix}${reasons.sort().join(', ')}.`;
}
