import { LABELS } from '../../operator/api/group.ts';
import { machineName } from '../../operator/api/names.ts';
import { formatBytes, formatCpu } from '../../operator/api/quantity.ts';
import { NODES, type Node } from '../../operator/kube/resources.ts';
import type { Machine, Pool, ProviderContext } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import { followPool, type Marks, nodeLabels, registeredTaints, ZONE_LABEL } from '../nodes.ts';
import type { GivenMachine } from './cloud-model.ts';
import { KWOK_ANNOTATION, READY_AT_ANNOTATION } from './kwok.ts';

const MARKS_ANNOTATION = 'multi-cluster.demo.io/node-marks';
/** RFC 3339: when the cloud interrupts the machine. */
const LOST_AT_ANNOTATION = 'multi-cluster.demo.io/simulated-lost-at';
/** Resource name for GPUs in pods. */
const GPU = 'nvidia.com/gpu';

const marksOf = (ctx: Pick<ProviderContext, 'region'>, pool: Pool): Marks => ({
  labels: nodeLabels(ctx, pool),
  taints: pool.taints,
});

/** Time in an annotation, milliseconds; Infinity without it. */
function timeOf(node: Node, annotation: string): number {
  const text = node.metadata.annotations?.[annotation];
  return text === undefined ? Number.POSITIVE_INFINITY : Date.parse(text);
}

/** Whether the cloud has interrupted the node's machine by that moment (milliseconds). */
export const isNodeLost = (node: Node, time: number): boolean => timeOf(node, LOST_AT_ANNOTATION) <= time;

/** Node of a machine granted at `time`; deterministic. */
export function simulatedNode(
  ctx: Pick<ProviderContext, 'kubernetesVersion' | 'profile' | 'region' | 'technicalID'>,
  pool: Pool,
  machine: GivenMachine & { index: number },
  time: number,
): Node {
  const { index, zone, readyAfterMs, lostAfterMs } = machine;
  const name = machineName(ctx.technicalID, pool.name, index);
  const marks = marksOf(ctx, pool);
  const at = (afterMs: number) => new Date(time + afterMs).toISOString();
  const architecture = architectureOf(ctx, pool);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        ...marks.labels,
        ...(zone && { [ZONE_LABEL]: zone }),
        'kubernetes.io/arch': architecture,
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        type: 'kwok',
      },
      annotations: {
        ...KWOK_ANNOTATION,
        [MARKS_ANNOTATION]: JSON.stringify(marks),
        ...(readyAfterMs > 0 && { [READY_AT_ANNOTATION]: at(readyAfterMs) }),
        ...(lostAfterMs !== undefined && { [LOST_AT_ANNOTATION]: at(lostAfterMs) }),
      },
    },
    spec: {
      providerID: `simulated:///${zone ?? ctx.region}/${name}`,
      ...(registeredTaints(pool).length > 0 && { taints: registeredTaints(pool) }),
    },
    status: statusOf(ctx, pool, name),
  };
}

const architectureOf = (ctx: Pick<ProviderContext, 'profile'>, pool: Pool): string =>
  ctx.profile.spec.machineTypes.find((type) => type.name === pool.machineType)?.architecture ?? 'amd64';

function statusOf(ctx: Pick<ProviderContext, 'kubernetesVersion' | 'profile'>, pool: Pool, name: string) {
  const capacity = capacityOf(ctx.profile, pool.machineType);
  const resources: Record<string, string> = {
    cpu: formatCpu(capacity.millicores),
    memory: formatBytes(capacity.bytes),
    pods: String(capacity.pods),
    ...(capacity.gpus > 0 && { [GPU]: String(capacity.gpus) }),
  };
  const version = `v${ctx.kubernetesVersion}`;
  return {
    addresses: [{ type: 'Hostname', address: name }],
    capacity: resources,
    allocatable: resources,
    nodeInfo: {
      architecture: architectureOf(ctx, pool),
      bootID: '',
      containerRuntimeVersion: 'simulated://',
      kernelVersion: 'simulated',
      kubeProxyVersion: version,
      kubeletVersion: version,
      machineID: '',
      operatingSystem: 'linux',
      osImage: 'simulated',
      systemUUID: '',
    },
  };
}

/** Applies the pool's labels and taints to a node. */
export async function followMarks(ctx: ProviderContext, pool: Pool, node: Node): Promise<void> {
  const wanted = marksOf(ctx, pool);
  const before = JSON.parse(node.metadata.annotations?.[MARKS_ANNOTATION] ?? 'null') as Marks | null;
  await followPool(ctx.shoot!, [node], wanted, before ?? wanted);
  if (before && JSON.stringify(before) !== JSON.stringify(wanted)) {
    const annotations = { [MARKS_ANNOTATION]: JSON.stringify(wanted) };
    await ctx.shoot!.mergePatch(NODES, node.metadata.name, undefined, { metadata: { annotations } });
  }
  await becomeType(ctx, pool, node);
}

/** Changes a node of an outdated machine type or version in place: a simulated roll takes no time. */
async function becomeType(ctx: ProviderContext, pool: Pool, node: Node): Promise<void> {
  const { capacity, allocatable, nodeInfo } = statusOf(ctx, pool, node.metadata.name);
  const same =
    node.status?.nodeInfo?.kubeletVersion === nodeInfo.kubeletVersion &&
    Object.entries(capacity).every(([name, quantity]) => node.status?.capacity?.[name] === quantity);
  if (same) return;
  const status = { capacity, allocatable, nodeInfo };
  await ctx.shoot!.mergePatch(NODES, node.metadata.name, undefined, { status }, { subresource: 'status' });
}

/** The machine of a node at a moment, milliseconds. */
export function machineOfNode(node: Node, time: number): Machine {
  const { name, labels, creationTimestamp, deletionTimestamp } = node.metadata;
  const readyAt = timeOf(node, READY_AT_ANNOTATION);
  const pending = Number.isFinite(readyAt) && readyAt > time;
  return {
    name,
    pool: labels?.[LABELS.pool] ?? '',
    nodeName: name,
    phase: deletionTimestamp ? 'Terminating' : pending ? 'Pending' : 'Running',
    ready: !deletionTimestamp && !pending,
    createdAt: creationTimestamp ?? '',
  };
}
