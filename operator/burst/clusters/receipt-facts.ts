import { rfc3339 } from '../../api/conditions.ts';
import { type Micros, parseMoney } from '../../cost/money.ts';
import type { WokenCluster } from './model.ts';
import { nodesOfOthers } from './node-limit.ts';
import {
  billingOfPurchase,
  type ClusterPurchase,
  hasEnded,
  haveCome,
  isComing,
  isToOrder,
  type KeptGrant,
  type NodesPurchase,
  nameOf,
  rejoinedAt,
  type WakePurchase,
} from './purchases.ts';
import {
  type BurstReceipt,
  clusterNamed,
  clustersIn,
  endRest,
  measuredWakingMs,
  nodesIn,
  noteDecision,
  noteWaking,
  restCandidate,
  wakesIn,
  withPurchase,
} from './receipt.ts';
import { letSleep } from './receipt-decisions.ts';
import { forgetPurchase, spentWith } from './spend.ts';
import { arrive, failToArrive, grantNodes, haveWork, rejoinHub, wantNodes } from './transitions.ts';

/**
 * What a receipt says after a look at what was bought. Pure. `now`: milliseconds since the epoch.
 */

/** What is seen of a pool now. */
export interface PoolNow {
  /** Nodes that it should have by what was decided. */
  readonly count: number;
  /** Nodes that there are. */
  readonly present: number;
  /** No more of them are to be bought now. */
  readonly isSoldOut: boolean;
}

/** Pools rest by this name. */
export const restOf = ({ cluster, pool }: Pick<NodesPurchase, 'cluster' | 'pool'>): string => `${cluster}/${pool}`;

/** What nodes that were added cost in an hour. */
export const grownHourly = (receipt: BurstReceipt): Micros =>
  nodesIn(receipt).reduce((sum, { rate }) => sum + parseMoney(rate), 0n);

/** How many nodes of clusters of others were added, and are wanted still. */
export const grownNodes = (receipt: BurstReceipt): number => nodesOfOthers(nodesIn(receipt));

/**
 * The receipt with what is seen of pools that were made larger: that their nodes have come, or did not, or went because nobody needed them.
 * @param look 'gone': the pool is no more, or somebody else decides about it; 'unknown': nobody can tell now
 */
export function withNodesFacts(
  receipt: BurstReceipt,
  look: (purchase: NodesPurchase) => PoolNow | 'gone' | 'unknown',
  now: number,
): BurstReceipt {
  let next = receipt;
  for (const purchase of nodesIn(receipt)) {
    const seen = look(purchase);
    if (seen === 'unknown') continue;
    if (seen === 'gone') {
      next = forgetPurchase(next, purchase, now);
      continue;
    }
    if (!haveCome(purchase) && seen.present >= purchase.to) {
      next = withPurchase(endRest(next, restOf(purchase)), purchase, arrive(purchase));
      continue;
    }
    // It is to become larger yet.
    if (isToOrder(purchase, now) && !seen.isSoldOut) continue;
    const isOver = seen.count < purchase.to || seen.isSoldOut || !isComing(purchase, now);
    const isLost = purchase.phase === 'Coming' && isOver;
    const nodes = Math.max(0, Math.min(purchase.nodes, seen.count - purchase.from));
    next = withFewer(next, purchase, isLost ? failToArrive(purchase) : purchase, nodes, now);
    if (isLost) next = withFailure(next, purchase, now);
  }
  return next;
}

/** With so many nodes that are still wanted; what they have cost until now is spent. @param after the purchase in its next phase */
function withFewer(
  receipt: BurstReceipt,
  before: NodesPurchase,
  after: NodesPurchase,
  nodes: number,
  now: number,
): BurstReceipt {
  if (nodes === 0) return forgetPurchase(receipt, before, now);
  if (nodes === before.nodes) return withPurchase(receipt, before, after);
  const settled = { ...receipt, spent: spentWith(receipt.spent, before, now) };
  return withPurchase(settled, before, wantNodes(after, nodes, now));
}

function withFailure(receipt: BurstReceipt, purchase: NodesPurchase, now: number): BurstReceipt {
  const { pool, cluster, entry, at, rate } = purchase;
  const why = `nodes that were added to pool ${pool} of ${cluster} did not come`;
  return noteDecision(restCandidate(receipt, restOf(purchase), { why, at }, now), {
    at: rfc3339(new Date(now)),
    action: 'Fail',
    cluster: nameOf(cluster),
    ...(entry !== undefined && { candidate: entry }),
    pool,
    why,
    hourly: rate,
  });
}

/** What is seen of a cluster now that was woken. */
export interface WakeNow {
  readonly hasJoined: boolean;
  /** undefined: nobody can tell. */
  readonly isIdle: boolean | undefined;
  /** Work that waits which it was woken for, since before it was back. */
  readonly waits: string | undefined;
  /** When its hub has placed work there that it was woken for, or never will, milliseconds since the epoch; undefined: it has not joined. */
  readonly placedBy: number | undefined;
  /** Why the policy has nothing to say about it any more; undefined: it has. */
  readonly ownerSays: string | undefined;
}

const timesOf = (entry: string): string => `wake/${entry}`;

/** How long clusters of an entry took to be back in their hub: median of the last ones, milliseconds; undefined: none has. */
export const measuredWakeMs = (receipt: BurstReceipt, entry: string): number | undefined =>
  measuredWakingMs(receipt, timesOf(entry));

