import { rfc3339 } from '../../api/conditions.ts';
import {
  type ClusterPurchase,
  clusterWaitOf,
  isLeaving,
  isUseless,
  isWaking,
  joinedAtOf,
} from '../../burst/clusters/purchases.ts';
import {
  type BurstReceipt,
  clustersIn,
  endRest,
  noteDecision,
  noteStartup,
  noteWaking,
  restCandidate,
  withCluster,
} from '../../burst/clusters/receipt.ts';
import { forgetCluster, setRate } from '../../burst/clusters/spend.ts';
import {
  becomeReady,
  becomeUseless,
  cutNodes,
  haveWork,
  joinHub,
  seeCluster,
} from '../../burst/clusters/transitions.ts';
import { nodesText } from '../../burst/clusters/words.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';
import { PLACED_MS } from './arrival.ts';
import type { HubWork } from './hub-work.ts';
import type { OrderCut, PurchaseSeen } from './seen.ts';

/** The receipt after observing clusters: existing, joined, with changed cost, or gone. Pure. */
export function withFacts(
  receipt: BurstReceipt,
  seen: readonly PurchaseSeen[],
  work: readonly HubWork[],
  now: number,
): BurstReceipt {
  let next = receipt;
  const placed = new Map(seen.map(({ purchase, placedBy = 0 }) => [purchase.number, placedBy]));
  /** Until when a hub may still place work there. A source is placed after everything bought for it has come. */
  const placedUntil = (purchase: ClusterPurchase): number => {
    const joinedAt = joinedAtOf(purchase);
    return joinedAt === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(Date.parse(joinedAt) + PLACED_MS, placed.get(purchase.number) ?? 0);
  };
  for (const { purchase, cluster, hasJoined, isIdle, isWarm, cut } of seen) {
    const { name, candidate, uid, at, wokenAt, readyAt, work: hasWorked, sources, revision } = purchase;
    const joinedAt = joinedAtOf(purchase);
    if (!cluster) {
      // A cluster never seen is yet to be made; a seen one is gone or somebody else's now.
      if (uid !== undefined) next = forgetCluster(next, name, now);
      continue;
    }
    const { uid: its } = cluster.metadata;
    if (its !== undefined) next = withCluster(next, name, (one) => seeCluster(one, its));
    if (cut) next = withCut(next, purchase, cut, now);
    // A cluster put to sleep stays in its hub until released.
    if (hasJoined && joinedAt === undefined && clusterWaitOf(purchase) !== 'asleep') {
      next = withCluster(next, name, (one) => joinHub(one, now));
      if (isWaking(purchase)) next = noteWaking(next, candidate, now - Date.parse(wokenAt!));
      // A warm cluster's startup time was recorded when it became ready.
      else if (readyAt === undefined) next = noteStartup(next, candidate, now - Date.parse(at));
    }
    if (isWarm && readyAt === undefined) {
      next = withCluster(next, name, (one) => becomeReady(one, now));
      next = noteStartup(next, candidate, now - Date.parse(at));
    }
    const hourly = cluster.status?.cost?.hourly;
    // Until its machines exist it counts with its purchase price: a budget must not be spent twice meanwhile.
    const isThere = (joinedAt ?? readyAt) !== undefined && !isWaking(purchase);
    if (hourly !== undefined && (isThere || isLeaving(purchase))) next = setRate(next, name, hourly, now);
    if (isIdle === false && !hasWorked)
      next = endRest(
        withCluster(next, name, (one) => haveWork(one, now)),
        candidate,
      );
    const isOverdue = placedUntil(purchase) <= now;
    const waits = work.find(
      ({ source, since }) =>
        sources.includes(source) &&
        since < Date.parse(joinedAt ?? '') &&
        !others(next, purchase).some(
          (one) => !isLeaving(one) && one.sources.includes(source) && placedUntil(one) > now,
        ),
    );
    if (isOverdue && isIdle && !hasWorked && !isUseless(purchase) && waits) {
      const why = `${name}, which has joined and got none of the work of ${waits.source} that it was bought for`;
      next = restCandidate(
        withCluster(next, name, becomeUseless),
        candidate,
        { why, at: wokenAt ?? at, revision },
        now,
      );
    }
  }
  return next;
}

/** The receipt follows the spec of a starting cluster; its cost so far is spent. */
function withCut(
  receipt: BurstReceipt,
  purchase: ClusterPurchase,
  { pools, saved }: OrderCut,
  now: number,
): BurstReceipt {
  const { name, candidate, rate } = purchase;
  const { hourly, ...less } = saved ?? { hourly: 0n, most: 0n, mostNodes: 0 };
  const left = parseMoney(rate) - hourly;
  const settled = setRate(receipt, name, formatMoney(left > 0n ? left : 0n), now);
  const told = pools.map(({ pool, before, nodes }) => `${nodes} of ${nodesText(before)} of pool ${pool}`);
  return noteDecision(
    withCluster(settled, name, (one) => cutNodes(one, pools, less)),
    {
      at: rfc3339(new Date(now)),
      action: 'Cut',
      cluster: name,
      candidate,
      why: `it starts with ${told.join(', ')}: the work that waits for it needs no more`,
      ...(saved && { hourly: formatMoney(hourly) }),
    },
  );
}

const others = (receipt: BurstReceipt, { number }: ClusterPurchase): readonly ClusterPurchase[] =>
  clustersIn(receipt).filter((one) => one.number !== number);
