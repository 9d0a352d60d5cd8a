import { rfc3339 } from '../../api/conditions.ts';
import { burstClusterName } from '../../api/names.ts';
import { formatMoney, type Micros } from '../../cost/money.ts';
import type {
  ClusterOrder,
  ClusterRemoval,
  EmptyOrder,
  GrantOrder,
  Kept,
  NodesOrder,
  OpenOrder,
  WakeOrder,
} from './plan-model.ts';
import {
  type ClusterPurchase,
  clusterNameOf,
  clusterWaitOf,
  haveCome,
  isLeaving,
  type KeptGrant,
  keptBilling,
  type NodesPurchase,
  purchaseHasEnded,
  rejoinedAt,
  type WakePurchase,
} from './purchases.ts';
import {
  type BurstReceipt,
  clusterNamed,
  clustersIn,
  keptSources,
  nodesIn,
  noteDecision,
  restCandidate,
  restMs,
  toldAlternatives,
  wakesIn,
  withCluster,
  withPurchase,
} from './receipt.ts';
import { unusedMs } from './rests.ts';
import { setRate } from './spend.ts';
import {
  endWake,
  fallAsleep,
  grantNodes,
  startEmptying,
  startGiveBack,
  stopEmptying,
  takeWork,
} from './transitions.ts';

/**
 * The receipt after a decision, before it is carried out. Each decision is kept for people. Pure. `now`: milliseconds
 * since the epoch.
 */

const FIRST_LEFT_ALONE_MS = 30 * 60_000;
/** Number of newest purchases that keep their sources: a receipt has no room for more. */
const KEPT_WITH_SOURCES = 200;

/** Buys a cluster. */
export function buyCluster(receipt: BurstReceipt, order: ClusterOrder, now: number): BurstReceipt {
  const { candidate, nodes, mostNodes, granted, price, sources, why, alternatives, waits, revision } = order;
  const at = rfc3339(new Date(now));
  const { name, uid } = receipt.policy;
  const bought: ClusterPurchase = {
    kind: 'cluster',
    number: receipt.next,
    name: burstClusterName(name, candidate, uid, receipt.next),
    candidate,
    at,
    sources: keptSources(sources),
    nodes,
    ...(mostNodes !== undefined && { mostNodes }),
    ...(granted && { granted: keptGrants(granted) }),
    most: formatMoney(price.most),
    rate: formatMoney(price.hourly),
    rateSince: at,
    phase: { name: waits === undefined ? 'Coming' : waits === 'asleep' ? 'Asleep' : 'Warm' },
    ...(waits === 'asleep' && { awakeRate: formatMoney(price.hourly) }),
    ...(revision && { revision }),
    ...(price.billing && { billing: keptBilling(price.billing) }),
  };
  const after = {
    ...receipt,
    next: receipt.next + 1,
    purchases: [...receipt.purchases, bought],
    // A waiting cluster takes no waiting work, so it starts no cool-down for it.
    ...(waits === undefined && { lastOut: at }),
  };
  return noteDecision(after, {
    at,
    action: 'Buy',
    cluster: bought.name,
    candidate,
    why,
    hourly: bought.rate,
    alternatives: toldAlternatives(alternatives),
  });
}

const keptGrants = (granted: NonNullable<ClusterOrder['granted']>): Record<string, KeptGrant> =>
  Object.fromEntries(
    Object.entries(granted).map(([pool, { nodes, each }]) => [pool, { nodes, each: formatMoney(each) }]),
  );

/** Adds nodes to a pool. @param from desired nodes before */
export function addNodes(
  receipt: BurstReceipt,
  order: NodesOrder,
  uid: string,
  from: number,
  now: number,
): BurstReceipt {
  const { cluster, pool, nodes, entry, sources, why, granted = 0 } = order;
  const at = rfc3339(new Date(now));
  // Nodes of the policy's own clusters are counted with the cluster.
  const each = entry === undefined ? 0n : order.each;
  const rate = formatMoney(each * BigInt(nodes));
  const bought: NodesPurchase = {
    kind: 'nodes',
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
    phase: 'Coming',
  };
  const long = new Set(nodesIn(receipt).slice(0, -KEPT_WITH_SOURCES).filter(haveCome));
  const before = receipt.purchases.map((one) =>
    one.kind === 'nodes' && long.has(one) ? { ...one, sources: [] } : one,
  );
  return noteDecision(
    { ...receipt, purchases: [...before, bought], lastOut: at },
    {
      at,
      action: 'Grow',
      cluster: clusterNameOf(cluster),
      ...(entry !== undefined && { candidate: entry }),
      pool,
      why,
      hourly: entry === undefined ? formatMoney(order.each * BigInt(granted)) : rate,
    },
  );
}

