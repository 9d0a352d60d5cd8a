import { LABELS } from '../../operator/api/group.ts';
import { shortHash } from '../../operator/api/names.ts';
import type { KubeTaint } from '../../operator/kube/resources.ts';
import type { CloudPool } from '../cloud.ts';
import { registeredTaints } from '../nodes.ts';
import { acceleratorOf } from './accelerators.ts';

/** A GKE node pool that stands for a pool of ours, or for what of it is in one zone. */
export interface NodePoolPlan {
  /** Stays the same while the node pool can be changed in place. */
  key: string;
  /** Google's name. Another one when GKE could only replace the node pool: then the new one is there before the old one goes. */
  name: string;
  pool: CloudPool;
  zones: string[];
  size: { nodes: number } | { autoscale: { minimum: number; maximum: number; locationPolicy: 'ANY' | 'BALANCED' } };
  accelerator?: { type: string; count: number };
  /** Labels of the nodes. */
  labels: Record<string, string>;
  taints: { key: string; value: string; effect: string }[];
}

/** NoSchedule is NO_SCHEDULE at GKE (google.container.v1 NodeTaint.Effect). */
const effectOf = ({ effect }: KubeTaint): string => effect.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();

/** How many of `count` each of `places` gets: the first ones one more, so that growing by one changes one place. */
export const spreadNodes = (count: number, places: number): number[] =>
  Array.from({ length: places }, (_, index) => Math.floor(count / places) + (index < count % places ? 1 : 0));

/** How many nodes each zone has: as it was left when named nodes went, or evenly. */
function sharesOf({ desired = 0, inZones }: CloudPool, zones: readonly string[]): number[] {
  const left = zones.map((zone) => inZones?.[zone] ?? 0);
  return left.reduce((sum, count) => sum + count, 0) === desired ? left : spreadNodes(desired, zones.length);
}

/**
 * The GKE node pools of our pools.
 *
 * GKE counts nodes by zone: a node pool in three zones has a multiple of three of them. So a pool of a given size is one node
 * pool a zone, each with its share. An autoscaled pool is one node pool in all its zones: GKE has limits on the total there, and
 * moves to another zone when one has no machines left (`ANY` for spot machines: it goes where they are).
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
  // What GKE cannot change in a node pool that exists; its kind, too, because two pools' names may join to the same text.
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
