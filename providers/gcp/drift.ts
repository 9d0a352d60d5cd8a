import type { Change, WantedCluster } from '../cloud.ts';

/**
 * Properties that Google changes itself: control plane versions (automatic patches, with or without a channel), key
 * versions (rotation), the groups behind a node pool, and duplicates of other resources.
 */
const ITS_OWN: Readonly<Record<string, readonly string[]>> = {
  'gcp:container/cluster:Cluster': ['masterVersion', 'nodeVersion', 'nodePools', 'nodeConfig', 'operation'],
  'gcp:container/nodePool:NodePool': ['instanceGroupUrls', 'managedInstanceGroupUrls', 'operation'],
  'gcp:kms/cryptoKey:CryptoKey': ['primaries'],
};

/** Properties that Google also changes where others chose automatic upgrades. */
const UPGRADED: Readonly<Record<string, readonly string[]>> = { 'gcp:container/nodePool:NodePool': ['version'] };

/** Changes by people, without Google's own. */
export function driftOf(changes: readonly Change[], { adopt }: Pick<WantedCluster, 'adopt'>): Change[] {
  return changes.flatMap((change) => {
    const type = change.resource.split(' ')[0]!;
    const expected = [...(ITS_OWN[type] ?? []), ...((adopt && UPGRADED[type]) ?? [])];
    if (!change.properties) return [change];
    const properties = change.properties.filter((property) => !expected.includes(property.split(/[.[]/)[0]!));
    return properties.length > 0 ? [{ ...change, properties }] : [];
  });
}