/** Raises the grant of a pool; budgets count it from now on. @param uid of its cluster */
export function grantMore(
  receipt: BurstReceipt,
  uid: string,
  pool: string,
  more: number,
  each: Micros,
  now: number,
): BurstReceipt {
  const purchase = clustersIn(receipt).find((one) => one.uid === uid);
  if (!purchase?.granted || more <= 0) return receipt;
  const nodes = (purchase.granted[pool]?.nodes ?? 0) + more;
  const grant = { nodes, each: formatMoney(each), raisedAt: rfc3339(new Date(now)) };
  return withPurchase(receipt, purchase, grantNodes(purchase, pool, grant));
}

/** Raises the grant of a pool for waiting pods of its cluster. */
export function raiseGrant(receipt: BurstReceipt, order: GrantOrder, uid: string, now: number): BurstReceipt {
  const { cluster, pool, nodes, each, why } = order;
  return noteDecision(grantMore(receipt, uid, pool, nodes, each, now), {
    at: rfc3339(new Date(now)),
    action: 'Grow',
    cluster: clusterNameOf(cluster),
    pool,
    why,
    hourly: formatMoney(each * BigInt(nodes)),
  });
}

/** Opens a warm cluster for work. It was bought before: no cool-down. */
export function openCluster(receipt: BurstReceipt, order: OpenOrder, now: number): BurstReceipt {
  const { name, candidate, sources, why } = order;
  const open = withCluster(receipt, name, (one) => takeWork(one, keptSources(sources), now));
  return noteDecision(open, { at: rfc3339(new Date(now)), action: 'Open', cluster: name, candidate, why });
}

/**
 * Wakes a sleeping cluster. Budgets count its awake cost from now on, or they would be spent twice until its machines
 * arrive.
 */
export function wakeCluster(receipt: BurstReceipt, order: WakeOrder, now: number): BurstReceipt {
  const { name, candidate, sources, why, alternatives = [] } = order;
  const purchase = clusterNamed(receipt, name);
  if (purchase?.phase.name !== 'Asleep') return receipt;
  const at = rfc3339(new Date(now));
  const hourly = purchase.awakeRate ?? purchase.most;
  const woken = withCluster(setRate(receipt, name, hourly, now), name, (one) =>
    takeWork(one, keptSources(sources), now),
  );
  return noteDecision(
    { ...woken, lastOut: at },
    { at, action: 'Wake', cluster: name, candidate, why, hourly, alternatives: toldAlternatives(alternatives) },
  );
}

/** Wakes a cluster of somebody else. @param cluster `namespace/name` */
export function wakeOthers(
  receipt: BurstReceipt,
  { entry = '', sources, why, alternatives = [], waking }: WakeOrder,
  { cluster, uid }: Pick<WakePurchase, 'cluster' | 'uid'>,
  now: number,
): BurstReceipt {
  const at = rfc3339(new Date(now));
  const rate = formatMoney(waking.hourly);
  const bought: WakePurchase = {
    kind: 'wake',
    cluster,
    uid,
    entry,
    at,
    sources: keptSources(sources),
    most: formatMoney(waking.most),
    rate,
    rateSince: at,
    ...(waking.billing && { billing: keptBilling(waking.billing) }),
    phase: { name: 'Waking' },
  };
  return noteDecision(
    { ...receipt, purchases: [...receipt.purchases, bought], lastOut: at },
    {
      at,
      action: 'Wake',
      cluster: clusterNameOf(cluster),
      candidate: entry,
      why,
      hourly: rate,
      alternatives: toldAlternatives(alternatives),
    },
  );
}

/** Begins to empty a cluster, so that it can be given back. */
export function emptyCluster(receipt: BurstReceipt, { name, why }: EmptyOrder, now: number): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  const emptying = purchase && startEmptying(purchase, now);
  if (!purchase || !emptying || emptying === purchase) return receipt;
  const at = rfc3339(new Date(now));
  const { candidate, rate } = purchase;
  const begun = { ...withPurchase(receipt, purchase, emptying), lastIn: at };
  return noteDecision(begun, { at, action: 'Empty', cluster: name, candidate, why, hourly: rate });
}

