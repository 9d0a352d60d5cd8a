import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OrderedNodes } from '../../burst/clusters/model.ts';
import { savedBy } from '../../burst/clusters/offer.ts';
import type { ClusterPurchase } from '../../burst/clusters/purchases.ts';
import { isForPeak } from '../../burst/clusters/words.ts';
import type { OrderCut } from './seen.ts';
import { whereItComes } from './where-it-comes.ts';
import type { BurstSight } from './world.ts';

/** Whether a purchase is a new cluster for work that has not joined; not one that waited warm or slept. */
const isNewOrder = ({ phase, wokenAt, readyAt }: ClusterPurchase): boolean =>
  phase.name === 'Coming' && wokenAt === undefined && readyAt === undefined;

const templateOf = ({ spec }: BurstPolicy, { candidate }: ClusterPurchase) =>
  spec.candidates.find(({ name }) => name === candidate)?.template.spec;

/** Nodes of a cluster by pool, if its order may be cut. A minimum that somebody has changed is left alone. Pure. */
export function orderedNodes(
  policy: BurstPolicy,
  purchase: ClusterPurchase,
  { metadata, spec }: WorkerCluster,
): OrderedNodes | undefined {
  const template = templateOf(policy, purchase);
  const { sources, nodes } = purchase;
  if (!template || !isNewOrder(purchase) || metadata.deletionTimestamp || sources.every(isForPeak)) return undefined;
  if (spec.dataPlaneNodes !== undefined) return undefined;
  const leastOf = ({ name, minimum = 0 }: WorkerPool): number =>
    minimum === nodes[name]
      ? Math.min(minimum, template.pools?.find((one) => one.name === name)?.minimum ?? 0)
      : minimum;
  const pools = spec.pools ?? [];
  return {
    ordered: new Map(pools.map(({ name, minimum = 0 }) => [name, minimum])),
    least: new Map(pools.map((pool) => [pool.name, leastOf(pool)])),
  };
}

/** How many nodes an order has less in its cluster's spec than in the receipt; undefined: none. */
export function cutSeen(
  world: BurstSight,
  policy: BurstPolicy,
  purchase: ClusterPurchase,
  cluster: WorkerCluster,
): OrderCut | undefined {
  if (!isNewOrder(purchase) || cluster.spec.dataPlaneNodes !== undefined) return undefined;
  const pools = (cluster.spec.pools ?? []).flatMap(({ name, minimum = 0 }) => {
    const before = purchase.nodes[name] ?? 0;
    return minimum < before ? [{ pool: name, before, nodes: minimum }] : [];
  });
  if (pools.length === 0) return undefined;
  const there = whereItComes(world, cluster);
  const candidate = policy.spec.candidates.find(({ name }) => name === purchase.candidate);
  const saved =
    there &&
    savedBy(
      {
        ...there,
        currency: policy.spec.budget.currency,
        assumedHourly: candidate?.assumedHourly,
        ...(purchase.granted && { grantsNodes: true as const }),
      },
      purchase.nodes,
    );
  return { pools, saved };
}
