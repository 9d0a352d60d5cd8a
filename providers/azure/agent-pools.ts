import type { AgentPoolArgs } from '@pulumi/azure-native/containerservice/agentPool.js';
import { LABELS } from '../../operator/api/group.ts';
import type { KubeTaint } from '../../operator/kube/resources.ts';
import type { CloudPool, ManagedClusterInputs } from '../cloud.ts';
import { DEFAULT_PODS } from '../machine-types.ts';
import { POOL_TAG, tagsOf } from '../tags.ts';
import { agentPoolName, SYSTEM_POOL } from './names.ts';

/** What an agent pool is, apart from its name and its cluster; plain values. */
export type AgentPoolPlan = Omit<AgentPoolArgs, 'resourceGroupName' | 'resourceName' | 'agentPoolName'>;

type Cluster = Pick<ManagedClusterInputs, 'owner' | 'zones' | 'kubernetesVersion' | 'network'>;

/**
 * AKS puts this label and taint on every spot pool, wanted or not (azure-aks-docs spot-node-pool.md). Left out, each refresh would
 * find them as drift, and taking them away is refused.
 */
const SPOT_MARK = { key: 'kubernetes.azure.com/scalesetpriority', value: 'spot' } as const;

/**
 * AKS takes a taint as text; without a `=` it is "invalid taint spec", also where there is no value (hashicorp/terraform-provider-azurerm
 * pull 32269).
 */
export const taintText = ({ key, value, effect }: KubeTaint): string => `${key}=${value ?? ''}:${effect}`;

const onEveryPool = ({ kubernetesVersion, network }: Cluster): AgentPoolPlan => ({
  type: 'VirtualMachineScaleSets',
  osType: 'Linux',
  osSKU: 'Ubuntu',
  // Not left to AKS, which takes an ephemeral disk where the size fits into the machine's cache and another kind where not.
  osDiskType: 'Managed',
  enableNodePublicIP: false,
  vnetSubnetID: network.subnets[0]!.id,
  maxPods: DEFAULT_PODS,
  orchestratorVersion: kubernetesVersion,
  upgradeSettings: { maxSurge: '33%' },
});

/** The zones of a pool, those of the cluster when it names none; nothing where the region has none. */
export const poolZonesOf = (pool: Pick<CloudPool, 'zones'>, zones: readonly string[]): string[] =>
  pool.zones.length > 0 ? pool.zones : [...zones];

const spread = (zones: string[]) => (zones.length > 0 ? { availabilityZones: zones } : {});

/** Whether an autoscaler decides how many nodes the pool has. */
export const isPoolAutoscaled = ({ desired }: CloudPool): boolean => desired === undefined;

/**
 * How many nodes to declare. Azure wants a number of an autoscaled pool too, between minimum and maximum, and goes there: so it is
 * the number that there is now, as far as it may be.
 */
export const declaredCountOf = ({ minimum, maximum, desired }: CloudPool, now = minimum): number =>
  desired ?? Math.min(Math.max(now, minimum), maximum);

const size = (pool: CloudPool, now: number | undefined): AgentPoolPlan => ({
  count: declaredCountOf(pool, now),
  ...(isPoolAutoscaled(pool)
    ? { enableAutoScaling: true, minCount: pool.minimum, maxCount: pool.maximum }
    : { enableAutoScaling: false }),
});

/** The agent pool that stands for a pool of ours, which has `now` nodes if it exists. arm64 needs no word: the VM size says it. */
export function agentPoolOf(pool: CloudPool, cluster: Cluster, now?: number): AgentPoolPlan {
  return {
    ...onEveryPool(cluster),
    mode: 'User',
    vmSize: pool.machineType,
    ...size(pool, now),
    ...spread(poolZonesOf(pool, cluster.zones)),
    ...(pool.diskGiB !== undefined && { osDiskSizeGB: pool.diskGiB }),
    ...(pool.gpu > 0 && { gpuProfile: { driver: 'Install' } }),
    // -1: never more than the price on demand.
    ...(pool.spot && { scaleSetPriority: 'Spot', scaleSetEvictionPolicy: 'Delete', spotMaxPrice: -1 }),
    nodeLabels: { ...pool.labels, ...(pool.spot && { [SPOT_MARK.key]: SPOT_MARK.value }), [LABELS.pool]: pool.name },
    nodeTaints: [...pool.taints, ...(pool.spot ? [{ ...SPOT_MARK, effect: 'NoSchedule' }] : [])].map(taintText),
    tags: { ...tagsOf(cluster.owner), [POOL_TAG]: pool.name },
  };
}

/** Where the nodes and pods of a cluster that others made get their addresses, as far as they chose that. */
export interface TheirAddresses {
  /** Absent: in the network that AKS made. */
  vnetSubnetID?: string;
  podSubnetID?: string;
}

/** The agent pool beside those of a cluster that others made: how many pods a node there can have is AKS' to say. */
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

/** What AKS cannot change in an agent pool that exists (azure-aks-docs: use-nvidia-gpu.md, spot-node-pool.md, concepts-storage.md). */
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

/** AKS' name of the agent pool that stands for a pool of ours; see names.ts. */
export const agentPoolNameOf = (pool: CloudPool, plan: AgentPoolPlan): string =>
  agentPoolName(
    pool.name,
    FIXED.map((property) => plan[property] ?? null),
  );

/**
 * The pool of what AKS itself runs in a cluster (CoreDNS, metrics-server, konnectivity): the smallest that
 * azure-aks-docs use-system-pools.md lets be one, two nodes of 4 CPUs that are not of B series, and closed to all else, so
 * that every pool of people may be spot, arm64, or have no node at all.
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
