import { LABELS } from '../../operator/api/group.ts';
import { shortHash } from '../../operator/api/names.ts';
import type { KubeTaint } from '../../operator/kube/resources.ts';
import type { CloudPool } from '../cloud.ts';
import { registeredTaints } from '../nodes.ts';
import { acceleratorOf } from './accelerators.ts';

/** A GKE node pool for a pool, or for its part in one zone. */
export interface NodePoolPlan {
  /** Constant while the node pool can be changed in place. */
  key: string;
  /**
   * Name in GKE. It differs when GKE could only replace the node pool: then the new one exists before the old one is
   * deleted.
   */
  name: string;
  pool: CloudPool;
  zones: string[];
  size: { nodes: number } | { autoscale: { minimum: number; maximum: number; locationPolicy: 'ANY' | 'BALANCED' } };
  accelerator?: { type: string; count: number };
  /** Labels of the nodes. */
  labels: Record<string, string>;
  taints: { key: string; value: string; effect: string }[];
}

/** NoSchedule is NO_SCHEDULE in GKE (google.container.v1 NodeTaint.Effect). */
const effectOf = ({ effect }: KubeTaint): string => effect.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();

/** Distributes `count` over `places`: the first ones get one more, so that growth by one changes one place. */
export const spreadNodes = (count: number, places: number): number[] =>
  Array.from({ length: places }, (_, index) => Math.floor(count / places) + (index < count % places ? 1 : 0));

/** Nodes per zone: as left by the removal of named nodes, or even. */
function sharesOf({ desired = 0, inZones }: CloudPool, zones: readonly string[]): number[] {
  const left = zones.map((zone) => inZones?.[zone] ?? 0);
  return left.reduce((sum, count) => sum + count, 0) === desired ? left : spreadNodes(desired, zones.length);
}

/**
 * GKE node pools of all pools.
 *
 * GKE counts nodes per zone: a node pool in three zones has a multiple of three. So a pool of fixed size is one node
 * pool per zone, each with its share. An autoscaled pool is one node pool in all zones: GKE limits its total, and falls
 * back to another zone without capacity (`ANY` for spot machines: wherever there is capacity).
 */
export function nodePoolsOf(pools: readonly CloudPool[], clusterZones: readonly string[]): NodePoolPlan[] {
  return pools.flatMap((pool) => {
    const zones = pool.zones.length > 0 ? pool.zones : [...clusterZones];
    if (pool.desired === undefined) {
      const { minimum, maximum } = pool;
      const locationPolicy = pool.spot ? ('ANY' as const) : ('BALANCED' as const);
      return [planOf(pool, zones, { autoscale: { minimum, maximum, locationPolicy } }, pool.name)];
    }
    const shares = sharesOf(pool, zones);
    return zones.map((zone, index) =>
      planOf(pool, [zone], { nodes: shares[index]! }, `${pool.name}-${zone.split('-').at(-1)}`),
    );
  });
}

function planOf(pool: CloudPool, zones: string[], size: NodePoolPlan['size'], key: string): NodePoolPlan {
  const type = acceleratorOf(pool.machineType);
  const accelerator = pool.gpu > 0 && type !== undefined ? { type, count: pool.gpu } : undefined;
  // Immutable properties of a node pool; its kind too, since names of two pools may join to the same text.
  const fixed = [
    pool.name,
    'nodes' in size ? zones : 'autoscaled',
    pool.spot,
    pool.architecture,
    accelerator ?? 'none',
  ];
  return {
    key,
    // A DNS label may begin with a digit, a name at Google may not.
    name: `${/^[a-z]/.test(key) ? '' : 'p-'}${key}-${shortHash(JSON.stringify(fixed))}`,
    pool,
    zones,
    size,
    ...(accelerator && { accelerator }),
    labels: { ...pool.labels, [LABELS.pool]: pool.name },
    taints: registeredTaints(pool).map((taint) => ({
      key: taint.key,
      value: taint.value ?? '',
      effect: effectOf(taint),
    })),
  };
}
