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

/** Whether what a cluster was bought for has come to it, or does not come any more. Pure. */
const isSettled = (purchase: ClusterPurchase, now: number): boolean => {
  const at = settlesAt(purchase);
  return !isLeaving(purchase) && (purchase.work !== undefined || (at !== undefined && at <= now));
};

/** When a cluster that has had no work is settled all the same, milliseconds since the epoch; undefined: it has not joined. */
export function settlesAt(purchase: Pick<ClusterPurchase, 'phase'>): number | undefined {
  const joinedAt = joinedAtOf(purchase);
  return joinedAt === undefined ? undefined : Date.parse(joinedAt) + SETTLE_MS;
}

/**
 * Has pools of clusters that are settled be as small as their template lets them be, so that nodes go that nobody needs any more. Does
 * nothing where it was done.
 * @returns why one of them cannot be made smaller, a sentence; undefined: each can be
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
      // What is still to come would not come.
      if (world.readyNodes(cluster).length < boughtNodes(purchase)) return undefined;
      const pools = releasedSpec(world, cluster, template, purchase)?.pools;
      const cannot = `nodes of WorkerCluster ${cluster.metadata.name} cannot be given back`;
      return pools && { patch: poolsPatch(cluster, pools), cannot };
    },
    signal,
  );

/**
 * undefined: nothing is to be changed; or the size of a pool is not written down yet, and its nodes would go at once with its minimum,
 * needed or not.
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
