import { type Fallback, profileNameOf, type WorkerCluster, type WorkerClusterSpec } from '../api/workercluster.ts';

/** Where a cluster, or a part of it, was made. */
export interface MadeIn {
  /** Name of the CloudProfile. */
  readonly profile: string;
  readonly region: string;
  /** Number of its place, as its spec had them then. Absent: nobody wrote it down. */
  readonly place?: number;
}

/** How many places a cluster may be made in: its own, and what it falls back to. */
const placesOf = ({ spec }: WorkerCluster): number => 1 + (spec.fallback?.length ?? 0);

/** Names of the CloudProfiles of all places of a cluster, its own first. */
export const profileNamesOf = (cluster: WorkerCluster): string[] => [
  ...new Set(inEachPlace(cluster).map(profileNameOf)),
];

/** The cluster as it would be written for each of its places, its own first. Pure. */
export const inEachPlace = (cluster: WorkerCluster): WorkerCluster[] =>
  Array.from({ length: placesOf(cluster) }, (_, place) => atPlace(cluster, place));

/**
 * The cluster as it would be written for one of its places, 0 being its own. Pure. With another profile the machine types and zones
 * of its pools mean nothing: those of the place are for all of them.
 */
export function atPlace(cluster: WorkerCluster, place: number): WorkerCluster {
  const fallback = cluster.spec.fallback?.[place - 1];
  return place === 0 || !fallback ? cluster : { ...cluster, spec: specAt(cluster.spec, fallback) };
}

function specAt(spec: WorkerClusterSpec, fallback: Fallback): WorkerClusterSpec {
  const { cloudProvider, cloudProfile, machineType, machineTypes, credentialsRef, pools } = spec;
  // Zones, too, are those of a region.
  const rest = without(spec, [
    'cloudProfile',
    'region',
    'zones',
    'machineType',
    'machineTypes',
    'credentialsRef',
    'pools',
  ]);
  const provider = fallback.cloudProvider ?? cloudProvider;
  const profile = fallback.cloudProfile ?? (fallback.cloudProvider ? undefined : cloudProfile);
  const isForeign = (profile ?? provider) !== (cloudProfile ?? cloudProvider);
  const types = fallback.machineTypes ?? (isForeign ? undefined : machineTypes);
  const named = fallback.machineTypes || isForeign ? undefined : machineType;
  const credentials = fallback.credentialsRef ?? credentialsRef;
  return {
    ...rest,
    cloudProvider: provider,
    ...(profile !== undefined && { cloudProfile: profile }),
    ...(fallback.region !== undefined && { region: fallback.region }),
    ...(fallback.zones && { zones: fallback.zones }),
    ...(named !== undefined && { machineType: named }),
    ...(types && { machineTypes: types }),
    ...(credentials && { credentialsRef: credentials }),
    ...(pools && { pools: pools.map((pool) => poolAt(pool, isForeign || fallback.machineTypes !== undefined)) }),
  };
}

type PoolSpec = NonNullable<WorkerClusterSpec['pools']>[number];

/** No pool keeps its zones. */
const poolAt = (pool: PoolSpec, retyped: boolean): PoolSpec =>
  retyped ? without(pool, ['zones', 'machineType', 'machineTypes']) : without(pool, ['zones']);

const without = <T extends object, K extends keyof T>(object: T, fields: readonly K[]): Omit<T, K> =>
  Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field as K))) as Omit<T, K>;

/**
 * The place of a cluster, pure: the one where something of it is; else the first that it has not just left for want of
 * machines; else its own.
 * @param regionOf the region that a cluster is in when it names none
 */
export function placeOf(
  cluster: WorkerCluster,
  madeIn: MadeIn | undefined,
  left: ReadonlySet<number>,
  regionOf: (cluster: WorkerCluster) => string | undefined,
): number {
  const all = Array.from({ length: placesOf(cluster) }, (_, place) => place);
  if (madeIn) {
    const there = all.filter((place) => {
      const placed = atPlace(cluster, place);
      return profileNameOf(placed) === madeIn.profile && regionOf(placed) === madeIn.region;
    });
    // Two places of one region may differ by machine types, zones or credentials alone.
    const same = there.find((place) => place === madeIn.place) ?? there[0];
    // Of a place that was taken off the list, or whose profile is gone: the name of the profile is what there is to go by.
    return same ?? all.find((place) => profileNameOf(atPlace(cluster, place)) === madeIn.profile) ?? 0;
  }
  return all.find((place) => !left.has(place)) ?? 0;
}

/** The place after this one, if there is one that the cluster has not just left. Pure. */
export const nextPlace = (cluster: WorkerCluster, place: number, left: ReadonlySet<number>): number | undefined =>
  Array.from({ length: placesOf(cluster) }, (_, other) => other).find((other) => other !== place && !left.has(other));