/** What clusters that were woken cost in an hour, as budgets count it. */
export const wokenHourly = (receipt: BurstReceipt): Micros =>
  wakesIn(receipt).reduce((sum, { most }) => sum + parseMoney(most), 0n);

/**
 * The receipt with what is seen of clusters that were woken: that they are back, have work, or got none; that they are gone, or that their owners
 * have said something else.
 * @param look 'gone': there is no such cluster any more
 */
export function withWakeFacts(
  receipt: BurstReceipt,
  look: (wake: WakePurchase) => WakeNow | 'gone',
  now: number,
): BurstReceipt {
  let next = receipt;
  for (const wake of wakesIn(receipt)) {
    const { cluster } = wake;
    const seen = look(wake);
    const name = nameOf(cluster);
    if (seen === 'gone') {
      next = forgetPurchase(next, wake, now);
      continue;
    }
    if (hasEnded(wake)) continue;
    if (seen.ownerSays !== undefined) {
      next = letSleep(next, { name, why: seen.ownerSays, isFailure: false }, now);
      continue;
    }
    let known = wake;
    if (seen.hasJoined && rejoinedAt(wake) === undefined) {
      known = rejoinHub(wake, now);
      next = noteWaking(withPurchase(next, wake, known), timesOf(wake.entry), now - Date.parse(wake.at));
    }
    if (seen.isIdle === false && !known.work) {
      const working = haveWork(known, now);
      next = endRest(withPurchase(next, known, working), cluster);
      known = working;
    }
    const isOverdue = seen.placedBy !== undefined && seen.placedBy <= now;
    if (isOverdue && seen.isIdle && !known.work && seen.waits !== undefined)
      next = letSleep(next, { name, why: `it got none of the work of ${seen.waits}`, isFailure: true }, now);
  }
  return next;
}

/** As the planner takes it. @param idleSince milliseconds since the epoch */
export const wokenCluster = (
  wake: WakePurchase,
  idleSince: number | undefined,
  hasWork: boolean,
  failure: string | undefined,
): WokenCluster => ({
  key: wake.cluster,
  name: nameOf(wake.cluster),
  candidate: wake.entry,
  at: Date.parse(wake.at),
  phase: rejoinedAt(wake) === undefined ? 'Waking' : 'Joined',
  idleSince,
  hourly: parseMoney(wake.most),
  billing: billingOfPurchase(wake),
  failure,
  hasWork,
});

/** Nodes that are granted are asked for within this time, or are taken back. */
const USED_MS = 60_000;

/** Pools that did not use what was granted to them rest by this name. */
export const grantRestOf = (cluster: string, pool: string): string => `${cluster}/${pool}/granted`;

/** A pool of a purchase, as it is seen now. */
export interface GrantedPool {
  /** Most nodes that its cluster lets it have. */
  readonly maximum: number;
  /** Nodes that it should have, or has; the larger. */
  readonly held: number;
}

/** Whether the cluster is to let the pool have all that is granted: nodes are on their way, or about to be asked for. */
export function isInUse(
  receipt: BurstReceipt,
  { uid }: Pick<ClusterPurchase, 'uid'>,
  pool: string,
  { raisedAt }: KeptGrant,
  now: number,
): boolean {
  if (raisedAt !== undefined && Date.parse(raisedAt) + USED_MS > now) return true;
  return nodesIn(receipt).some((one) => one.uid === uid && one.pool === pool && isComing(one, now));
}

/** When what is granted and not asked for is taken back, milliseconds since the epoch. */
export const grantsEnd = (receipt: BurstReceipt): number[] =>
  clustersIn(receipt).flatMap(({ granted = {} }) =>
    Object.values(granted).flatMap(({ raisedAt }) => (raisedAt === undefined ? [] : [Date.parse(raisedAt) + USED_MS])),
  );

/**
 * The receipt with what is seen of pools that nodes were granted to: what their clusters let them have no more is free for others. A pool that has
 * asked for none of it rests.
 * @param look undefined: nobody can tell now
 */
export function withGrantFacts(
  receipt: BurstReceipt,
  look: (purchase: ClusterPurchase, pool: string) => GrantedPool | undefined,
  now: number,
): BurstReceipt {
  let next = receipt;
  for (const { name, granted = {}, phase } of clustersIn(receipt)) {
    if (phase.name === 'Leaving') continue;
    for (const [pool, grant] of Object.entries(granted)) {
      const purchase = clusterNamed(next, name)!;
      const seen = look(purchase, pool);
      if (!seen) continue;
      const withGrant = (to: KeptGrant) => withPurchase(next, purchase, grantNodes(purchase, pool, to));
      const rest = grantRestOf(`${receipt.policy.namespace}/${name}`, pool);
      const { raisedAt, ...settled } = grant;
      if (raisedAt !== undefined && seen.held >= grant.nodes) next = endRest(withGrant(settled), rest);
      else if (!isInUse(next, purchase, pool, grant, now) && seen.held <= seen.maximum && seen.maximum < grant.nodes) {
        next = withGrant({ ...settled, nodes: seen.maximum });
        const why = `pool ${pool} has asked for no node that was granted`;
        if (raisedAt !== undefined) next = restCandidate(next, rest, { why, at: raisedAt }, now);
      }
    }
  }
  return next;
}
