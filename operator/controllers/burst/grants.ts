import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { ClusterPurchase } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import { type GrantedPool, isInUse } from '../../burst/clusters/receipt-facts.ts';
import { type ClusterChange, changeKept, poolsPatch } from './act.ts';
import { isOwnedBy } from './own-clusters.ts';
import type { BurstSight, BurstWorld } from './world.ts';

/** Observed state of a granted pool; undefined: unknown. */
export function grantedPool(
  world: BurstSight,
  policy: BurstPolicy,
  purchase: ClusterPurchase,
  pool: string,
): GrantedPool | undefined {
  const key = `${policy.metadata.namespace}/${purchase.name}`;
  const cluster = world.clusters.get(key);
  const written = cluster?.spec.pools?.find(({ name }) => name === pool);
  if (!cluster || written?.maximum === undefined || !isOwnedBy(cluster, policy, purchase)) return undefined;
  const held = heldBy(world, key, cluster.metadata.uid ?? '', written);
  return held === undefined ? undefined : { maximum: written.maximum, held };
}

function heldBy(
  world: BurstSight,
  cluster: string,
  uid: string,
  { name, minimum = 0 }: WorkerPool,
): number | undefined {
  const seen = world.poolNow({ cluster, uid, pool: name, isSettled: true });
  return typeof seen === 'string' ? undefined : Math.max(seen.count, seen.present, minimum);
}

/**
 * Limits pools of bought clusters to their grants while nodes are on their way, and to their present size otherwise, so
 * that the rest is free. Idempotent.
 * @returns why one cannot be changed, a sentence; undefined: none
 */
export const applyGrants = (
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<string | undefined> =>
  changeKept(
    world,
    policy,
    receipt,
    (purchase, cluster) => grantChange(world, policy, receipt, purchase, cluster, now),
    signal,
  );

function grantChange(
  world: BurstSight,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  purchase: ClusterPurchase,
  cluster: WorkerCluster,
  now: number,
): ClusterChange | undefined {
  const { granted = {} } = purchase;
  const { name, namespace, uid = '' } = cluster.metadata;
  if (Object.keys(granted).length === 0 || cluster.metadata.deletionTimestamp) return undefined;
  const pools = cluster.spec.pools?.map((pool): WorkerPool => {
    const grant = granted[pool.name];
    if (!grant || pool.maximum === undefined) return pool;
    if (isInUse(receipt, purchase, pool.name, grant, now))
      return pool.maximum < grant.nodes ? { ...pool, maximum: grant.nodes } : pool;
    // A suspended policy could not grant them again.
    if (policy.spec.suspend) return pool;
    const held = heldBy(world, `${namespace}/${name}`, uid, pool);
    const isFree = held !== undefined && held < pool.maximum && world.lacking(cluster).length === 0;
    return isFree ? { ...pool, maximum: held } : pool;
  });
  if (!pools || pools.every((pool, index) => pool === cluster.spec.pools?.[index])) return undefined;
  return {
    patch: poolsPatch(cluster, pools),
    cannot: `the maximums of pools of WorkerCluster ${name} cannot be changed`,
  };
}
