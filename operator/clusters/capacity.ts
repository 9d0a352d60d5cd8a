import { ipv4Range } from '../api/address-range.ts';
import type { ClusterResource } from '../api/meta.ts';
import { formatBytes, formatCpu, parseBytes, parseCount, parseCpu } from '../api/quantity.ts';
import { addAmounts, GPU_RESOURCES, noAmounts, type PodAmounts, podRequests } from '../kube/pod-requests.ts';
import { hasEnded } from '../kube/pods.ts';
import { conditionIsTrue, type Node, type Pod } from '../kube/resources.ts';

/**
 * status.resource of a cluster, pure.
 *
 * total: what the nodes offer to pods (allocatable; pod addresses of their ranges). available: total less what pods that are
 * not finished request, by the scheduler's own rule. continuous: the most of each that one pod could still get on one node that
 * takes pods, which fragmentation makes smaller than available.
 */
export function clusterResource(nodes: readonly Node[], pods: readonly Pod[]): ClusterResource {
  const requestedOn = new Map<string, PodAmounts>();
  for (const pod of pods) {
    const node = pod.spec.nodeName;
    if (!node || hasEnded(pod)) continue;
    const sum = requestedOn.get(node) ?? noAmounts();
    addAmounts(sum, podRequests(pod), 1);
    requestedOn.set(node, sum);
  }
  const total = noAmounts();
  const available = noAmounts();
  const continuous = noAmounts();
  for (const node of nodes) {
    const free = nodeAmounts(node);
    addAmounts(total, free, 1);
    addAmounts(free, requestedOn.get(node.metadata.name) ?? noAmounts(), -1);
    addAmounts(available, free, 1);
    if (!takesPods(node)) continue;
    for (const key of ['cpu', 'memory', 'gpu', 'ipPool'] as const)
      continuous[key] = Math.max(continuous[key], free[key]);
  }
  return { total: written(total), available: written(available), continuous: written(continuous) };
}

/** Whether a new pod without special tolerations could be placed there. */
function takesPods(node: Node): boolean {
  return (
    !node.spec.unschedulable &&
    conditionIsTrue(node, 'Ready') &&
    !(node.spec.taints ?? []).some((taint) => taint.effect === 'NoSchedule' || taint.effect === 'NoExecute')
  );
}

function nodeAmounts(node: Node): PodAmounts {
  const allocatable = node.status?.allocatable ?? {};
  return {
    cpu: parseCpu(allocatable.cpu ?? '0'),
    memory: parseBytes(allocatable.memory ?? '0'),
    gpu: GPU_RESOURCES.reduce((sum, name) => sum + parseCount(allocatable[name] ?? '0'), 0),
    ipPool: podAddresses(node.spec.podCIDR),
  };
}

/** Addresses that pods can get from an IPv4 range: all but the network's, the gateway's and the broadcast's. */
export function podAddresses(range: string | undefined): number {
  const all = ipv4Range(range ?? '');
  return all ? Math.max(0, Number(all.size) - 3) : 0;
}

const written = (a: PodAmounts) => ({
  cpu: formatCpu(a.cpu),
  memory: formatBytes(a.memory),
  gpu: String(a.gpu),
  ipPool: String(a.ipPool),
});
