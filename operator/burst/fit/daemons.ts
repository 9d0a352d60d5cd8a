import type { KubeObject, Pod } from '../../kube/resources.ts';
import { nodeMisfit } from './filters/node.ts';
import { resourceMisfits, roomFor } from './filters/resources.ts';
import type { FitNode, FitPod, NodeTemplate } from './model.ts';
import { nodeOf } from './node.ts';
import { fitPod } from './pod.ts';
import { podRequestsOf } from './requests.ts';
import type { ClusterState, NodeState } from './state.ts';

/** The fields of a DaemonSet that are used here. */
export interface DaemonSet extends KubeObject {
  spec: { template: { metadata?: { labels?: Record<string, string> }; spec: Pod['spec'] } };
}

const tolerated = (condition: string, effect: string) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect,
});

/** Tolerations that the DaemonSet controller adds to each pod. */
const TOLERATIONS = [
  tolerated('not-ready', 'NoExecute'),
  tolerated('unreachable', 'NoExecute'),
  tolerated('disk-pressure', 'NoSchedule'),
  tolerated('memory-pressure', 'NoSchedule'),
  tolerated('pid-pressure', 'NoSchedule'),
  tolerated('unschedulable', 'NoSchedule'),
];

/**
 * A DaemonSet's pod on a future node. `live`, a running pod of it, has more accurate requests than the template: a
 * LimitRange, an autoscaler or a sidecar injector may have changed them.
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
  return live ? { ...made, requests: podRequestsOf(live) } : made;
}

/**
 * DaemonSets that would run on a node. Depends on the node's properties, not on free room. One larger than the node
 * never runs there.
 */
export const daemonsOn = (node: FitNode, daemons: readonly FitPod[]): FitPod[] =>
  daemons.filter((daemon) => nodeMisfit(daemon, node) === undefined && roomFor(daemon, node, []) > 0);

/**
 * Why a DaemonSet never runs on a template's nodes although it targets them: it is too large. undefined: it runs, or
 * does not target them.
 */
export function whyTooLarge(daemon: FitPod, template: NodeTemplate): string | undefined {
  const node = nodeOf(template, template.id);
  if (nodeMisfit(daemon, node) !== undefined || roomFor(daemon, node, []) > 0) return undefined;
  const empty = { node, pods: new Map(), podCount: 0, used: { cpu: 0, memory: 0, storage: 0, others: new Map() } };
  return resourceMisfits(daemon, empty)
    .map(({ message }) => message)
    .join(', ');
}

/** A live DaemonSet pod without the affinity by which its controller pins it to its node. */
export function unpinPod(live: Pod): FitPod {
  const { affinity, ...spec } = live.spec;
  const { nodeAffinity: _, ...others } = (affinity ?? {}) as { nodeAffinity?: object };
  return fitPod({ ...live, spec: { ...spec, affinity: others } });
}

/** Room of a new node without the share of its DaemonSets. */
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

/** Adds a future node with the share of its DaemonSets. */
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
