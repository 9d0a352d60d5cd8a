import { costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros } from '../../cost/money.ts';
import { type Chosen, costOf, moneyLeft } from './choose.ts';
import type { ClustersView, GrowingPool, GrowthView, Limits } from './model.ts';
import { nodesLeft, shortOfNodes } from './node-limit.ts';
import type { Alternative } from './plan-model.ts';
import { type Replicas, takenByPool, totalOf } from './room.ts';
import { costToWake, wakeOrChoose } from './wake.ts';
import { type ChosenWarm, openFor } from './warm.ts';

/** Nodes to add, without a reason yet. */
interface ChosenGrowth {
  readonly entry: string | undefined;
  readonly pool: GrowingPool;
  readonly nodes: number;
  /** Nodes that budgets have not counted before. */
  readonly more: number;
  /** Replicas that the nodes take. */
  readonly count: number;
}

/** What serves work without room. */
export interface Serving {
  readonly growths: readonly ChosenGrowth[];
  readonly openings: readonly ChosenWarm[];
  readonly clusters: readonly Chosen[];
  /** Alternatives to woken clusters. Absent: none is woken. */
  readonly instead?: readonly Alternative[];
}

/**
 * Serves all of this work: first by growing pools (cheaper than a cluster), then by warm clusters, then by sleeping or
 * new ones. When nodes are too few, compares the cost with and without them. undefined: not possible.
 */
export function serve(view: ClustersView, replicas: readonly Replicas[], now: number): Serving | undefined {
  const { limits } = view;
  const { chosen: growths, left } = growFor(view, replicas, now);
  if (left.length === 0) return { growths, openings: [], clusters: [] };
  const alone = byClusters(view, replicas, now);
  if (growths.length === 0) return alone && { growths, ...alone };
  const rest = byClusters(withGrown(view, growths), left, now);
  const cost = growths.reduce((sum, { pool, more }) => sum + forMinimumLife(pool, limits) * BigInt(more), 0n);
  const costs = ({ clusters, openings }: Omit<Serving, 'growths'>) =>
    costOf(clusters, limits) + costToWake(openings, limits);
  if (rest && (!alone || cost + costs(rest) <= costs(alone))) return { growths, ...rest };
  return alone && { growths: [], ...alone };
}

function byClusters(view: ClustersView, replicas: readonly Replicas[], now: number) {
  const { chosen: openings, left } = openFor(view, replicas);
  if (left.length === 0) return { openings, clusters: [] };
  const more = wakeOrChoose(view, left, now);
  return more && { openings: [...openings, ...more.woken], clusters: more.clusters, instead: more.instead };
}

/** Cost of one node over the minimum life, as its cloud bills it. */
const forMinimumLife = ({ hourly, billing }: GrowingPool, { minimumLifeMs }: Limits): Micros =>
  costOver(hourly, minimumLifeMs, billing);

/** Nodes of a pool that budgets have not counted before. */
type Counting = Pick<ChosenGrowth, 'pool' | 'more'>;

const hourlyOf = (growths: readonly Counting[]): Micros =>
  growths.reduce((sum, { pool, more }) => sum + pool.hourly * BigInt(more), 0n);

/** The view after these nodes were added. */
export const withGrown = (view: ClustersView, growths: readonly Counting[]): ClustersView => ({
  ...view,
  grownHourly: (view.grownHourly ?? 0n) + hourlyOf(growths),
  grownNodes: (view.grownNodes ?? 0) + growths.reduce((sum, { more }) => sum + more, 0),
});

/** Number of nodes that are not counted yet. */
export const moreThanCounted = ({ counted = 0 }: GrowingPool, nodes: number): number => Math.max(0, nodes - counted);

/** Nodes of growable pools, cheapest per replica first; recently interrupted pools last. */
function growFor(
  view: ClustersView,
  wanted: readonly Replicas[],
  now: number,
): { chosen: ChosenGrowth[]; left: Replicas[] } {
  const chosen: ChosenGrowth[] = [];
  const money = moneyLeft(view, now);
  const byEntry = new Map((view.growth ?? []).map((entry) => [entry, entry.left]));
  const promised = new Set<string>();
  let nodesOfPolicy = nodesLeft(view);
  let left = [...wanted];
  for (const { entry, pool } of inOrder(view, wanted)) {
    if (left.length === 0) break;
    // Two entries may name one pool: use it once.
    const key = `${pool.cluster}/${pool.pool}`;
    if (promised.has(key)) continue;
    const allowed = (pool.counted ?? 0) + nodesOfPolicy;
    const most = Math.min(pool.more, allowed, byEntry.get(entry) ?? 0, affordableNodes(pool, money, view.limits));
    if (most <= 0) continue;
    const taken = takenByPool(pool, left, most);
    if (taken.count === 0) continue;
    const { nodes, count } = taken;
    const more = moreThanCounted(pool, nodes);
    chosen.push({ entry: entry.name, pool, nodes, more, count });
    promised.add(key);
    nodesOfPolicy -= more;
    byEntry.set(entry, (byEntry.get(entry) ?? 0) - nodes);
    money.hourly -= pool.hourly * BigInt(more);
    if (money.monthly !== undefined) money.monthly -= forMinimumLife(pool, view.limits) * BigInt(more);
    left = taken.left;
  }
  return { chosen, left };
}

