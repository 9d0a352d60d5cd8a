import { costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros } from '../../cost/money.ts';
import { type Chosen, costOf, moneyLeft } from './choose.ts';
import type { ClustersView, GrowingPool, GrowthView, Limits } from './model.ts';
import { nodesLeft, shortOfNodes } from './node-limit.ts';
import type { Alternative } from './plan-model.ts';
import { type Replicas, takenByPool, totalOf } from './room.ts';
import { costToWake, wakeOrChoose } from './wake.ts';
import { type ChosenWarm, openFor } from './warm.ts';

/** Nodes that are to be added, before they have a reason. */
export interface ChosenGrowth {
  readonly entry: string | undefined;
  readonly pool: GrowingPool;
  readonly nodes: number;
  /** So many of them were not counted before. */
  readonly more: number;
  /** Replicas that they take. */
  readonly count: number;
}

/** What serves work that finds no room. */
export interface Serving {
  readonly growths: readonly ChosenGrowth[];
  readonly openings: readonly ChosenWarm[];
  readonly clusters: readonly Chosen[];
  /** Of clusters that are woken: what else there was to choose. Absent: none is woken. */
  readonly instead?: readonly Alternative[];
}

/**
 * How all of this is served, for which there is no room: by nodes that pools may still add, as they cost less than a cluster; then by clusters that
 * wait warm, then by those that sleep, and new ones. Where nodes are too few, with them or without them, whichever costs less. undefined: not at all.
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

/** What one node costs that is there no longer than a cluster must be, as its cloud bills time. */
const forMinimumLife = ({ hourly, billing }: GrowingPool, { minimumLifeMs }: Limits): Micros =>
  costOver(hourly, minimumLifeMs, billing);

/** Nodes of a pool that budgets and maximums have not counted before. */
type Counting = Pick<ChosenGrowth, 'pool' | 'more'>;

const hourlyOf = (growths: readonly Counting[]): Micros =>
  growths.reduce((sum, { pool, more }) => sum + pool.hourly * BigInt(more), 0n);

/** As if these nodes had been added. */
export const withGrown = (view: ClustersView, growths: readonly Counting[]): ClustersView => ({
  ...view,
  grownHourly: (view.grownHourly ?? 0n) + hourlyOf(growths),
  grownNodes: (view.grownNodes ?? 0) + growths.reduce((sum, { more }) => sum + more, 0),
});

/** Of so many nodes of a pool those that are not counted already. */
export const moreThanCounted = ({ counted = 0 }: GrowingPool, nodes: number): number => Math.max(0, nodes - counted);

/** Nodes of pools that may grow, those first that cost least for each replica; last of those of which a cloud took machines away. */
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
    // Two entries may name a pool: its nodes are promised once.
    const key = `${pool.cluster}/${pool.pool}`;
    if (promised.has(key)) continue;
    const allowed = (pool.counted ?? 0) + nodesOfPolicy;
    const most = Math.min(pool.more, allowed, byEntry.get(entry) ?? 0, affordable(pool, money, view.limits));
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

/** A pool, and how many replicas so many nodes of it take. */
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

/** What a node takes; or all that it may have, where it takes one job only as a whole. */
function takenByFew(pool: GrowingPool, wanted: readonly Replicas[]): ReturnType<typeof takenByPool> {
  const one = takenByPool(pool, wanted, 1);
  return one.count > 0 || !wanted.some(({ work }) => work.isHeld) ? one : takenByPool(pool, wanted, pool.more);
}

/** What either costs for each replica, without a fraction. */
const forEach = (a: Counted, b: Counted, cost: (of: Counted) => Micros): [Micros, Micros] => [
  cost(a) * BigInt(b.count),
  cost(b) * BigInt(a.count),
];

/** Of nodes that budgets count already one may be in a dearer place than the other. What has no price comes last. */
function cheaperFirst(a: Counted, b: Counted): number {
  if (a.pool.price === undefined || b.pool.price === undefined)
    return Number(a.pool.price === undefined) - Number(b.pool.price === undefined);
  const [eachA, eachB] = forEach(a, b, ({ pool: { price = 0n }, nodes }) => price * BigInt(nodes));
  return eachA === eachB ? 0 : eachA < eachB ? -1 : 1;
}

/** How many nodes more of it budgets allow. */
export function affordable(
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

/** What each entry that may grow has to say to work for which nothing is done. */
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

/** Why pools that could grow do not, for this work; undefined: nothing keeps them from it. */
function keptFrom(pools: readonly GrowingPool[], replicas: readonly Replicas[]): string | undefined {
  for (const { work } of replicas)
    for (const { keepsFrom } of pools) {
      const why = keepsFrom?.(work);
      if (why !== undefined) return why;
    }
  return undefined;
}
