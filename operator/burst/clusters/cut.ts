import type { FitPod, NodeTemplate } from '../fit/model.ts';
import { pack } from '../fit/pack.ts';
import { ClusterState } from '../fit/state.ts';
import { cancelDueAt, paidUntil } from './give-back.ts';
import type { ClustersView, OrderedNodes, OwnCluster } from './model.ts';
import type { CutOrder, OrderNeed } from './plan-model.ts';
import { addNodesOf } from './room.ts';
import { nodesText, plainText } from './words.ts';

/**
 * How many of their nodes orders need for the work that would go to them, by the packing that bought them. Orders that
 * need all nodes, and those that may not be cut, are absent. Pure.
 * @param workOn work by ordered cluster; a cluster without work is absent
 */
export function needsOf(
  { clusters, supply, candidates }: ClustersView,
  workOn: ReadonlyMap<string, readonly FitPod[]>,
): Map<string, OrderNeed> {
  const found = new Map<string, OrderNeed>();
  for (const { key, order, candidate } of clusters) {
    const planned = supply.find(({ cluster }) => cluster === key)?.planned;
    if (!order || !planned) continue;
    const prices = candidates.find(({ name }) => name === candidate)?.offer?.pools;
    const priceOf = (pool: string) => Number(prices?.find(({ name }) => name === pool)?.price ?? 1n);
    const templates = new Map(planned.map(({ template }) => [template.id, template]));
    // Nodes of unknown size cannot be judged.
    if ([...order.ordered].some(([pool, count]) => count > 0 && !templates.has(pool))) continue;
    const nodes = packedNodes(order, templates, priceOf, workOn.get(key) ?? []);
    if (nodes && [...order.ordered].some(([pool, count]) => (nodes.get(pool) ?? 0) < count))
      found.set(key, { ordered: order.ordered, nodes });
  }
  return found;
}

/** Nodes by pool, at least the template's minimums and at most the ordered ones; undefined: these do not suffice. */
function packedNodes(
  { ordered, least }: OrderedNodes,
  templates: ReadonlyMap<string, NodeTemplate>,
  priceOf: (pool: string) => number,
  pods: readonly FitPod[],
): Map<string, number> | undefined {
  const state = new ClusterState();
  for (const [pool, count] of least) {
    const template = templates.get(pool);
    if (template) addNodesOf(state, 'least:', template, count);
  }
  const offers = [...ordered.keys()].flatMap((pool) => {
    const template = templates.get(pool);
    return template ? [{ template, price: priceOf(pool), countsAgainst: [pool] }] : [];
  });
  const limits = new Map([...ordered].map(([pool, count]) => [pool, count - (least.get(pool) ?? 0)]));
  const { opened, unplaced, notJudged } = pack(
    pods.map((pod, index) => ({ key: String(index), pod })),
    state,
    { offers, limits },
  );
  if (unplaced.size + notJudged.size > 0) return undefined;
  const nodes = new Map([...ordered.keys()].map((pool) => [pool, least.get(pool) ?? 0]));
  for (const { offer } of opened) {
    const pool = offer.template.id;
    nodes.set(pool, (nodes.get(pool) ?? 0) + 1);
  }
  return nodes;
}

/** Orders to cut now, and the next times to check, milliseconds since the epoch. */
interface Cuts {
  readonly cuts: readonly CutOrder[];
  readonly times: readonly number[];
}

/**
 * Orders whose work has needed fewer nodes for as long as an order without work is kept. An order that needs no node is
 * cancelled instead. Pure.
 * @param going names of clusters that are given back
 */
export function cutOrders(
  view: ClustersView,
  needs: ReadonlyMap<string, OrderNeed>,
  going: ReadonlySet<string>,
  now: number,
): Cuts {
  const cuts: CutOrder[] = [];
  const times: number[] = [];
  for (const one of view.clusters) {
    const need = needs.get(one.key);
    const since = one.order?.lessNeeded?.since ?? now;
    if (!need || going.has(one.name)) continue;
    const due = paidUntil(one, cancelDueAt(view, one, since), now);
    if (due > now) times.push(due);
    else cuts.push(...cutOf(one, need, since));
  }
  return { cuts, times };
}

function cutOf({ name, order }: OwnCluster, { ordered, nodes }: OrderNeed, since: number): CutOrder[] {
  const most = order?.lessNeeded?.nodes;
  if (!most) return [];
  const left = [...ordered].map(([pool, count]): [string, number, number] => {
    const needed = Math.max(nodes.get(pool) ?? 0, most.get(pool) ?? 0);
    return [pool, count, Math.min(count, needed)];
  });
  const fewer = left.filter(([, count, needed]) => needed < count);
  // A hub places nothing on a cluster without nodes.
  if (fewer.length === 0 || left.every(([, , needed]) => needed === 0)) return [];
  const told = fewer.map(([pool, count, needed]) => `${needed} of ${nodesText(count)} of pool ${pool}`);
  const why = `the work that waits for it has needed no more than ${told.join(', ')} since ${plainText(since)}`;
  return [{ kind: 'cut', name, nodes: Object.fromEntries(fewer.map(([pool, , needed]) => [pool, needed])), why }];
}
