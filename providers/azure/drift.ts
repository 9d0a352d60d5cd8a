import type { Change, WantedCluster } from '../cloud.ts';
import { isPoolAutoscaled } from './agent-pools.ts';

/**
 * What Azure itself changes all the time. Agent pools are resources of their own, and every one of them also shows in a list of
 * the cluster.
 */
const ITS_OWN: Readonly<Record<string, readonly string[]>> = {
  'azure-native:containerservice:ManagedCluster': ['agentPoolProfiles', 'eTag', 'provisioningState'],
  'azure-native:containerservice:AgentPool': ['eTag', 'nodeImageVersion', 'provisioningState'],
};

/** Where others decided how a cluster is upgraded, Azure may do it by itself. */
const UPGRADED: Readonly<Record<string, readonly string[]>> = {
  'azure-native:containerservice:ManagedCluster': ['kubernetesVersion', 'currentKubernetesVersion'],
  'azure-native:containerservice:AgentPool': ['orchestratorVersion', 'currentOrchestratorVersion'],
};

/** The changes that somebody made: without Azure's own, and without the sizes of pools that the autoscaler decides. */
export function driftOf(
  changes: readonly Change[],
  { pools, adopt }: Pick<WantedCluster, 'pools' | 'adopt'>,
): Change[] {
  const autoscaled = new Set(pools.filter(isPoolAutoscaled).map(({ name }) => `pool-${name}`));
  return changes.flatMap((change) => {
    const [type = '', name = ''] = change.resource.split(' ');
    const expected = [
      ...(ITS_OWN[type] ?? []),
      ...((adopt && UPGRADED[type]) ?? []),
      ...(autoscaled.has(name) ? ['count'] : []),
    ];
    if (!change.properties) return [change];
    const properties = change.properties.filter((property) => !expected.includes(property.split(/[.[]/)[0]!));
    return properties.length > 0 ? [{ ...change, properties }] : [];
  });
}
