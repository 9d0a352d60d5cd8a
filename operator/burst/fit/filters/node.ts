import type { FitNode, FitPod, Misfit, NodeTaint, Toleration } from '../model.ts';
import type { NodeState } from '../state.ts';

/** Taint that Kubernetes' node controller sets while a node is cordoned (`spec.unschedulable`). */
export const UNSCHEDULABLE: NodeTaint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

const misfit = (plugin: Misfit['plugin'], message: string): Misfit => ({ plugin, message, everywhere: false });

const CORDONED = misfit('NodeUnschedulable', 'node(s) were unschedulable');
const TAINTED = misfit('TaintToleration', 'node(s) had untolerated taint(s)');
const NOT_ACCEPTED = misfit('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
const PORT_TAKEN = misfit('NodePorts', "node(s) didn't have free ports for the requested pod ports");

function tolerates({ key, operator = 'Equal', value = '', effect }: Toleration, taint: NodeTaint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (key && key !== taint.key) return false;
  return operator === 'Exists' || ((operator === 'Equal' || operator === '') && value === (taint.value ?? ''));
}

const isTolerated = (pod: FitPod, taint: NodeTaint): boolean =>
  pod.tolerations.some((toleration) => tolerates(toleration, taint));

/** Whether the pod tolerates the node's taints. PreferNoSchedule does not count. */
export const toleratesTaints = (pod: FitPod, { taints }: FitNode): boolean =>
  taints.every((taint) => (taint.effect !== 'NoSchedule' && taint.effect !== 'NoExecute') || isTolerated(pod, taint));

/**
 * Why the pod can never run on the node, whatever else runs there: NodeUnschedulable, TaintToleration, NodeAffinity, in
 * this order.
 */
export function nodeMisfit(pod: FitPod, node: FitNode): Misfit | undefined {
  if (node.unschedulable && !isTolerated(pod, UNSCHEDULABLE)) return CORDONED;
  if (node.taints.length > 0 && !toleratesTaints(pod, node)) return TAINTED;
  return pod.acceptsNode(node) ? undefined : NOT_ACCEPTED;
}

const ANY = '0.0.0.0';

/** NodePorts: a host port is taken per protocol and address; address 0.0.0.0 conflicts with all. */
export function portMisfit(pod: FitPod, { pods }: Pick<NodeState, 'pods'>): Misfit | undefined {
  if (pod.ports.length === 0) return undefined;
  for (const { ports: taken } of pods.keys())
    for (const theirs of taken)
      for (const { ip, protocol, port } of pod.ports)
        if (
          port === theirs.port &&
          protocol === theirs.protocol &&
          (ip === theirs.ip || ip === ANY || theirs.ip === ANY)
        )
          return PORT_TAKEN;
  return undefined;
}
