import type { AgentPoolArgs } from '@pulumi/azure-native/containerservice/agentPool.js';
import { LABELS } from '../../operator/api/group.ts';
import type { KubeTaint } from '../../operator/kube/resources.ts';
import type { CloudPool, ManagedClusterInputs } from '../cloud.ts';
import { DEFAULT_PODS } from '../machine-types.ts';
import { POOL_TAG, tagsOf } from '../tags.ts';
import { agentPoolName, SYSTEM_POOL } from './names.ts';

/** Arguments of an agent pool without its name and cluster; plain values. */
export type AgentPoolPlan = Omit<AgentPoolArgs, 'resourceGroupName' | 'resourceName' | 'agentPoolName'>;

type Cluster = Pick<ManagedClusterInputs, 'owner' | 'zones' | 'kubernetesVersion' | 'network'>;

/**
 * Label and taint that AKS adds to every spot pool (azure-aks-docs spot-node-pool.md). If they were not declared, each
 * refresh would report drift, and their removal is refused.
 */
const SPOT_MARK = { key: 'kubernetes.azure.com/scalesetpriority', value: 'spot' } as const;

/**
 * A taint as AKS' text; without `=` it is an "invalid taint spec", even without a value
 * (hashicorp/terraform-provider-azurerm pull 32269).
 */
export const taintText = ({ key, value, effect }: KubeTaint): string => `${key}=${value ?? ''}:${effect}`;

const onEveryPool = ({ kubernetesVersion, network }: Cluster): AgentPoolPlan => ({
  type: 'VirtualMachineScaleSets',
  osType: 'Linux',
  osSKU: 'Ubuntu',
  // Explicit, since AKS chooses an ephemeral disk where it fits into the machine's cache, and another kind
  // otherwise.
  osDiskType: 'Managed',
  enableNodePublicIP: false,
  vnetSubnetID: network.subnets[0]!.id,
  maxPods: DEFAULT_PODS,
  orchestratorVersion: kubernetesVersion,
  upgradeSettings: { maxSurge: '33%' },
});

/** Zones of a pool, by default the cluster's; empty where the region has none. */
export const poolZonesOf = (pool: Pick<CloudPool, 'zones'>, zones: readonly string[]): string[] =>
  pool.zones.length > 0 ? pool.zones : [...zones];

const spread = (zones: string[]) => (zones.length > 0 ? { availabilityZones: zones } : {});

/** Whether an autoscaler decides how many nodes the pool has. */
export const isPoolAutoscaled = ({ desired }: CloudPool): boolean => desired === undefined;

/**
 * Number of nodes to declare. Azure requires a number between minimum and maximum also for an autoscaled pool, and
 * scales to it: so the present number is used, within the limits.
 */
export const declaredCountOf = ({ minimum, maximum, desired }: CloudPool, now = minimum): number =>
  desired ?? Math.min(Math.max(now, minimum), maximum);

const size = (pool: CloudPool, now: number | undefined): AgentPoolPlan => ({
  count: declaredCountOf(pool, now),
  ...(isPoolAutoscaled(pool)
    ? { enableAutoScaling: true, minCount: pool.minimum, maxCount: pool.maximum }
    : { enableAutoScaling: false }),
});

/** Agent pool of a pool with `now` nodes, if it exists. The VM size implies arm64. */
export function agentPoolOf(pool: CloudPool, cluster: Cluster, now?: number): AgentPoolPlan {
  return {
    ...onEveryPool(cluster),
    mode: 'User',
    vmSize: pool.machineType,
    ...size(pool, now),
    ...spread(poolZonesOf(pool, cluster.zones)),
    ...(pool.diskGiB !== undefined && { osDiskSizeGB: pool.diskGiB }),
    ...(pool.gpu > 0 && { gpuProfile: { driver: 'Install' } }),
    // -1: at most the on-demand price.
    ...(pool.spot && { scaleSetPriority: 'Spot', scaleSetEvictionPolicy: 'Delete', spotMaxPrice: -1 }),
    nodeLabels: { ...pool.labels, ...(pool.spot && { [SPOT_MARK.key]: SPOT_MARK.value }), [LABELS.pool]: pool.name },
    nodeTaints: [...pool.taints, ...(pool.spot ? [{ ...SPOT_MARK, effect: 'NoSchedule' }] : [])].map(taintText),
    tags: { ...tagsOf(cluster.owner), [POOL_TAG]: pool.name },
  };
}

/** Subnets of an adopted cluster's nodes and pods, as far as its creator chose them. */
export interface TheirAddresses {
  /** Absent: in the network created by AKS. */
  vnetSubnetID?: string;
  podSubnetID?: string;
}

/** An agent pool in an adopted cluster: the maximum of pods per node is left to AKS. */
export function agentPoolBeside(
  addresses: TheirAddresses,
  pool: CloudPool,
  cluster: Omit<Cluster, 'network'>,
  now?: number,
): AgentPoolPlan {
  const network = { network: '', subnets: [{ id: '' }] };
  const { maxPods: _, vnetSubnetID: _none, ...plan } = agentPoolOf(pool, { ...cluster, network }, now);
  return { ...plan, ...addresses };
}

/**
 * Immutable properties of an agent pool (azure-aks-docs: use-nvidia-gpu.md, spot-node-pool.md, concepts-storage.md).
 */
const FIXED = [
  'vmSize',
  'availabilityZones',
  'osDiskSizeGB',
  'osDiskType',
  'maxPods',
  'scaleSetPriority',
  'gpuProfile',
  'vnetSubnetID',
] as const satisfies readonly (keyof AgentPoolPlan)[];

/** Name of a pool's agent pool in AKS; see names.ts. */
export const agentPoolNameOf = (pool: CloudPool, plan: AgentPoolPlan): string =>
  agentPoolName(
    pool.name,
    FIXED.map((property) => plan[property] ?? null),
  );

/**
 * System pool for AKS' own workloads (CoreDNS, metrics-server, konnectivity): the minimum of azure-aks-docs
 * use-system-pools.md, two nodes of 4 CPUs outside the B series, closed to other workloads, so that every other pool
 * may be spot, arm64, or empty.
 */
export const systemPool = (cluster: Cluster): AgentPoolPlan & { name: string } => ({
  ...onEveryPool(cluster),
  name: SYSTEM_POOL,
  mode: 'System',
  vmSize: 'Standard_D4s_v5',
  count: 2,
  enableAutoScaling: false,
  ...spread([...cluster.zones]),
  nodeTaints: ['CriticalAddonsOnly=true:NoSchedule'],
  tags: { ...tagsOf(cluster.owner), [POOL_TAG]: SYSTEM_POOL },
});
