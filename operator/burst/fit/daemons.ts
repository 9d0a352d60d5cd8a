import type { KubeObject, Pod } from '../../kube/resources.ts';
import { nodeMisfit } from './filters/node.ts';
import { resourceMisfits, roomFor } from './filters/resources.ts';
import type { FitNode, FitPod, NodeTemplate } from './model.ts';
import { nodeOf } from './node.ts';
import { fitPod } from './pod.ts';
import { requestsOf } from './requests.ts';
import type { ClusterState, NodeState } from './state.ts';

/** What is read of a DaemonSet. */
export interface DaemonSet extends KubeObject {
  spec: { template: { metadata?: { labels?: Record<string, string> }; spec: Pod['spec'] } };
}

const tolerated = (condition: string, effect: string) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect,
});

/** What the DaemonSet controller has each of its pods tolerate. */
const TOLERATIONS = [
  tolerated('not-ready', 'NoExecute'),
  tolerated('unreachable', 'NoExecute'),
  tolerated('disk-pressure', 'NoSchedule'),
  tolerated('memory-pressure', 'NoSchedule'),
  tolerated('pid-pressure', 'NoSchedule'),
  tolerated('unschedulable', 'NoSchedule'),
];

/**
 * A pod of a DaemonSet as it would be on a node to come. `live`, one of its pods that runs, says better than the template how much it takes:
 * a LimitRange, an autoscaler or an injected sidecar may have changed that.
 */
export function daemonPod({ metadata, spec: { template } }: DaemonSet, live?: Pod): FitPod {
  const forHost = template.spec.hostNetwork ? [tolerated('network-unavailable', 'NoSchedule')] : [];
  const made = fitPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: metadata.name,
      ...(metadata.namespace && { namespace: metadata.namespace }),
      labels: template.metadata?.labels ?? {},
    },
    spec: { ...template.spec, tolerations: [...(template.spec.tolerations ?? []), ...TOLERATIONS, ...forHost] },
  });
  return live ? { ...made, requests: requestsOf(live) } : made;
}

/** Those that would run on a node: what it is decides, not whether there is room. One that is larger than the node never runs there. */
export const daemonsOn = (node: FitNode, daemons: readonly FitPod[]): FitPod[] =>
  daemons.filter((daemon) => nodeMisfit(daemon, node) === undefined && roomFor(daemon, node, []) > 0);

/** Why a DaemonSet never runs on nodes of a template that it is meant for: it is larger than they are. undefined: it runs, or is not meant for them. */
export function whyTooLarge(daemon: FitPod, template: NodeTemplate): string | undefined {
  const node = nodeOf(template, template.id);
  if (nodeMisfit(daemon, node) !== undefined || roomFor(daemon, node, []) > 0) return undefined;
  const empty = { node, pods: new Map(), podCount: 0, used: { cpu: 0, memory: 0, storage: 0, others: new Map() } };
  return resourceMisfits(daemon, empty)
    .map(({ message }) => message)
    .join(', ');
}

/** A live pod of a DaemonSet as it would be on another node: its controller has pinned it to its own. */
export function unpinned(live: Pod): FitPod {
  const { affinity, ...spec } = live.spec;
  const { nodeAffinity: _, ...others } = (affinity ?? {}) as { nodeAffinity?: object };
  return fitPod({ ...live, spec: { ...spec, affinity: others } });
}

/** What a new node has left for work when its DaemonSets have their share. */
export function withoutDaemons(
  template: NodeTemplate,
  allocatable: NodeTemplate['allocatable'],
  daemons: readonly FitPod[],
): NodeTemplate['allocatable'] {
  const left = { ...allocatable, others: new Map(allocatable.others) };
  for (const { requests } of daemonsOn(nodeOf(template, template.id), daemons)) {
    left.cpu = Math.max(0, left.cpu - requests.cpu);
    left.memory = Math.max(0, left.memory - requests.memory);
    left.storage = Math.max(0, left.storage - requests.storage);
    left.pods -= 1;
    for (const [name, amount] of requests.others)
      left.others.set(name, Math.max(0, (left.others.get(name) ?? 0) - amount));
  }
  return left;
}

/** Adds a node that is yet to come, with the share of DaemonSets that will run there on it. */
export function addNewNode(
  state: ClusterState,
  template: NodeTemplate,
  name: string,
  daemons: readonly FitPod[] = [],
): NodeState {
  const node = nodeOf(template, name);
  const at = state.addNode(node);
  for (const daemon of daemonsOn(node, daemons)) state.place(daemon, name);
  return at;
}