/** Stops emptying a cluster; after a failure it rests, twice as long each time. */
export function keepCluster(receipt: BurstReceipt, { name, why, isFailure }: Kept, now: number): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  if (purchase?.phase.name !== 'Emptying') return receipt;
  const at = rfc3339(new Date(now));
  const failures = (purchase.phase.before.leftAlone?.failures ?? 0) + 1;
  const until = rfc3339(new Date(now + restMs(failures, FIRST_LEFT_ALONE_MS)));
  const again = stopEmptying(purchase, isFailure ? { failures, until } : undefined);
  return noteDecision(
    { ...withPurchase(receipt, purchase, again), lastIn: at },
    { at, action: 'Keep', cluster: name, candidate: purchase.candidate, why },
  );
}

/** Gives a cluster back; if it did not come or was of no use, its candidate rests. */
export function returnCluster(
  receipt: BurstReceipt,
  { name, why, isFailure }: Pick<ClusterRemoval, 'name' | 'why' | 'isFailure'>,
  now: number,
): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  if (!purchase || isLeaving(purchase)) return receipt;
  const at = rfc3339(new Date(now));
  const { candidate, wokenAt = purchase.at, revision, rate } = purchase;
  const said = noteDecision(
    { ...withPurchase(receipt, purchase, startGiveBack(purchase, now)), lastIn: at },
    { at, action: isFailure ? 'Fail' : 'Remove', cluster: name, candidate, why, hourly: rate },
  );
  return isFailure
    ? restCandidate(said, candidate, { why: `${name}: ${why}`, at: wokenAt, revision }, now)
    : restUnused(said, purchase, why, now);
}

/** Puts a cluster without work to sleep. Its machines determine its cost from now on. */
export function putToSleep(receipt: BurstReceipt, { name, why }: ClusterRemoval, now: number): BurstReceipt {
  const purchase = clusterNamed(receipt, name);
  if (!purchase || isLeaving(purchase) || clusterWaitOf(purchase)) return receipt;
  const at = rfc3339(new Date(now));
  const { candidate } = purchase;
  const said = noteDecision(
    { ...withPurchase(receipt, purchase, fallAsleep(purchase, now)), lastIn: at },
    { at, action: 'Sleep', cluster: name, candidate, why },
  );
  return restUnused(said, purchase, why, now);
}

/** Rests the candidate of a cluster that was of no use. @param why it ends */
function restUnused(receipt: BurstReceipt, purchase: ClusterPurchase, why: string, now: number): BurstReceipt {
  const unused = unusedMs(purchase, now);
  if (unused === undefined) return receipt;
  const { name, candidate, at, wokenAt = at, revision } = purchase;
  const said = `${name}, which had no work: ${why}`;
  return restCandidate(receipt, candidate, { why: said, at: wokenAt, revision, unusedMs: unused }, now);
}

/** Lets a woken cluster sleep again by its own spec. One that did not wake, or got no work, rests. */
export function letSleep(
  receipt: BurstReceipt,
  { name, why, isFailure, toSleep }: ClusterRemoval,
  now: number,
): BurstReceipt {
  const wake = wakesIn(receipt).find((one) => clusterNameOf(one.cluster) === name && !purchaseHasEnded(one));
  if (!wake) return receipt;
  const at = rfc3339(new Date(now));
  const said = noteDecision(
    { ...withPurchase(receipt, wake, endWake(wake)), lastIn: at },
    { at, action: isFailure ? 'Fail' : 'Sleep', cluster: name, candidate: wake.entry, why, hourly: wake.rate },
  );
  if (isFailure) return restCandidate(said, wake.cluster, { why: `${name}: ${why}`, at: wake.at }, now);
  // A cluster that its owner takes back proves nothing about its use.
  if (wake.work || !toSleep) return said;
  const tookMs = Math.max(0, Date.parse(rejoinedAt(wake) ?? at) - Date.parse(wake.at));
  const unused = { why: `${name}, which had no work: ${why}`, at: wake.at, unusedMs: tookMs };
  return restCandidate(said, wake.cluster, unused, now);
}
