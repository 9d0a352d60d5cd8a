import type { WorkerPool } from '../../api/worker-pool.ts';
import type { CutOrder } from '../../burst/clusters/plan-model.ts';
import type { ClusterPurchase } from '../../burst/clusters/purchases.ts';
import { changeKept, poolsPatch } from './act.ts';
import { orderedNodes } from './ordered-nodes.ts';
import type { Turn } from './turn.ts';
import type { BurstWorld } from './world.ts';

/**
 * Lowers minimums of pools of ordered clusters, and their grants. The receipt follows the spec in the next look, also
 * when the operator ends between the two. Idempotent.
 * @returns why one cannot be cut, a sentence; undefined: none
 */
export const cutOrdered = (
  world: BurstWorld,
  { policy, receipt }: Pick<Turn, 'policy' | 'receipt'>,
  cuts: readonly CutOrder[],
  signal: AbortSignal,
): Promise<string | undefined> =>
  changeKept(
    world,
    policy,
    receipt,
    (purchase, cluster) => {
      const cut = cuts.find(({ name }) => name === purchase.name);
      const { pools } = cluster.spec;
      if (!cut || !pools || !orderedNodes(policy, purchase, cluster)) return undefined;
      const fewer = pools.map((pool) => cutPool(pool, cut.nodes[pool.name], purchase));
      if (fewer.every((pool, index) => pool === pools[index])) return undefined;
      return {
        patch: poolsPatch(cluster, fewer),
        cannot: `nodes of WorkerCluster ${cluster.metadata.name}, which is starting, cannot be cut`,
      };
    },
    signal,
  );

function cutPool(pool: WorkerPool, nodes: number | undefined, { granted }: ClusterPurchase): WorkerPool {
  const { name, minimum = 0, maximum } = pool;
  if (nodes === undefined || nodes >= minimum) return pool;
  if (maximum === undefined || !granted?.[name]) return { ...pool, minimum: nodes };
  return { ...pool, minimum: nodes, maximum: maximum - (minimum - nodes) };
}
