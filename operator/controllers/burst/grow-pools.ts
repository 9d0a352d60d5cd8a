import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { isToOrder, type PoolNow } from '../../burst/clusters/growth-receipt.ts';
import type { BurstReceipt, KeptGrowth } from '../../burst/clusters/kept.ts';
import { countOf } from '../../burst/nodes/grow.ts';
import { desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import { keyOf } from '../../kube/resources.ts';
import { byPool, isThere } from '../autoscaling/nodes-seen.ts';
import type { BurstDependencies } from './dependencies.ts';
import { poolsSeen } from './pools.ts';

/**
 * Has pools be as large as the receipts say, as their autoscaler would: what it knows about nodes on their way out is kept. Does nothing where
 * it was done.
 */
export async function growPools(
  deps: BurstDependencies,
  policy: BurstPolicy,
  { growths = [] }: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace } = policy.metadata;
  for (const growth of growths) {
    const cluster = clusterOf(deps, growth);
    const decided = cluster && deps.decided(cluster);
    if (!cluster || !decided || decided === 'unknown' || !isToOrder(growth, now)) continue;
    const seen = poolsSeen(deps, cluster, [], now)?.find(({ pool }) => pool.name === growth.pool);
    // What is sold out its autoscaler asks for no longer.
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
    await deps.sizes.decide({ key: growth.cluster, uid: growth.uid, pool, size }, signal);
    const more = growth.to - pool.count;
    const message = `pool ${growth.pool} is to have ${countOf(growth.to, 'node')}, ${more} more: BurstPolicy ${name} has work without a place`;
    deps.recordEvent(cluster, 'Normal', 'PoolGrows', message);
  }
}

/** What is seen now of a pool that was made larger. */
export function grownNow(deps: BurstDependencies, growth: KeptGrowth, now: number): PoolNow | 'gone' | 'unknown' {
  const cluster = clusterOf(deps, growth);
  if (!cluster) return 'gone';
  const open = deps.openClusters.get(keyOf(cluster));
  const decided = deps.decided(cluster);
  const profile = deps.profiles.get(profileNameOf(cluster));
  if (!open || !profile || decided === 'unknown') return 'unknown';
  const pool = desiredSizes({ cluster, profile, decided }).find(({ name }) => name === growth.pool);
  if (!pool || !isCoppices(pool)) return 'gone';
  const there = (byPool(open.nodes.list()).get(pool.name) ?? []).filter(isThere);
  // Of one that has come or failed nobody asks, and looking costs a walk over all pods of the cluster.
  const isOver = growth.came || growth.failed;
  const seen = isOver ? undefined : poolsSeen(deps, cluster, [], now)?.find((one) => one.pool.name === pool.name);
  return { count: pool.count, present: there.length, isSoldOut: seen?.soldOut !== undefined };
}

/** undefined: it is gone, or another one has its name. */
function clusterOf(deps: BurstDependencies, { cluster: key, uid }: KeptGrowth): WorkerCluster | undefined {
  const cluster = deps.clusters.get(key);
  return cluster?.metadata.uid === uid && !cluster?.metadata.deletionTimestamp ? cluster : undefined;
}
