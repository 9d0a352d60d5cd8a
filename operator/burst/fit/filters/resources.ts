import type { FitNode, FitPod, Misfit } from '../model.ts';
import type { NodeState } from '../state.ts';

const insufficient = (message: string): Misfit => ({ plugin: 'NodeResourcesFit', message, everywhere: false });

/** NodeResourcesFit. Resources that are not requested are ignored: a node may be overcommitted on them. */
export function hasRoom({ requests }: FitPod, { node, used, podCount }: NodeState): boolean {
  const { allocatable } = node;
  if (podCount + 1 > allocatable.pods) return false;
  if (requests.cpu > 0 && requests.cpu > allocatable.cpu - used.cpu) return false;
  if (requests.memory > 0 && requests.memory > allocatable.memory - used.memory) return false;
  if (requests.storage > 0 && requests.storage > allocatable.storage - used.storage) return false;
  if (requests.others.size > 0)
    for (const [name, amount] of requests.others)
      if (amount > (allocatable.others.get(name) ?? 0) - (used.others.get(name) ?? 0)) return false;
  return true;
}

/** All resources of which the node has too little. */
export function resourceMisfits(pod: FitPod, at: NodeState): Misfit[] {
  if (hasRoom(pod, at)) return [];
  const { requests } = pod;
  const { allocatable } = at.node;
  const found: Misfit[] = [];
  if (at.podCount + 1 > allocatable.pods) found.push(insufficient('Too many pods'));
  for (const [field, name] of [
    ['cpu', 'cpu'],
    ['memory', 'memory'],
    ['storage', 'ephemeral-storage'],
  ] as const)
    if (requests[field] > 0 && requests[field] > allocatable[field] - at.used[field])
      found.push(insufficient(`Insufficient ${name}`));
  for (const [name, amount] of requests.others)
    if (amount > (allocatable.others.get(name) ?? 0) - (at.used.others.get(name) ?? 0))
      found.push(insufficient(`Insufficient ${name}`));
  return found;
}

/** How many of a pod fit on a new node beside given pods, up to the node's pod limit. */
export function roomFor(
  { requests }: FitPod,
  { allocatable }: Pick<FitNode, 'allocatable'>,
  others: readonly FitPod[],
): number {
  const times = timesIn(requests, (of) => others.reduce((rest, other) => rest - of(other.requests), of(allocatable)));
  return Math.max(0, Math.min(allocatable.pods - others.length, times));
}

/** How many of a pod fit into a node's free room. */
export function freeFor(pod: FitPod, at: NodeState): number {
  // Fast path for full nodes, which most of a fleet are.
  if (!hasRoom(pod, at)) return 0;
  const { node, used, podCount } = at;
  const times = timesIn(pod.requests, (of) => of(node.allocatable) - of(used));
  return Math.min(node.allocatable.pods - podCount, times);
}

type Requests = FitPod['requests'];

/**
 * How many times the rest contains the requests; unrequested resources are ignored. @param left rest of one resource
 */
function timesIn(requests: Requests, left: (of: (amounts: Requests) => number) => number): number {
  const times = (of: (amounts: Requests) => number) =>
    of(requests) > 0 ? Math.floor(left(of) / of(requests)) : Number.POSITIVE_INFINITY;
  return Math.min(
    times(({ cpu }) => cpu),
    times(({ memory }) => memory),
    times(({ storage }) => storage),
    ...[...requests.others.keys()].map((name) => times(({ others }) => others.get(name) ?? 0)),
  );
}
