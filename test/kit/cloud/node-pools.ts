import { LABELS } from '../../../operator/api/group.ts';
import type { CloudName, CloudResource, Properties } from './model.ts';

/** Machines of one pool, as the cloud was last asked for them. */
export interface NodePool {
  /** Name of our pool, by its label. */
  name: string;
  machineType: string;
  count: number;
}

interface PoolType {
  type: string;
  cluster(inputs: Properties): string;
  pool(inputs: Properties): Omit<NodePool, 'name'> & { labels: Record<string, string> };
}

const POOLS: Readonly<Record<CloudName, PoolType>> = {
  aws: {
    type: 'aws:eks:NodeGroup',
    cluster: ({ clusterName }) => clusterName,
    pool: ({ labels, instanceTypes, scalingConfig }) => ({
      labels,
      machineType: instanceTypes[0],
      count: Number(scalingConfig.desiredSize),
    }),
  },
  gcp: {
    type: 'gcp:container:NodePool',
    cluster: ({ cluster }) => cluster,
    pool: ({ nodeConfig, nodeCount, initialNodeCount, nodeLocations }) => ({
      labels: nodeConfig.labels,
      machineType: nodeConfig.machineType,
      // In each zone.
      count: Number(nodeCount ?? initialNodeCount ?? 0) * Math.max(1, nodeLocations?.length ?? 1),
    }),
  },
  'azure-native': {
    type: 'azure-native:containerservice:AgentPool',
    cluster: ({ resourceName }) => resourceName,
    pool: ({ nodeLabels, vmSize, count }) => ({ labels: nodeLabels, machineType: vmSize, count: Number(count ?? 0) }),
  },
};

/** The pools of a managed cluster, among all that exists, by the name that our label gives them; GKE has one for each zone. */
export function nodePoolsOf(cluster: CloudResource, resources: readonly CloudResource[]): NodePool[] {
  const kind = POOLS[cluster.cloud];
  const counts = new Map<string, NodePool>();
  for (const one of resources) {
    if (one.type !== kind.type || one.account !== cluster.account || kind.cluster(one.inputs) !== cluster.name)
      continue;
    const { labels, ...pool } = kind.pool(one.inputs);
    const name = labels?.[LABELS.pool];
    if (name !== undefined) counts.set(name, { ...pool, name, count: pool.count + (counts.get(name)?.count ?? 0) });
  }
  return [...counts.values()];
}
