import { rfc3339 } from '../../api/conditions.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import type { BurstReceipt, KeptGrowth } from './kept.ts';
import { nodesOfOthers } from './node-limit.ts';
import type { Growth } from './plan-model.ts';
import { decided, keptSources, rested, useful } from './receipt.ts';
import { spentWith } from './spend.ts';

/** What is seen of a pool now. */
export interface PoolNow {
  /** Nodes that it should have by what was decided. */
  readonly count: number;
  /** Nodes that there are. */
  readonly present: number;
  /** No more of them are to be bought now. */
  readonly isSoldOut: boolean;
}

/** A pool that was written down to be larger is made so within this time, or never: what was decided since then is somebody's wish. */
const ORDER_MS = 60_000;
/** Nodes that have not come by then do not come. As the autoscaler of nodes has it. */
const ARRIVE_MS = 15 * 60_000;

/** Of so many before the last it is kept what they were for: of more there is no room in a receipt. */
const KEPT_WITH_SOURCES = 200;

/** Pools rest by this name. */
export const restOf = ({ cluster, pool }: Pick<KeptGrowth, 'cluster' | 'pool'>): string => `${cluster}/${pool}`;

/** Nodes that are added are written down. @param from what the pool was to have before */
export function grew(receipt: BurstReceipt, growth: Growth, uid: string, from: number, now: number): BurstReceipt {
  const { cluster, pool, nodes, entry, sources, why, granted = 0 } = growth;
  const at = rfc3339(new Date(now));
  // Those of a cluster of the policy count with it.
  const each = entry === undefined ? 0n : growth.each;
  const rate = formatMoney(each * BigInt(nodes));
  const kept: KeptGrowth = {
    cluster,
    uid,
    pool,
    ...(entry !== undefined && { entry }),
    at,
    sources: keptSources(sources),
    from,
    to: from + nodes,
    nodes,
    each: formatMoney(each),
    rate,
    rateSince: at,
  };
  const before = receipt.growths ?? [];
  const isLongAgo = (one: KeptGrowth, index: number) => one.came === true && index < before.length - KEPT_WITH_SOURCES;
  const growths = before.map((one, index) => (isLongAgo(one, index) ? { ...one, sources: [] } : one));
  const grown = { ...receipt, growths: [...growths, kept], lastOut: at };
  return decided(grown, {
    at,
    action: 'Grow',
    cluster: nameOf(cluster),
    ...(entry !== undefined && { candidate: entry }),
    pool,
    why,
    hourly: entry === undefined ? formatMoney(growth.each * BigInt(granted)) : rate,
  });
}

export const nameOf = (cluster: string): string => cluster.slice(cluster.indexOf('/') + 1);

/** What nodes that were added cost in an hour. */
export const grownHourly = ({ growths = [] }: BurstReceipt): Micros =>
  growths.reduce((sum, { rate }) => sum + parseMoney(rate), 0n);

/** How many nodes of clusters of others were added, and are wanted still. */
export const grownNodes = ({ growths = [] }: BurstReceipt): number => nodesOfOthers(growths);

/** Whether these nodes are still to be ordered, or on their way. */
export const isComing = ({ came, failed, at }: KeptGrowth, now: number): boolean =>
  !came && !failed && Date.parse(at) + ARRIVE_MS > now;

/** Whether the pool is to be made larger if it is not yet. */
export const isToOrder = (growth: KeptGrowth, now: number): boolean =>
  !growth.came && !growth.failed && Date.parse(growth.at) + ORDER_MS > now;

/**
 * The receipt with what is seen of pools that were made larger: that their nodes have come, or did not, or went because nobody needed them.
 * @param look 'gone': the pool is no more, or somebody else decides about it; 'unknown': nobody can tell now
 */
export function withGrowthFacts(
  receipt: BurstReceipt,
  look: (growth: KeptGrowth) => PoolNow | 'gone' | 'unknown',
  now: number,
): BurstReceipt {
  let next = receipt;
  for (const growth of receipt.growths ?? []) {
    const seen = look(growth);
    if (seen === 'unknown') continue;
    if (seen === 'gone') {
      next = replaced(next, growth, undefined, now);
      continue;
    }
    if (!growth.came && seen.present >= growth.to) {
      next = replaced(useful(next, restOf(growth)), growth, { came: true }, now);
      continue;
    }
    // It is to become larger yet.
    if (isToOrder(growth, now) && !seen.isSoldOut) continue;
    const nodes = Math.max(0, Math.min(growth.nodes, seen.count - growth.from));
    const isOver = seen.count < growth.to || seen.isSoldOut || !isComing(growth, now);
    const isLost = !growth.came && !growth.failed && isOver;
    const more = { nodes, ...(isLost && { failed: true as const }) };
    next = replaced(next, growth, nodes > 0 ? more : undefined, now);
    if (isLost) next = failed(next, growth, now);
  }
  return next;
}

function failed(receipt: BurstReceipt, growth: KeptGrowth, now: number): BurstReceipt {
  const why = `nodes that were added to pool ${growth.pool} of ${growth.cluster} did not come`;
  return decided(rested(receipt, restOf(growth), { why, at: growth.at }, now), {
    at: rfc3339(new Date(now)),
    action: 'Fail',
    cluster: nameOf(growth.cluster),
    ...(growth.entry !== undefined && { candidate: growth.entry }),
    pool: growth.pool,
    why,
    hourly: growth.rate,
  });
}

/** With something else said of it, or without it (undefined); what its nodes have cost until now is spent. */
function replaced(receipt: BurstReceipt, growth: KeptGrowth, more: Partial<KeptGrowth> | undefined, now: number) {
  const growths = receipt.growths ?? [];
  if (!more)
    return {
      ...receipt,
      growths: growths.filter((one) => one !== growth),
      spent: spentWith(receipt.spent, growth, now),
    };
  const isFewer = more.nodes !== undefined && more.nodes !== growth.nodes;
  const isNews = isFewer || (more.came && !growth.came) || (more.failed && !growth.failed);
  if (!isNews) return receipt;
  const settled = isFewer && {
    rate: formatMoney(parseMoney(growth.each) * BigInt(more.nodes!)),
    rateSince: rfc3339(new Date(now)),
  };
  return {
    ...receipt,
    growths: growths.map((one) => (one === growth ? { ...one, ...more, ...settled } : one)),
    ...(isFewer && { spent: spentWith(receipt.spent, growth, now) }),
  };
}
