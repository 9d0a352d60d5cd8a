import { LABELS } from '../../operator/api/group.ts';
import { machineName } from '../../operator/api/names.ts';
import { formatBytes, formatCpu } from '../../operator/api/quantity.ts';
import { KubeApiError } from '../../operator/kube/errors.ts';
import { conditionIsTrue, NODES, type Node, PODS, type Pod } from '../../operator/kube/resources.ts';
import type { Machine, Pool, Provider, ProviderContext } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import { followPool, type Marks, nodeLabels, nodesOf, ZONE_LABEL } from '../nodes.ts';
import { profileProblems } from '../validate.ts';
import { KWOK_ANNOTATION, kwokObjects } from './kwok.ts';

/**
 * Nodes that only look like nodes, on a real control plane: takes any profile. A machine is its Node object; kwok, beside
 * the control plane, plays the kubelets.
 */
export const simulated: Provider = {
  name: 'simulated',
  simulated: true,
  needsBootstrapToken: false,

  validate: profileProblems,

  async controlPlaneExtras(ctx) {
    // Its namespace holds the cluster's CA as well, so fewer rights would protect nothing.
    return kwokObjects(ctx, await ctx.componentKubeconfig('kwok', ['system:masters']));
  },

  async reconcilePool(ctx, pool) {
    if (!ctx.shoot) return;
    const nodes = await nodesOf(ctx.shoot, pool.name);
    const alive = nodes.filter((node) => !node.metadata.deletionTimestamp);
    const missing = pool.count - alive.length;
    if (missing > 0) {
      const taken = new Set(nodes.map((node) => node.metadata.name));
      for (let index = 0, made = 0; made < missing; index++) {
        if (taken.has(machineName(ctx.technicalID, pool.name, index))) continue;
        await makeNode(ctx, simulatedNode(ctx, pool, index));
        made++;
      }
    }
    const wanted = marksOf(ctx, pool);
    for (const node of alive) {
      const before = JSON.parse(node.metadata.annotations?.[MARKS_ANNOTATION] ?? 'null') as Marks | null;
      await followPool(ctx.shoot, [node], wanted, before ?? wanted);
      if (before && JSON.stringify(before) !== JSON.stringify(wanted)) {
        const annotations = { [MARKS_ANNOTATION]: JSON.stringify(wanted) };
        await ctx.shoot.mergePatch(NODES, node.metadata.name, undefined, { metadata: { annotations } });
      }
      await becomeType(ctx, pool, node);
    }
  },

  async listMachines(ctx) {
    return ctx.shoot ? (await nodesOf(ctx.shoot)).map(machineOf) : [];
  },

  async removeMachines(ctx, _pool, names) {
    if (!ctx.shoot) return;
    for (const name of names) await removeNode(ctx, name);
  },

  async deletePool(ctx, name) {
    if (!ctx.shoot) return;
    for (const node of await nodesOf(ctx.shoot, name)) await removeNode(ctx, node.metadata.name);
  },

  // There is nothing outside the cluster itself: its nodes go with its control plane.
  async deleteAll() {},
};

const MARKS_ANNOTATION = 'multi-cluster.demo.io/node-marks';
/** Resource under which pods ask for GPUs. */
const GPU = 'nvidia.com/gpu';

const marksOf = (ctx: Pick<ProviderContext, 'region'>, pool: Pool): Marks => ({
  labels: nodeLabels(ctx, pool),
  taints: pool.taints,
});

/** Node number `index` of a pool; the same at every call. */
export function simulatedNode(
  ctx: Pick<ProviderContext, 'kubernetesVersion' | 'profile' | 'region' | 'technicalID'>,
  pool: Pool,
  index: number,
): Node {
  const name = machineName(ctx.technicalID, pool.name, index);
  const marks = marksOf(ctx, pool);
  const zone = pool.zones[index % pool.zones.length];
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
      annotations: { ...KWOK_ANNOTATION, [MARKS_ANNOTATION]: JSON.stringify(marks) },
    },
    spec: {
      providerID: `simulated:///${zone ?? ctx.region}/${name}`,
      ...(pool.taints.length > 0 && { taints: pool.taints }),
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

async function makeNode(ctx: ProviderContext, node: Node): Promise<void> {
  try {
    await ctx.shoot!.create(node);
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isAlreadyExists)) throw error;
  }
}

/** A node of another machine type or version becomes one of this: a simulated roll-out takes no time. */
async function becomeType(ctx: ProviderContext, pool: Pool, node: Node): Promise<void> {
  const { capacity, allocatable, nodeInfo } = statusOf(ctx, pool, node.metadata.name);
  const same =
    node.status?.nodeInfo?.kubeletVersion === nodeInfo.kubeletVersion &&
    Object.entries(capacity).every(([name, quantity]) => node.status?.capacity?.[name] === quantity);
  if (same) return;
  const status = { capacity, allocatable, nodeInfo };
  await ctx.shoot!.mergePatch(NODES, node.metadata.name, undefined, { status }, { subresource: 'status' });
}

/** Pods of a node that is gone would stay for 40 s, until the controller manager is sure. */
async function removeNode(ctx: ProviderContext, name: string): Promise<void> {
  const shoot = ctx.shoot!;
  const pods = await shoot.list<Pod>(PODS, { fieldSelector: `spec.nodeName=${name}` });
  await shoot.delete(NODES, name);
  for (const pod of pods.items) {
    await shoot.delete(PODS, pod.metadata.name, pod.metadata.namespace, { gracePeriodSeconds: 0 });
  }
}

function machineOf(node: Node): Machine {
  const { name, labels, creationTimestamp, deletionTimestamp } = node.metadata;
  return {
    name,
    pool: labels?.[LABELS.pool] ?? '',
    nodeName: name,
    phase: deletionTimestamp ? 'Terminating' : 'Running',
    ready: !deletionTimestamp && conditionIsTrue(node, 'Ready'),
    createdAt: creationTimestamp ?? '',
  };
}
