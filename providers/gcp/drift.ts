import type { Change, WantedCluster } from '../cloud.ts';

/**
 * What Google itself changes all the time: versions of a control plane (patches come by themselves, in every channel and in none),
 * versions of a key (it rotates), the groups behind a node pool, and what is read twice.
 */
const ITS_OWN: Readonly<Record<string, readonly string[]>> = {
  'gcp:container/cluster:Cluster': ['masterVersion', 'nodeVersion', 'nodePools', 'nodeConfig', 'operation'],
  'gcp:container/nodePool:NodePool': ['instanceGroupUrls', 'managedInstanceGroupUrls', 'operation'],
  'gcp:kms/cryptoKey:CryptoKey': ['primaries'],
};

/** Where others decided how a cluster is upgraded, Google may upgrade nodes too. */
const UPGRADED: Readonly<Record<string, readonly string[]>> = { 'gcp:container/nodePool:NodePool': ['version'] };

/** The changes that somebody made: without Google's own. */
export function driftOf(changes: readonly Change[], { adopt }: Pick<WantedCluster, 'adopt'>): Change[] {
  return changes.flatMap((change) => {
    const type = change.resource.split(' ')[0]!;
    const expected = [...(ITS_OWN[type] ?? []), ...((adopt && UPGRADED[type]) ?? [])];
    if (!change.properties) return [change];
    const properties = change.properties.filter((property) => !expected.includes(property.split(/[.[]/)[0]!));
    return properties.length > 0 ? [{ ...change, properties }] : [];
  });
}
