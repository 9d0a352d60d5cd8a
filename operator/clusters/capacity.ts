import { ipv4Range } from '../api/address-range.ts';
import type { ClusterResource } from '../api/meta.ts';
import { formatBytes, formatCpu, isSaturated, readBytes, readCount, readCpu } from '../api/quantity.ts';
import { addAmounts, GPU_RESOURCES, noAmounts, type PodAmounts, podRequests } from '../kube/pod-requests.ts';
import { hasEnded } from '../kube/pods.ts';
import { conditionIsTrue, keyOf, type Node, type Pod } from '../kube/resources.ts';
import { atOnce, type Steps } from '../kube/steps.ts';

/** A cluster's resources, and the objects whose amounts are too large or cannot be parsed. */
export interface CountedResources {
  readonly resource: ClusterResource;
  /** For messages: `Pod default/huge`, `Node a`. */
  readonly uncounted: readonly string[];
}

/** Pods and nodes counted between two pauses: a millisecond or two. */
const PAUSE_AFTER = 500;

const KEYS = ['cpu', 'memory', 'gpu', 'ipPool'] as const;

/** Amounts of a pod whose requests cannot be parsed: nothing else fits on its node. */
const ALL_TAKEN: PodAmounts = {
  cpu: Number.MAX_SAFE_INTEGER,
  memory: Number.MAX_SAFE_INTEGER,
  gpu: Number.MAX_SAFE_INTEGER,
  ipPool: 1,
};

/** status.resource of a cluster; see countResources. Pure. */
export const clusterResource = (nodes: readonly Node[], pods: readonly Pod[]): ClusterResource =>
  countResources(nodes, pods).resource;

/**
 * status.resource of a cluster. Pure. Never throws for amounts that tenants wrote: too large ones saturate, and a node
 * with more requests than allocatable counts as full.
 *
 * total: allocatable of the nodes (pod addresses of their ranges). available: total minus the requests of unfinished
 * pods, by the scheduler's rule. continuous: the most of each resource that one pod could get on one schedulable node,
 * which fragmentation makes smaller than available.
 */
export const countResources = (nodes: readonly Node[], pods: readonly Pod[]): CountedResources =>
  atOnce(countInSteps(nodes, pods));

/** Same as countResources, with pauses. */
export function* countInSteps(nodes: readonly Node[], pods: readonly Pod[]): Steps<CountedResources> {
  let counted = 0;
  const uncounted: string[] = [];
  const requestedOn = new Map<string, PodAmounts>();
  for (const pod of pods) {
    if (++counted % PAUSE_AFTER === 0) yield;
    const node = pod.spec.nodeName;
    if (!node || hasEnded(pod)) continue;
    const sum = requestedOn.get(node) ?? noAmounts();
    const requests = amountsOrElse(() => podRequests(pod), ALL_TAKEN);
    if (KEYS.some((key) => isSaturated(requests[key]))) uncounted.push(`Pod ${keyOf(pod)}`);
    addAmounts(sum, requests, 1);
    requestedOn.set(node, sum);
  }
  const total = noAmounts();
  const available = noAmounts();
  const continuous = noAmounts();
  for (const node of nodes) {
    if (++counted % PAUSE_AFTER === 0) yield;
    const { name } = node.metadata;
    const offered = amountsOrElse(() => nodeAmounts(node), undefined);
    if (!offered || KEYS.some((key) => isSaturated(offered[key]))) uncounted.push(`Node ${name}`);
    const free = offered ?? noAmounts();
    addAmounts(total, free, 1);
    addAmounts(free, requestedOn.get(name) ?? noAmounts(), -1);
    for (const key of KEYS) free[key] = Math.max(0, free[key]);
    addAmounts(available, free, 1);
    if (!takesPods(node)) continue;
    for (const key of KEYS) continuous[key] = Math.max(continuous[key], free[key]);
  }
  const resource = { total: written(total), available: written(available), continuous: written(continuous) };
  return { resource, uncounted };
}

function amountsOrElse<Else>(read: () => PodAmounts, otherwise: Else): PodAmounts | Else {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return otherwise;
  }
}

/** Whether a pod without special tolerations can be scheduled on the node. */
function takesPods(node: Node): boolean {
  return (
    !node.spec.unschedulable &&
    conditionIsTrue(node, 'Ready') &&
    !(node.spec.taints ?? []).some((taint) => taint.effect === 'NoSchedule' || taint.effect === 'NoExecute')
  );
}

/** What a node offers to pods. Saturates. Throws RangeError when a quantity cannot be read. */
export function nodeAmounts(node: Node): PodAmounts {
  const allocatable = node.status?.allocatable ?? {};
  return {
    cpu: readCpu(allocatable.cpu ?? '0'),
    memory: readBytes(allocatable.memory ?? '0'),
    gpu: GPU_RESOURCES.reduce((sum, name) => sum + readCount(allocatable[name] ?? '0'), 0),
    ipPool: podAddresses(node.spec.podCIDR),
  };
}

/** Addresses that pods can get from an IPv4 range: all but the network's, the gateway's and the broadcast's. */
function podAddresses(range: string | undefined): number {
  const all = ipv4Range(range ?? '');
  return all ? Math.max(0, Number(all.size) - 3) : 0;
}

const written = (a: PodAmounts) => ({
  cpu: formatCpu(a.cpu),
  memory: formatBytes(a.memory),
  gpu: String(a.gpu),
  ipPool: String(a.ipPool),
});
