import { rfc3339 } from '../../api/conditions.ts';
import { type Micros, parseMoney } from '../../cost/money.ts';
import type { WokenCluster } from './model.ts';
import { nodesOfOthers } from './node-limit.ts';
import {
  billingOfPurchase,
  type ClusterPurchase,
  clusterNameOf,
  haveCome,
  isComing,
  isToOrder,
  type KeptGrant,
  type NodesPurchase,
  purchaseHasEnded,
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

/** The receipt after observing purchases. Pure. `now`: milliseconds since the epoch. */

/** Observed state of a pool. */
export interface PoolNow {
  /** Desired nodes by the last decision. */
  readonly count: number;
  /** Existing nodes. */
  readonly present: number;
  /** No more can be bought now. */
  readonly isSoldOut: boolean;
}

/** Key under which a pool rests. */
export const restOf = ({ cluster, pool }: Pick<NodesPurchase, 'cluster' | 'pool'>): string => `${cluster}/${pool}`;

/** Cost per hour of added nodes. */
export const grownHourly = (receipt: BurstReceipt): Micros =>
  nodesIn(receipt).reduce((sum, { rate }) => sum + parseMoney(rate), 0n);

/** Added nodes in clusters of others that are still wanted. */
export const grownNodes = (receipt: BurstReceipt): number => nodesOfOthers(nodesIn(receipt));

/**
 * The receipt after observing enlarged pools: whether their nodes came, failed, or went because nobody needed them.
 * @param look 'gone': the pool is gone, or somebody else sizes it; 'unknown': not observable now
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
    // The pool has yet to be enlarged.
    if (isToOrder(purchase, now) && !seen.isSoldOut) continue;
    const isOver = seen.count < purchase.to || seen.isSoldOut || !isComing(purchase, now);
    const isLost = purchase.phase === 'Coming' && isOver;
    const nodes = Math.max(0, Math.min(purchase.nodes, seen.count - purchase.from));
    next = withFewer(next, purchase, isLost ? failToArrive(purchase) : purchase, nodes, now);
    if (isLost) next = withFailure(next, purchase, now);
  }
  return next;
}

/** Reduces the wanted nodes; earlier cost is spent. @param after the purchase in its next phase */
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
    cluster: clusterNameOf(cluster),
    ...(entry !== undefined && { candidate: entry }),
    pool,
    why,
    hourly: rate,
  });
}

/** Observed state of a woken cluster. */
export interface WakeNow {
  readonly hasJoined: boolean;
  /** undefined: unknown. */
  readonly isIdle: boolean | undefined;
  /** Work that it was woken for and that still waits since before it was back. */
  readonly waits: string | undefined;
  /** Deadline for its hub to place that work, milliseconds since the epoch; undefined: it has not joined. */
  readonly placedBy: number | undefined;
  /** Why the policy no longer controls it; undefined: it does. */
  readonly ownerSays: string | undefined;
}

const timesOf = (entry: string): string => `wake/${entry}`;

/** Median of an entry's last wake-up times until the hub had the cluster back, milliseconds; undefined: none. */
export const measuredWakeMs = (receipt: BurstReceipt, entry: string): number | undefined =>
  measuredWakingMs(receipt, timesOf(entry));

/** Cost per hour of woken clusters that budgets count. */
export const wokenHourly = (receipt: BurstReceipt): Micros =>
  wakesIn(receipt).reduce((sum, { most }) => sum + parseMoney(most), 0n);

/**
 * The receipt after observing woken clusters: back, with work, without work, gone, or changed by their owners.
 * @param look 'gone': the cluster no longer exists
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
    const name = clusterNameOf(cluster);
    if (seen === 'gone') {
      next = forgetPurchase(next, wake, now);
      continue;
    }
    if (purchaseHasEnded(wake)) continue;
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

/** A woken cluster for the planner. @param idleSince milliseconds since the epoch */
export const wokenCluster = (
  wake: WakePurchase,
  idleSince: number | undefined,
  hasWork: boolean,
  failure: string | undefined,
): WokenCluster => ({
  key: wake.cluster,
  name: clusterNameOf(wake.cluster),
  candidate: wake.entry,
  at: Date.parse(wake.at),
  phase: rejoinedAt(wake) === undefined ? 'Waking' : 'Joined',
  idleSince,
  hourly: parseMoney(wake.most),
  billing: billingOfPurchase(wake),
  failure,
  hasWork,
});

/** Granted nodes that the autoscaler does not request within this time are taken back. */
const USED_MS = 60_000;

/** Key under which a pool rests that did not use its grant. */
export const grantRestOf = (cluster: string, pool: string): string => `${cluster}/${pool}/granted`;

/** Observed state of a granted pool. */
export interface GrantedPool {
  /** Maximum in the cluster's spec. */
  readonly maximum: number;
  /** The larger of desired and existing nodes. */
  readonly held: number;
}

/** Whether the cluster's spec must allow the whole grant: nodes are on their way, or about to be requested. */
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

/** When unused grants are taken back, milliseconds since the epoch. */
export const grantsEnd = (receipt: BurstReceipt): number[] =>
  clustersIn(receipt).flatMap(({ granted = {} }) =>
    Object.values(granted).flatMap(({ raisedAt }) => (raisedAt === undefined ? [] : [Date.parse(raisedAt) + USED_MS])),
  );

/**
 * The receipt after observing granted pools: nodes beyond their clusters' maximums are free again. A pool that used
 * nothing rests.
 * @param look undefined: unknown now
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
