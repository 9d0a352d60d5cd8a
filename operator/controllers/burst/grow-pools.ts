import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { Hub } from '../../api/hub.ts';
import { isToOrder } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, nodesIn } from '../../burst/clusters/receipt.ts';
import { countOf } from '../../burst/nodes/grow.ts';
import { clusterByUid } from './own-clusters.ts';
import type { BurstWorld } from './world.ts';

/**
 * Raises pools to their recorded sizes, as their autoscaler would, preserving its records about leaving nodes.
 * Idempotent.
 */
export async function growPools(
  world: BurstWorld,
  hub: Hub,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace } = policy.metadata;
  for (const growth of nodesIn(receipt)) {
    const cluster = clusterByUid(world, growth);
    const decided = cluster && world.decided(cluster);
    if (!cluster || !decided || decided === 'unknown' || !isToOrder(growth, now)) continue;
    const seen = world.pools(hub, cluster, [])?.find(({ pool }) => pool.name === growth.pool);
    // Its autoscaler no longer requests sold-out offers.
    if (!seen?.template || seen.count >= growth.to) continue;
    const { pool } = seen;
    const known = decided === 'none' ? undefined : decided.get(growth.pool);
    const size = {
      count: growth.to,
      by: `BurstPolicy ${namespace}/${name}`,
      why: `work of ${growth.sources[0]} has no place`,
      at: growth.at,
      ...(known?.leaving && { leaving: known.leaving }),
    };
    await world.decide({ key: growth.cluster, uid: growth.uid, pool, size }, signal);
    const more = growth.to - pool.count;
    const message = `pool ${growth.pool} is to have ${countOf(growth.to, 'node')}, ${more} more: BurstPolicy ${name} has work without a place`;
    world.recordEvent(cluster, 'Normal', 'PoolGrows', message);
  }
}
