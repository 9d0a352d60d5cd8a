import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import type { WorkerCluster, WorkerClusterSpec } from '../../api/workercluster.ts';
import { withMinimumsOf } from '../../burst/clusters/offer.ts';
import { boughtNodes, type ClusterPurchase, isLeaving, joinedAtOf } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import { isCoppices } from '../../capacity/desired-sizes.ts';
import { whereItIs } from '../where-it-is.ts';
import { changeKept, poolsPatch } from './act.ts';
import { SETTLE_MS } from './alike.ts';
import type { BurstWorld } from './world.ts';

/** Whether a cluster's intended work has arrived, or will not. Pure. */
const isSettled = (purchase: ClusterPurchase, now: number): boolean => {
  const at = settlesAt(purchase);
  return !isLeaving(purchase) && (purchase.work !== undefined || (at !== undefined && at <= now));
};

/** When a cluster without work counts as settled, milliseconds since the epoch; undefined: it has not joined. */
export function settlesAt(purchase: Pick<ClusterPurchase, 'phase'>): number | undefined {
  const joinedAt = joinedAtOf(purchase);
  return joinedAt === undefined ? undefined : Date.parse(joinedAt) + SETTLE_MS;
}

/**
 * Lowers pools of settled clusters to their templates' minimums, so that unneeded nodes can leave. Idempotent.
 * @returns why one cannot be lowered, a sentence; undefined: none
 */
export const releaseMinimums = (
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
    (purchase, cluster) => {
      const template = policy.spec.candidates.find(({ name }) => name === purchase.candidate)?.template.spec;
      if (!template || !isSettled(purchase, now)) return undefined;
      // Ordered nodes would not come any more.
      if (world.readyNodes(cluster).length < boughtNodes(purchase)) return undefined;
      const pools = releasedSpec(world, cluster, template, purchase)?.pools;
      const cannot = `nodes of WorkerCluster ${cluster.metadata.name} cannot be given back`;
      return pools && { patch: poolsPatch(cluster, pools), cannot };
    },
    signal,
  );

/**
 * undefined: no change; or a pool's size is not stored yet, so that lowering its minimum would remove nodes at once.
 */
function releasedSpec(
  { decided, profiles }: Pick<BurstWorld, 'decided' | 'profiles'>,
  cluster: WorkerCluster,
  template: WorkerClusterSpec,
  { nodes }: ClusterPurchase,
): WorkerClusterSpec | undefined {
  const there = whereItIs(cluster, profiles);
  if (cluster.metadata.deletionTimestamp || !there) return undefined;
  const known = decided(cluster);
  const isKnown = (pool: string) => known !== 'none' && known !== 'unknown' && known.has(pool);
  const mayLose = ({ minimum = 0, ...pool }: WorkerPool) => isCoppices(pool) && minimum > 0;
  if (cluster.spec.pools?.some((pool) => mayLose(pool) && !isKnown(pool.name))) return undefined;
  return withMinimumsOf(cluster.spec, there, template, nodes);
}
