import type { Hub } from '../../api/hub.ts';
import { formatBytes, formatCpu, parseBytes, parseCpu } from '../../api/quantity.ts';
import type { OfferInputs } from '../../burst/clusters/offer.ts';
import type { FitPod, NodeTemplate } from '../../burst/fit/model.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import type { Amounts } from '../../hubs/contract.ts';
import { hubType } from '../../hubs/index.ts';
import type { Node, Pod } from '../../kube/resources.ts';

/** What the hub counts of a node that is not there yet. undefined: all that it has. Pure. */
export function countsOf({ spec }: Hub): OfferInputs['counts'] {
  const type = hubType(spec.type);
  if (!type?.counts) return undefined;
  return (free, size) => roomIn(type.counts!([amountsOf(size)])(amountsOf(free)));
}

/** What a new node of a cluster, whose nodes have these sizes, has for work as the hub counts it. Pure. */
export function countedTemplate({ spec }: Hub, template: NodeTemplate, sizes: readonly Amounts[]): NodeTemplate {
  const counted = hubType(spec.type)?.counts?.(sizes);
  if (!counted) return template;
  const { allocatable } = template;
  return { ...template, allocatable: { ...allocatable, ...roomIn(counted(amountsOf(allocatable))) } };
}

/**
 * What is free on nodes of a cluster and not counted by its hub, as pods that nobody has made: a hub places nothing there, so work that waits has no
 * room in it. Pure.
 * @returns for a node with the pods on it
 */
export function uncountedBy({ spec }: Hub, sizes: readonly Amounts[]): (node: Node, pods: readonly Pod[]) => FitPod[] {
  const counted = hubType(spec.type)?.counts?.(sizes);
  if (!counted) return () => [];
  return (node, pods) => {
    const { available = {} } = clusterResource([node], pods);
    const [free, left] = [roomIn(available), roomIn(counted(available))];
    const [cpu, memory] = [free.cpu - left.cpu, free.memory - left.memory];
    return cpu > 0 || memory > 0 ? [podOf(amountsOf({ cpu: Math.max(0, cpu), memory: Math.max(0, memory) }))] : [];
  };
}

const roomIn = ({ cpu = '0', memory = '0' }: Amounts) => ({ cpu: parseCpu(cpu), memory: parseBytes(memory) });
const amountsOf = ({ cpu, memory }: { readonly cpu: number; readonly memory: number }) => ({
  cpu: formatCpu(cpu),
  memory: formatBytes(memory),
});

const podOf = (requests: Record<'cpu' | 'memory', string>): FitPod =>
  fitPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'uncounted', namespace: 'kube-system' },
    spec: { containers: [{ name: 'uncounted', resources: { requests } }] },
  });
