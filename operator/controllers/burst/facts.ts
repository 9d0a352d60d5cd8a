import { rfc3339 } from '../../api/conditions.ts';
import type { BurstReceipt, KeptPurchase } from '../../burst/clusters/kept.ts';
import { changed, costs, gone, rested, startedUp, useful } from '../../burst/clusters/receipt.ts';
import { isWaking, wokeUp } from '../../burst/clusters/sleep-receipt.ts';
import { PLACED_MS } from './arrival.ts';
import type { HubWork } from './hub-work.ts';
import type { Seen } from './seen.ts';

/** The receipt with what is seen of its clusters: that they are there, have joined, cost something else by now, or are gone. Pure. */
export function withFacts(
  receipt: BurstReceipt,
  seen: readonly Seen[],
  work: readonly HubWork[],
  now: number,
): BurstReceipt {
  let next = receipt;
  const placed = new Map(seen.map(({ purchase, placedBy = 0 }) => [purchase.number, placedBy]));
  /** Until when a hub may still be about to place work there. What it places as a whole waits for all that was bought for it. */
  const placedUntil = ({ number, joinedAt }: KeptPurchase): number =>
    joinedAt === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(Date.parse(joinedAt) + PLACED_MS, placed.get(number) ?? 0);
  for (const { purchase, cluster, hasJoined, isIdle, isWarm } of seen) {
    const { name, candidate, uid, joinedAt, warmAt, worked, useless } = purchase;
    if (!cluster) {
      // One that was never seen is still to be made; one that was is gone, or is somebody else's now.
      if (uid !== undefined) next = gone(next, name, now);
      continue;
    }
    if (cluster.metadata.uid !== undefined) next = changed(next, name, { uid: cluster.metadata.uid });
    // One that was put to sleep is in its hub until that has let go of it.
    if (hasJoined && isWaking(purchase)) next = wokeUp(next, name, now);
    else if (hasJoined && joinedAt === undefined && !purchase.sleeps) {
      next = changed(next, name, { joinedAt: rfc3339(new Date(now)) });
      // One that has waited warm has taken as long as it took then.
      if (warmAt === undefined) next = startedUp(next, candidate, now - Date.parse(purchase.at));
    }
    if (isWarm && warmAt === undefined) {
      next = changed(next, name, { warmAt: rfc3339(new Date(now)) });
      next = startedUp(next, candidate, now - Date.parse(purchase.at));
    }
    const hourly = cluster.status?.cost?.hourly;
    // Until it has machines it costs what it was bought for: a budget must not be spent twice in between.
    const isThere = (joinedAt ?? warmAt) !== undefined && !isWaking(purchase);
    if (hourly !== undefined && (isThere || purchase.leaving)) next = costs(next, name, hourly, now);
    const hasWork = { worked: true, workedAt: rfc3339(new Date(now)) } as const;
    if (isIdle === false && !worked) next = useful(changed(next, name, hasWork), candidate);
    const isOverdue = placedUntil(purchase) <= now;
    const waits = work.find(
      ({ source, since }) =>
        purchase.sources.includes(source) &&
        since < Date.parse(joinedAt ?? '') &&
        !others(next, purchase).some((one) => !one.leaving && one.sources.includes(source) && placedUntil(one) > now),
    );
    if (isOverdue && isIdle && !worked && !useless && waits) {
      const why = `${name}, which has joined and got none of the work of ${waits.source} that it was bought for`;
      next = rested(
        changed(next, name, { useless: true }),
        candidate,
        { why, at: purchase.wokenAt ?? purchase.at, revision: purchase.revision },
        now,
      );
    }
  }
  return next;
}

const others = ({ purchases }: BurstReceipt, { number }: KeptPurchase): readonly KeptPurchase[] =>
  purchases.filter((one) => one.number !== number);
