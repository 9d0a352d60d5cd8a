import { formatMoney, type Micros } from '../../cost/money.ts';
import type { FitPod } from '../fit/model.ts';
import { pack } from '../fit/pack.ts';
import { moneyLeft } from './choose.ts';
import { affordableNodes, moreThanCounted, withGrown } from './grow.ts';
import type { ClustersView, GrowingPool } from './model.ts';
import { nodesLeft, shortOfNodes } from './node-limit.ts';
import type { GrantOrder, WorkVerdict } from './plan-model.ts';
import { stateOf } from './room.ts';
import { nodesText } from './words.ts';

/** Grants (nodes that budgets count) that the policy raises in its clusters, so that waiting pods fit. */
export interface Raised {
  readonly raises: readonly GrantOrder[];
  readonly verdicts: readonly WorkVerdict[];
  /** The view after the grants. */
  readonly view: ClustersView;
}

/**
 * Raises grants of pools in the policy's own clusters for pods that wait there and that existing grants cannot serve.
 * Each cluster only looks at its own pools, within the rest of budgets and maximums. Pure.
 */
export function raiseGrants(view: ClustersView, now: number): Raised {
  const { lacking = new Map<string, readonly FitPod[]>(), limits } = view;
  const raises: GrantOrder[] = [];
  const verdicts: WorkVerdict[] = [];
  let next = view;
  for (const [cluster, pods] of [...lacking].sort(([a], [b]) => (a < b ? -1 : 1)))
    for (const { pool, nodes } of wantedOf(next, cluster, pods)) {
      const wanted = moreThanCounted(pool, nodes);
      // The autoscaler buys these within its present grant.
      if (wanted === 0) continue;
      const source = `pods of ${cluster}`;
      if (limits.isSuspended) {
        verdicts.push({ source, state: 'Suspended', message: 'the policy is suspended: no node is granted' });
        continue;
      }
      const money = moneyLeft(next, now);
      const most = Math.min(nodes, (pool.counted ?? 0) + nodesLeft(next), affordableNodes(pool, money, limits));
      const more = moreThanCounted(pool, most);
      if (more < wanted) verdicts.push({ source, state: 'Refused', message: whyNot(next, pool, wanted, more, money) });
      if (more === 0) continue;
      const what = `${nodesText(more)} more of pool ${pool.pool}`;
      const why = `pods wait in ${cluster} for a node, and ${what} may be asked for`;
      raises.push({ kind: 'grant', cluster, pool: pool.pool, nodes: more, each: pool.hourly, why });
      if (more === wanted) verdicts.push({ source, state: 'Growing', message: `granted to it: ${what}` });
      next = withRaise(next, pool, most, more);
    }
  return { raises, verdicts, view: next };
}

/** Nodes that each pool of a cluster would need for these pods. */
function wantedOf(
  { growth = [], supply }: ClustersView,
  cluster: string,
  pods: readonly FitPod[],
): { pool: GrowingPool; nodes: number }[] {
  const its = supply.find((one) => one.cluster === cluster);
  const pools = growth
    .flatMap((entry) => (entry.name === undefined ? entry.pools : []))
    .filter((pool) => pool.cluster === cluster && pool.more > 0 && (pool.problem ?? pool.unasked) === undefined);
  if (!its || pools.length === 0) return [];
  const { pending: _, ...there } = its;
  const { opened } = pack(
    pods.map((pod, index) => ({ key: String(index), pod })),
    stateOf(there),
    {
      offers: pools.map(({ template, price, pool }) => ({
        template,
        price: Number(price ?? 1n),
        countsAgainst: [pool],
      })),
      limits: new Map(pools.map(({ pool, more }) => [pool, more])),
    },
  );
  return pools.flatMap((pool) => {
    const nodes = opened.filter(({ offer }) => offer.countsAgainst[0] === pool.pool).length;
    return nodes > 0 ? [{ pool, nodes }] : [];
  });
}

function whyNot(
  view: ClustersView,
  { pool, hourly }: GrowingPool,
  wanted: number,
  more: number,
  { hourly: left }: { readonly hourly: Micros },
): string {
  const { limits } = view;
  const granted = `of ${nodesText(wanted)} of pool ${pool} that pods wait for, ${more} are granted`;
  const free = nodesLeft(view);
  if (free < wanted && more >= free) return `${granted}: ${shortOfNodes(limits, free)}`;
  const show = (amount: Micros) => `${formatMoney(amount > 0n ? amount : 0n)} ${limits.currency}`;
  return `${granted}: a node costs ${show(hourly)} an hour, and ${show(left)} of the budget of ${show(limits.hourly)} are left`;
}

/** The view after the autoscaler requested these nodes. @param more how many of them are newly granted */
function withRaise(view: ClustersView, pool: GrowingPool, nodes: number, more: number): ClustersView {
  const left = { ...pool, more: pool.more - nodes, counted: 0 };
  const growth = (view.growth ?? []).map((entry) => ({
    ...entry,
    pools: entry.pools.map((one) => (one === pool ? left : one)),
  }));
  return withGrown({ ...view, growth }, [{ pool, more }]);
}
