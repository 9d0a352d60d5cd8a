import { rfc3339 } from '../../api/conditions.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';
import {
  type ClusterPurchase,
  type KeptGrant,
  type LeftAlone,
  mostNodesOf,
  type NodesPurchase,
  type StandingPhase,
  type WakePurchase,
} from './purchases.ts';

/**
 * Transitions of purchases between phases. Each returns the same object when nothing changes. Pure. `now`: milliseconds
 * since the epoch.
 */

const textOf = (now: number): string => rfc3339(new Date(now));

/** Changes the standing phase, also of a leaving cluster. */
function withStanding(purchase: ClusterPurchase, change: (phase: StandingPhase) => StandingPhase): ClusterPurchase {
  const { phase } = purchase;
  const before = phase.name === 'Leaving' ? phase.before : phase;
  const after = change(before);
  if (after === before) return purchase;
  return { ...purchase, phase: phase.name === 'Leaving' ? { ...phase, before: after } : after };
}

/** The WorkerCluster was seen. */
export const seeCluster = (purchase: ClusterPurchase, uid: string): ClusterPurchase =>
  purchase.uid === uid ? purchase : { ...purchase, uid };

/** The cluster was seen in its hub. */
export const joinHub = (purchase: ClusterPurchase, now: number): ClusterPurchase =>
  withStanding(purchase, (phase) => {
    switch (phase.name) {
      case 'Coming':
        return { name: 'Joined', at: textOf(now) };
      case 'Warm':
        return phase.joinedAt === undefined ? { ...phase, joinedAt: textOf(now) } : phase;
      // A cluster that goes to sleep stays in its hub until the hub releases it.
      case 'Asleep':
      case 'Joined':
      case 'Emptying':
        return phase;
    }
  });

/** The waiting cluster is ready to take work. */
export const becomeReady = (purchase: ClusterPurchase, now: number): ClusterPurchase =>
  purchase.readyAt === undefined ? { ...purchase, readyAt: textOf(now) } : purchase;

/** Work was seen on a cluster. */
export const haveWork = <Kind extends ClusterPurchase | WakePurchase>(purchase: Kind, now: number): Kind =>
  purchase.work ? purchase : { ...purchase, work: { at: textOf(now) } };

/** The hub placed none of the intended work there. */
export const becomeUseless = (purchase: ClusterPurchase): ClusterPurchase =>
  withStanding(purchase, (phase) => {
    if (phase.name === 'Joined') return { ...phase, isUseless: true };
    return phase.name === 'Emptying' ? { ...phase, before: { ...phase.before, isUseless: true } } : phase;
  });

/** Changes the rate from now on. @param cost total cost so far, a decimal; undefined: unknown */
export const changeRate = (
  purchase: ClusterPurchase,
  rate: string,
  cost: string | undefined,
  now: number,
): ClusterPurchase => ({ ...purchase, rate, rateSince: textOf(now), ...(cost !== undefined && { cost }) });

/** The waiting cluster takes work; a sleeping one is woken for it. */
export const takeWork = (purchase: ClusterPurchase, sources: readonly string[], now: number): ClusterPurchase => {
  const { phase } = purchase;
  switch (phase.name) {
    case 'Warm': {
      const { joinedAt } = phase;
      return { ...purchase, sources, phase: joinedAt ? { name: 'Joined', at: joinedAt } : { name: 'Coming' } };
    }
    case 'Asleep':
      return { ...purchase, sources, phase: { name: 'Coming' }, wokenAt: textOf(now) };
    case 'Coming':
    case 'Joined':
    case 'Emptying':
    case 'Leaving':
      return purchase;
  }
};

/** The cluster is put to sleep: observations of its time in the hub end. */
export const fallAsleep = (purchase: ClusterPurchase, now: number): ClusterPurchase => {
  const { work: _, ...rest } = purchase;
  return { ...rest, phase: { name: 'Asleep' }, sources: [], readyAt: textOf(now), awakeRate: purchase.rate };
};

/** Emptying of the cluster begins. */
export const startEmptying = (purchase: ClusterPurchase, now: number): ClusterPurchase => {
  const { phase } = purchase;
  return phase.name === 'Joined'
    ? { ...purchase, phase: { name: 'Emptying', since: textOf(now), before: phase } }
    : purchase;
};

