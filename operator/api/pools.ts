import type { CloudProfile } from './cloudprofile.ts';
import { gpuMachineType, gpusOf } from './gpu.ts';
import type { Taint } from './worker-pool.ts';
import type { WorkerCluster } from './workercluster.ts';

/** Name of the only pool of a cluster that lists none. */
export const DEFAULT_POOL = 'default';

/** Who decides the size of a pool between minimum and maximum. */
type Autoscale = 'Coppice' | 'Cloud' | 'None';

/** A pool with all defaults filled in; machineType stays undefined when no default exists. */
export interface NormalPool {
  name: string;
  /** Absent when neither pool, cluster nor profile names one. Not checked against the profile. */
  machineType: string | undefined;
  /** Machine types to use when that one is sold out, by preference. */
  alternatives: string[];
  /** Number of nodes at present. */
  count: number;
  minimum: number;
  /** Infinity without a limit. */
  maximum: number;
  /** From the spec; absent: the default of the mode. */
  autoscale?: Autoscale;
  labels: Record<string, string>;
  taints: Taint[];
  /** Taints that an agent removes from a new node. Absent: none. */
  startupTaints?: Taint[];
  zones: string[];
  /** Whether the pool uses spot machines. */
  spot: boolean;
  /** GPUs per node; 0: none. */
  gpu: number;
}

/**
 * Source of a pool's size: `person`: spec.dataPlaneNodes; `floor`: the same as a minimum, where Coppice decides;
 * `decider`: a stored size; `kept`: unknown decision, so the pool keeps its size; `minimum`: none, so the pool has its
 * minimum, above which a cloud's autoscaler may go.
 */
export type SizedBy = 'person' | 'floor' | 'decider' | 'kept' | 'minimum';

/** A pool with its desired size after all sources were consulted: see operator/capacity/desired-sizes.ts. */
export interface DesiredPool extends NormalPool {
  sizedBy: SizedBy;
}

/** Whether a cloud's autoscaler sizes the pool, in mode Managed. */
export const isSizedByCloud = ({ autoscale = 'Cloud', sizedBy, minimum, maximum }: DesiredPool): boolean =>
  autoscale === 'Cloud' && sizedBy === 'minimum' && Number.isFinite(maximum) && maximum > minimum;

/** Names of pools with spot machines. */
export const spotPools = ({ spec }: WorkerCluster): ReadonlySet<string> =>
  new Set((spec.pools ?? []).flatMap(({ name, spot }) => (spot ? [name] : [])));

/**
 * Pools of a cluster from its spec alone; desiredSizes, the only caller, decides their sizes. Without `pools` there is
 * one pool with all nodes. With `pools`, each gets its minimum, and the rest of `dataPlaneNodes` fills the pools in
 * order up to their maximums: growing never takes a node from a pool, and shrinking takes the last pools first.
 */
export function poolsOf(cluster: WorkerCluster, profile: CloudProfile): NormalPool[] {
  const { spec } = cluster;
  const zones = spec.zones ?? zonesOf(profile, spec.region ?? profile.spec.defaults?.region);
  const ofCluster = preference(spec);
  const machineType = ofCluster[0] ?? profile.spec.defaults?.machineType;
  if (!spec.pools || spec.pools.length === 0) {
    const count = spec.dataPlaneNodes ?? 0;
    return [
      {
        name: DEFAULT_POOL,
        machineType,
        alternatives: ofCluster.slice(1),
        count,
        minimum: count,
        maximum: count,
        labels: {},
        taints: [],
        zones,
        spot: false,
        gpu: 0,
      },
    ];
  }
  const pools = spec.pools.map((pool): NormalPool => {
    const minimum = pool.minimum ?? 0;
    const own = preference(pool);
    const withGPU = withGPUs(cluster, profile, { ...pool, zones: pool.zones ?? zones });
    return {
      name: pool.name,
      machineType: own[0] ?? withGPU ?? machineType,
      // The cluster's alternatives replace the cluster's machine type, not a pool's own.
      alternatives: (own.length > 0 ? own : withGPU && withGPU !== machineType ? [] : ofCluster).slice(1),
      count: minimum,
      minimum,
      maximum: pool.maximum ?? (spec.dataPlaneNodes === undefined ? minimum : Number.POSITIVE_INFINITY),
      ...(pool.autoscale && { autoscale: pool.autoscale }),
      labels: pool.labels ?? {},
      taints: pool.taints ?? [],
      ...(pool.startupTaints && { startupTaints: pool.startupTaints }),
      zones: pool.zones ?? zones,
      spot: pool.spot ?? false,
      gpu: pool.gpu ?? 0,
    };
  });
  if (spec.dataPlaneNodes === undefined) return pools;
  let left = spec.dataPlaneNodes - pools.reduce((sum, pool) => sum + pool.minimum, 0);
  return pools.map((pool) => {
    const extra = Math.max(0, Math.min(left, pool.maximum - pool.minimum));
    left -= extra;
    return { ...pool, count: pool.minimum + extra };
  });
}

/**
 * Machine type of a pool with GPUs: the cluster's or the default if it has GPUs; undefined: none requested, or none
 * available.
 */
function withGPUs(
  { spec, status }: WorkerCluster,
  profile: CloudProfile,
  { name, gpu = 0, zones }: { name: string; gpu?: number | undefined; zones: string[] },
): string | undefined {
  if (gpu === 0) return undefined;
  const usual = spec.machineType ?? profile.spec.defaults?.machineType;
  if (gpusOf(profile.spec.machineTypes.find((type) => type.name === usual)) >= gpu) return usual;
  const region = spec.region ?? profile.spec.defaults?.region;
  const held = status?.admitted?.pools.find((pool) => pool.name === name)?.machineType;
  return gpuMachineType(profile, { gpu, region, zones, held });
}

/** Machine types by preference, without repetitions. */
const preference = ({
  machineType,
  machineTypes = [],
}: {
  machineType?: string | undefined;
  machineTypes?: string[] | undefined;
}) => [...new Set([...(machineType === undefined ? [] : [machineType]), ...machineTypes])];

const zonesOf = (profile: CloudProfile, region: string | undefined): string[] =>
  (profile.spec.regions.find((known) => known.name === region)?.zones ?? []).map((zone) => zone.name);
