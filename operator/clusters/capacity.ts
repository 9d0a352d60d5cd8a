import type { ClusterResource } from '../api/meta.ts';
import { formatBytes, formatCpu, parseBytes, parseCount, parseCpu } from '../api/quantity.ts';
import { type ContainerResources, conditionIsTrue, type Node, type Pod } from '../kube/resources.ts';

/** Amounts of one node or one cluster: millicores, bytes, whole GPUs, pod addresses. */
interface Amounts {
  cpu: number;
  memory: number;
  gpu: number;
  ipPool: number;
}

/** Extended resources that count as a GPU. */
const GPU_RESOURCES = ['nvidia.com/gpu', 'amd.com/gpu', 'gpu.intel.com/i915'];

const zero = (): Amounts => ({ cpu: 0, memory: 0, gpu: 0, ipPool: 0 });

/**
 * status.resource of a cluster, pure.
 *
 * total: what the nodes offer to pods (allocatable; pod addresses of their ranges). available: total less what pods that are
 * not finished request, by the scheduler's own rule. continuous: the most of each that one pod could still get on one node that
 * takes pods, which fragmentation makes smaller than available.
 */
export function clusterResource(nodes: readonly Node[], pods: readonly Pod[]): ClusterResource {
  const requestedOn = new Map<string, Amounts>();
  for (const pod of pods) {
    const node = pod.spec.nodeName;
    if (!node || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') continue;
    const sum = requestedOn.get(node) ?? zero();
    add(sum, podRequests(pod), 1);
    requestedOn.set(node, sum);
  }
  const total = zero();
  const available = zero();
  const continuous = zero();
  for (const node of nodes) {
    const free = nodeAmounts(node);
    add(total, free, 1);
    add(free, requestedOn.get(node.metadata.name) ?? zero(), -1);
    add(available, free, 1);
    if (!takesPods(node)) continue;
    for (const key of ['cpu', 'memory', 'gpu', 'ipPool'] as const)
      continuous[key] = Math.max(continuous[key], free[key]);
  }
  return { total: written(total), available: written(available), continuous: written(continuous) };
}

/** What the pod takes from its node: the scheduler's rule (effective requests, restartable init containers, overhead). */
export function podRequests(pod: Pod): Amounts {
  const { spec } = pod;
  const request = zero();
  for (const container of spec.containers) add(request, amounts(container.resources), 1);
  // A sidecar (restartable init container) keeps running; a plain one needs its share only while it and the sidecars before it run.
  const sidecars = zero();
  const initPeak = zero();
  for (const container of spec.initContainers ?? []) {
    const own = amounts(container.resources);
    if (container.restartPolicy === 'Always') {
      add(request, own, 1);
      add(sidecars, own, 1);
      raise(initPeak, sidecars);
    } else {
      add(own, sidecars, 1);
      raise(initPeak, own);
    }
  }
  raise(request, initPeak);
  // Requests of the pod as a whole take the place of the containers' sum (Kubernetes 1.34).
  const whole = spec.resources?.requests;
  if (whole?.cpu !== undefined) request.cpu = parseCpu(whole.cpu);
  if (whole?.memory !== undefined) request.memory = parseBytes(whole.memory);
  if (spec.overhead) add(request, amounts({ requests: spec.overhead }), 1);
  request.ipPool = spec.hostNetwork ? 0 : 1;
  return request;
}

/** Whether a new pod without special tolerations could be placed there. */
function takesPods(node: Node): boolean {
  return (
    !node.spec.unschedulable &&
    conditionIsTrue(node, 'Ready') &&
    !(node.spec.taints ?? []).some((taint) => taint.effect === 'NoSchedule' || taint.effect === 'NoExecute')
  );
}

function nodeAmounts(node: Node): Amounts {
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
  const prefix = Number(range?.split('/')[1]);
  if (!Number.isInteger(prefix) || prefix < 1 || prefix > 32) return 0;
  return Math.max(0, 2 ** (32 - prefix) - 3);
}

function amounts(resources: ContainerResources | undefined): Amounts {
  // The API server fills in requests from limits, except for extended resources of pods it never defaulted.
  const asked = { ...resources?.limits, ...resources?.requests };
  return {
    cpu: parseCpu(asked.cpu ?? '0'),
    memory: parseBytes(asked.memory ?? '0'),
    gpu: GPU_RESOURCES.reduce((sum, name) => sum + parseCount(asked[name] ?? '0'), 0),
    ipPool: 0,
  };
}

function add(sum: Amounts, more: Amounts, sign: 1 | -1): void {
  for (const key of ['cpu', 'memory', 'gpu', 'ipPool'] as const) sum[key] += sign * more[key];
}

function raise(peak: Amounts, other: Amounts): void {
  for (const key of ['cpu', 'memory', 'gpu', 'ipPool'] as const) peak[key] = Math.max(peak[key], other[key]);
}

const written = (a: Amounts) => ({
  cpu: formatCpu(a.cpu),
  memory: formatBytes(a.memory),
  gpu: String(a.gpu),
  ipPool: String(a.ipPool),
});