/**
 * Emptying of the cluster stops, and it takes work again. @param leftAlone after a failure; undefined: emptying was no
 * longer wanted
 */
export const stopEmptying = (purchase: ClusterPurchase, leftAlone: LeftAlone | undefined): ClusterPurchase => {
  const { phase } = purchase;
  if (phase.name !== 'Emptying') return purchase;
  return { ...purchase, phase: leftAlone ? { ...phase.before, leftAlone } : phase.before };
};

/** The cluster is given back. */
export const startGiveBack = (purchase: ClusterPurchase, now: number): ClusterPurchase => {
  const { phase, uid } = purchase;
  if (phase.name === 'Leaving') return purchase;
  return { ...purchase, phase: { name: 'Leaving', before: phase, ...(uid === undefined && { at: textOf(now) }) } };
};

/** Changes the grant of a pool, and the amount that budgets count. */
export const grantNodes = (purchase: ClusterPurchase, pool: string, grant: KeptGrant): ClusterPurchase => {
  const before = purchase.granted?.[pool] ?? { nodes: 0, each: '0' };
  const most = parseMoney(purchase.most) - hourlyOf(before) + hourlyOf(grant);
  return {
    ...purchase,
    granted: { ...purchase.granted, [pool]: grant },
    most: formatMoney(most > 0n ? most : 0n),
    mostNodes: mostNodesOf(purchase) - before.nodes + grant.nodes,
  };
};

/**
 * The starting cluster has fewer nodes.
 * @param less what budgets count less per hour, and the number of nodes that limits count less
 */
export function cutNodes(
  purchase: ClusterPurchase,
  cuts: readonly { readonly pool: string; readonly before: number; readonly nodes: number }[],
  less: { readonly most: bigint; readonly mostNodes: number },
): ClusterPurchase {
  const most = parseMoney(purchase.most) - less.most;
  const granted = purchase.granted && { ...purchase.granted };
  for (const { pool, before, nodes } of cuts) {
    const grant = granted?.[pool];
    if (granted && grant) granted[pool] = { ...grant, nodes: Math.max(nodes, grant.nodes - (before - nodes)) };
  }
  return {
    ...purchase,
    nodes: { ...purchase.nodes, ...Object.fromEntries(cuts.map(({ pool, nodes }) => [pool, nodes])) },
    ...(granted && { granted }),
    most: formatMoney(most > 0n ? most : 0n),
    ...(purchase.mostNodes !== undefined && { mostNodes: Math.max(0, purchase.mostNodes - less.mostNodes) }),
  };
}

const hourlyOf = ({ nodes, each }: KeptGrant): bigint => parseMoney(each) * BigInt(nodes);

/** All of the nodes were seen. */
export const arrive = (purchase: NodesPurchase): NodesPurchase => {
  switch (purchase.phase) {
    case 'Coming':
      return { ...purchase, phase: 'Came' };
    case 'Failed':
      return { ...purchase, phase: 'CameLate' };
    case 'Came':
    case 'CameLate':
      return purchase;
  }
};

/** The nodes are given up. */
export const failToArrive = (purchase: NodesPurchase): NodesPurchase =>
  purchase.phase === 'Coming' ? { ...purchase, phase: 'Failed' } : purchase;

/** Reduces the number of wanted nodes. */
export const wantNodes = (purchase: NodesPurchase, nodes: number, now: number): NodesPurchase => {
  if (nodes === purchase.nodes) return purchase;
  const rate = formatMoney(parseMoney(purchase.each) * BigInt(nodes));
  return { ...purchase, nodes, rate, rateSince: textOf(now) };
};

/** The woken cluster was seen back in its hub. */
export const rejoinHub = (purchase: WakePurchase, now: number): WakePurchase =>
  purchase.phase.name === 'Waking' ? { ...purchase, phase: { name: 'Joined', at: textOf(now) } } : purchase;

/** The order to be awake is being taken back. */
export const endWake = (purchase: WakePurchase): WakePurchase =>
  purchase.phase.name === 'Ended' ? purchase : { ...purchase, phase: { name: 'Ended', before: purchase.phase } };
