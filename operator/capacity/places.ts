import { type Fallback, profileNameOf, type WorkerCluster, type WorkerClusterSpec } from '../api/workercluster.ts';

/** Where a cluster, or part of it, was created. */
export interface MadeIn {
  /** Name of the CloudProfile. */
  readonly profile: string;
  readonly region: string;
  /** Number of the place in the spec at that time. Absent: not recorded. */
  readonly place?: number;
}

/** Number of places a cluster may be created in: its own and its fallbacks. */
const placesOf = ({ spec }: WorkerCluster): number => 1 + (spec.fallback?.length ?? 0);

/** Names of the CloudProfiles of all places of a cluster, its own first. */
export const profileNamesOf = (cluster: WorkerCluster): string[] => [
  ...new Set(inEachPlace(cluster).map(profileNameOf)),
];

/** The cluster's spec for each of its places, its own first. Pure. */
export const inEachPlace = (cluster: WorkerCluster): WorkerCluster[] =>
  Array.from({ length: placesOf(cluster) }, (_, place) => atPlace(cluster, place));

/**
 * The cluster's spec for one of its places, 0 being its own. Pure. With another profile the machine types and zones of
 * pools are dropped: those of the place apply to all pools.
 */
export function atPlace(cluster: WorkerCluster, place: number): WorkerCluster {
  const fallback = cluster.spec.fallback?.[place - 1];
  return place === 0 || !fallback ? cluster : { ...cluster, spec: specAt(cluster.spec, fallback) };
}

function specAt(spec: WorkerClusterSpec, fallback: Fallback): WorkerClusterSpec {
  const { cloudProvider, cloudProfile, machineType, machineTypes, credentialsRef, pools } = spec;
  // Zones belong to a region too.
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

/** A pool in another place: zones are dropped. */
const poolAt = (pool: PoolSpec, retyped: boolean): PoolSpec =>
  retyped ? without(pool, ['zones', 'machineType', 'machineTypes']) : without(pool, ['zones']);

const without = <T extends object, K extends keyof T>(object: T, fields: readonly K[]): Omit<T, K> =>
  Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field as K))) as Omit<T, K>;

/**
 * The place of a cluster. Pure. The place where part of it exists, else the first that it has not recently left for
 * lack of capacity, else its own.
 * @param regionOf region of a cluster that names none
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
    // Two places of one region may differ in machine types, zones or credentials alone.
    const same = there.find((place) => place === madeIn.place) ?? there[0];
    // The place was removed from the spec, or its profile is gone: the profile's name is matched.
    return same ?? all.find((place) => profileNameOf(atPlace(cluster, place)) === madeIn.profile) ?? 0;
  }
  return all.find((place) => !left.has(place)) ?? 0;
}

/** The next place that the cluster has not recently left, if any. Pure. */
export const nextPlace = (cluster: WorkerCluster, place: number, left: ReadonlySet<number>): number | undefined =>
  Array.from({ length: placesOf(cluster) }, (_, other) => other).find((other) => other !== place && !left.has(other));
