import type { Hub } from '../../api/hub.ts';
import { formatBytes, formatCpu, readBytes, readCount, readCpu } from '../../api/quantity.ts';
import type { OfferInputs } from '../../burst/clusters/offer.ts';
import type { FitPod, NodeTemplate } from '../../burst/fit/model.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import type { HubAmounts } from '../../hubs/contract.ts';
import { hubType } from '../../hubs/index.ts';
import type { Node, Pod } from '../../kube/resources.ts';

type Allocatable = NodeTemplate['allocatable'];
const GPU = 'nvidia.com/gpu';

/** Room that the hub counts for a future node. undefined: all of it. Pure. */
export function countsOf({ spec }: Hub): OfferInputs['counts'] {
  const type = hubType(spec.type);
  if (!type?.counts) return undefined;
  return (free, size) => withCounted(free, type.counts!([amountsOf(size)], spec));
}

/** Room that the hub counts for a new node of a cluster with these node sizes. Pure. */
export function countedTemplate({ spec }: Hub, template: NodeTemplate, sizes: readonly HubAmounts[]): NodeTemplate {
  const counted = hubType(spec.type)?.counts?.(sizes, spec);
  return counted ? { ...template, allocatable: withCounted(template.allocatable, counted) } : template;
}

function withCounted(allocatable: Allocatable, counted: (free: HubAmounts) => HubAmounts): Allocatable {
  const { cpu, memory, gpu } = roomIn(counted(amountsOf(allocatable)));
  const others = new Map(allocatable.others);
  if (others.has(GPU)) others.set(GPU, gpu);
  return { ...allocatable, cpu, memory, others };
}

/**
 * Free room that a cluster's hub does not count, as placeholder pods: the hub places nothing there. Pure.
 * @returns function of a node with its pods
 */
export function uncountedBy(
  { spec }: Hub,
  sizes: readonly HubAmounts[],
): (node: Node, pods: readonly Pod[]) => FitPod[] {
  const counted = hubType(spec.type)?.counts?.(sizes, spec);
  if (!counted) return () => [];
  return (node, pods) => {
    const { available = {} } = clusterResource([node], pods);
    const [free, left] = [roomIn(available), roomIn(counted(available))];
    const lost = (key: keyof typeof free) => Math.max(0, free[key] - left[key]);
    const [cpu, memory, gpu] = [lost('cpu'), lost('memory'), lost('gpu')];
    if (cpu + memory + gpu === 0) return [];
    return [podOf({ cpu: formatCpu(cpu), memory: formatBytes(memory), ...(gpu > 0 && { [GPU]: String(gpu) }) })];
  };
}

const roomIn = ({ cpu = '0', memory = '0', gpu = '0' }: HubAmounts) => ({
  cpu: readCpu(cpu),
  memory: readBytes(memory),
  gpu: readCount(gpu),
});
const amountsOf = ({ cpu, memory, others }: Allocatable): HubAmounts => ({
  cpu: formatCpu(cpu),
  memory: formatBytes(memory),
  gpu: String(others.get(GPU) ?? 0),
});

const podOf = (requests: Record<string, string>): FitPod =>
  fitPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'uncounted', namespace: 'kube-system' },
    spec: { containers: [{ name: 'uncounted', resources: { requests } }] },
  });
