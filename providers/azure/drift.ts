import type { Change, WantedCluster } from '../cloud.ts';
import { isPoolAutoscaled } from './agent-pools.ts';

/**
 * Properties that Azure changes itself. Agent pools are separate resources that also appear in a list of the cluster.
 */
const ITS_OWN: Readonly<Record<string, readonly string[]>> = {
  'azure-native:containerservice:ManagedCluster': ['agentPoolProfiles', 'eTag', 'provisioningState'],
  'azure-native:containerservice:AgentPool': ['eTag', 'nodeImageVersion', 'provisioningState'],
};

/** Properties that Azure changes where others chose automatic upgrades. */
const UPGRADED: Readonly<Record<string, readonly string[]>> = {
  'azure-native:containerservice:ManagedCluster': ['kubernetesVersion', 'currentKubernetesVersion'],
  'azure-native:containerservice:AgentPool': ['orchestratorVersion', 'currentOrchestratorVersion'],
};

/** Changes by people: without Azure's own, and without autoscaled pool sizes. */
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
