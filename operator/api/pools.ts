import type { CloudProfile } from './cloudprofile.ts';
import { gpuMachineType, gpusOf } from './gpu.ts';
import type { Taint } from './worker-pool.ts';
import type { WorkerCluster } from './workercluster.ts';

/** Name of the one pool of a cluster that lists none. */
export const DEFAULT_POOL = 'default';

/** Who decides, between minimum and maximum, how many nodes a pool has. */
export type Autoscale = 'Coppice' | 'Cloud' | 'None';

/** A pool with everything settled but the machine type, which no profile may have (undefined then). */
export interface NormalPool {
  name: string;
  /** Absent when neither pool, cluster nor profile names one. Whether the profile has it is not checked here. */
  machineType: string | undefined;
  /** Machine types to take instead where that one is sold out, the preferred one first. */
  alternatives: string[];
  /** How many nodes there should be now. */
  count: number;
  minimum: number;
  /** Infinity where nothing limits it. */
  maximum: number;
  /** As the spec says it; absent: what is usual for the mode. */
  autoscale?: Autoscale;
  labels: Record<string, string>;
  taints: Taint[];
  /** Taints that a node has only until an agent has taken them away. Absent: none. */
  startupTaints?: Taint[];
  zones: string[];
  /** Whether spot machines are asked for. */
  spot: boolean;
  /** GPUs that each node must have; 0: none are asked for. */
  gpu: number;
}

/**
 * Who said how many nodes a pool should have: `person` by spec.dataPlaneNodes; `floor`: the same, which is the least where Coppice decides;
 * `decider` by a stored size; `kept`: whether anything was decided is unknown, so the pool keeps what it has; `minimum`: nobody, so it is
 * the pool's minimum, above which a cloud's autoscaler may go.
 */
export type SizedBy = 'person' | 'floor' | 'decider' | 'kept' | 'minimum';

/** A pool with what it should have once all who may say so were asked: see operator/capacity/desired-sizes.ts. */
export interface DesiredPool extends NormalPool {
  sizedBy: SizedBy;
}

/** Whether a cloud's autoscaler chooses the size of the pool, in mode Managed. */
export const isSizedByCloud = ({ autoscale = 'Cloud', sizedBy, minimum, maximum }: DesiredPool): boolean =>
  autoscale === 'Cloud' && sizedBy === 'minimum' && Number.isFinite(maximum) && maximum > minimum;

/** Names of the pools that ask for spot machines. */
export const spotPools = ({ spec }: WorkerCluster): ReadonlySet<string> =>
  new Set((spec.pools ?? []).flatMap(({ name, spot }) => (spot ? [name] : [])));

/**
 * The pools of a cluster as its spec alone has them; what they should have is for desiredSizes to say, the only caller. Without `pools`
 * there is one, of all nodes. With `pools`, each gets its minimum, and what `dataPlaneNodes` has left goes to the pools in the order
 * written, each up to its maximum: growing never takes a node from a pool, and shrinking takes the last ones first.
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
      // The cluster's alternatives are to the cluster's machine type, not to one that a pool was given for its own needs.
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
 * The machine type of a pool that asks for GPUs: the cluster's or the default where it has them; undefined: none are asked for, or there
 * are none.
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

/** Machine types in order of preference, each once. */
const preference = ({
  machineType,
  machineTypes = [],
}: {
  machineType?: string | undefined;
  machineTypes?: string[] | undefined;
}) => [...new Set([...(machineType === undefined ? [] : [machineType]), ...machineTypes])];

const zonesOf = (profile: CloudProfile, region: string | undefined): string[] =>
  (profile.spec.regions.find((known) => known.name === region)?.zones ?? []).map((zone) => zone.name);
