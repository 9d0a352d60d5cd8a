import { type CloudProfile, DEFAULT_RANGES } from '../api/cloudprofile.ts';
import { LABELS } from '../api/group.ts';
import type { Seed } from '../api/seed.ts';
import { type Shoot, shootProfileName } from '../api/shoot.ts';
import { profileNameOf, type WorkerCluster } from '../api/workercluster.ts';
import { keyOf } from '../kube/resources.ts';

import type { TakenRanges } from './allocate.ts';

/** The garden's objects with address ranges. */
interface Occupants {
  readonly clusters: readonly WorkerCluster[];
  readonly shoots: readonly Shoot[];
  readonly seeds: readonly Seed[];
  readonly profile: (name: string) => CloudProfile | undefined;
}

/**
 * Ranges that a new cluster of a mesh must not get, besides the mesh's own: those of seeds, of nodes, and of all
 * clusters outside any mesh, though these share the same ones. Clusters of other meshes do not count. Pure.
 * @param isKnown whether a mesh has an entry for the cluster, by `namespace/name`
 */
export function takenIn(
  { clusters, shoots, seeds, profile }: Occupants,
  mesh: string,
  isKnown: (key: string) => boolean,
): TakenRanges {
  const ranges = new Set<string | undefined>([DEFAULT_RANGES.nodes]);
  const ids: number[] = [];
  for (const { spec } of seeds)
    for (const range of [spec.networks.pods, spec.networks.services, spec.networks.nodes]) ranges.add(range);
  const shot = new Set<string>();
  for (const shoot of shoots) {
    const key = keyOf(shoot);
    shot.add(key);
    const { [LABELS.mesh]: its, [LABELS.clusterID]: id } = shoot.metadata.labels ?? {};
    ranges.add(shoot.spec.networking?.nodes);
    if (isKnown(key) || (its !== undefined && its !== mesh)) continue;
    // The receipt of the mesh was lost.
    if (its === mesh && Number.isSafeInteger(Number(id))) ids.push(Number(id));
    const { pods, services } = shoot.spec.networking ?? {};
    const defaults = profile(shootProfileName(shoot.spec))?.spec.defaults;
    ranges
      .add(pods ?? defaults?.pods ?? DEFAULT_RANGES.pods)
      .add(services ?? defaults?.services ?? DEFAULT_RANGES.services);
  }
  for (const cluster of clusters) {
    const { networking } = cluster.spec;
    ranges.add(networking?.nodes);
    if (shot.has(keyOf(cluster)) || isKnown(keyOf(cluster))) continue;
    const isMade = cluster.status?.mode === 'Managed' && !cluster.spec.adopt;
    const defaults = isMade ? { ...DEFAULT_RANGES, ...profile(profileNameOf(cluster))?.spec.defaults } : undefined;
    ranges.add(networking?.pods ?? defaults?.pods).add(networking?.services ?? defaults?.services);
  }
  return { ranges: [...ranges].filter((range) => range !== undefined), ids };
}