/** A pool, and how many replicas this number of its nodes takes. */
interface Counted {
  readonly pool: GrowingPool;
  readonly nodes: number;
  readonly count: number;
}

function inOrder(view: ClustersView, wanted: readonly Replicas[]): { entry: GrowthView; pool: GrowingPool }[] {
  return (view.growth ?? [])
    .flatMap((entry) => entry.pools.map((pool) => ({ entry, pool })))
    .filter(({ pool }) => pool.problem === undefined && pool.more > 0)
    .map((one) => ({ ...one, ...takenByFew(one.pool, wanted) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => {
      if (a.pool.isLast !== b.pool.isLast) return a.pool.isLast ? 1 : -1;
      const [eachA, eachB] = forEach(a, b, ({ pool, nodes }) => pool.hourly * BigInt(moreThanCounted(pool, nodes)));
      if (eachA !== eachB) return eachA < eachB ? -1 : 1;
      const byPrice = cheaperFirst(a, b);
      return byPrice || b.count * a.nodes - a.count * b.nodes || (a.pool.template.id < b.pool.template.id ? -1 : 1);
    });
}

/** Replicas on one node of a pool; or on all its nodes, for a job that goes to one cluster as a whole. */
function takenByFew(pool: GrowingPool, wanted: readonly Replicas[]): ReturnType<typeof takenByPool> {
  const one = takenByPool(pool, wanted, 1);
  return one.count > 0 || !wanted.some(({ work }) => work.isHeld) ? one : takenByPool(pool, wanted, pool.more);
}

/** Cross-multiplied cost per replica of two options, to avoid fractions. */
const forEach = (a: Counted, b: Counted, cost: (of: Counted) => Micros): [Micros, Micros] => [
  cost(a) * BigInt(b.count),
  cost(b) * BigInt(a.count),
];

/** Compares by real price when budgets count the nodes already. Nodes without price come last. */
function cheaperFirst(a: Counted, b: Counted): number {
  if (a.pool.price === undefined || b.pool.price === undefined)
    return Number(a.pool.price === undefined) - Number(b.pool.price === undefined);
  const [eachA, eachB] = forEach(a, b, ({ pool: { price = 0n }, nodes }) => price * BigInt(nodes));
  return eachA === eachB ? 0 : eachA < eachB ? -1 : 1;
}

/** How many more of the pool's nodes budgets allow. */
export function affordableNodes(
  pool: GrowingPool,
  money: { readonly hourly: Micros; readonly monthly: Micros | undefined },
  limits: Limits,
): number {
  const { hourly, more, counted = 0 } = pool;
  if (hourly === 0n) return more;
  let most = money.hourly / hourly;
  const life = forMinimumLife(pool, limits);
  if (money.monthly !== undefined && life > 0n && money.monthly / life < most) most = money.monthly / life;
  const affords = most <= 0n ? 0 : Number(most < BigInt(more) ? most : BigInt(more));
  return Math.min(more, counted + affords);
}

/** Reason of each growable entry for not serving this work. */
export function whyNotGrown(view: ClustersView, replicas: readonly Replicas[], now: number): Alternative[] {
  const { chosen } = growFor(view, replicas, now);
  return (view.growth ?? []).flatMap((entry): Alternative[] => {
    if (entry.name === undefined) return [];
    const grown = chosen.filter((one) => one.entry === entry.name);
    return [{ candidate: entry.name, whyNot: whyNot(withGrown(view, chosen), entry, grown, replicas) }];
  });
}

function whyNot(view: ClustersView, entry: GrowthView, grown: readonly ChosenGrowth[], replicas: readonly Replicas[]) {
  const total = totalOf(replicas);
  const taken = totalOf(grown);
  const short = nodesLeft(view) > 0 ? undefined : shortOfNodes(view.limits, 0);
  if (taken > 0)
    return `nodes that may be added there take ${taken} of ${total} replicas${short ? `, and ${short}` : ''}`;
  if (entry.pools.length === 0) return 'no pool that it names can grow';
  if (entry.left <= 0) return 'it has added as many nodes as it allows';
  const problem = entry.pools.find((pool) => pool.problem !== undefined)?.problem;
  const open = entry.pools.filter((pool) => pool.problem === undefined && pool.more > 0);
  if (open.length === 0) return problem ?? 'its pools are at their maximum';
  const dear = open.find((pool) => takenByFew(pool, replicas).count > 0);
  if (!dear) return keptFrom(open, replicas) ?? 'its nodes take none of it';
  if (short) return short;
  return `a node costs ${formatMoney(dear.hourly)} ${view.limits.currency} an hour, more than the budget has left`;
}

/** Why these pools do not grow for this work; undefined: nothing prevents it. */
function keptFrom(pools: readonly GrowingPool[], replicas: readonly Replicas[]): string | undefined {
  for (const { work } of replicas)
    for (const { keepsFrom } of pools) {
      const why = keepsFrom?.(work);
      if (why !== undefined) return why;
    }
  return undefined;
}
