import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Supply, WarmCluster } from '../../burst/clusters/model.ts';
import { clusterWaitOf, mustSleep } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, measuredWakingMs } from '../../burst/clusters/receipt.ts';
import { restingOf } from '../../burst/clusters/rests.ts';
import { parseMoney } from '../../cost/money.ts';
import type { PurchaseSeen } from './seen.ts';

/** Room of waiting clusters. */
interface WaitingRoom {
  /** A warm cluster, once open. */
  readonly open: (cluster: WorkerCluster) => Supply;
  /** A sleeping cluster, once awake; and why it would not come. */
  readonly woken: (cluster: WorkerCluster) => Pick<WarmCluster, 'supply' | 'problem'>;
}

/**
 * Ready waiting clusters of a policy. Clusters of a resting candidate are not woken, because its machines do not come.
 * Pure.
 */
export function waitingClusters(
  receipt: BurstReceipt,
  seen: readonly PurchaseSeen[],
  room: WaitingRoom,
  now: number,
): WarmCluster[] {
  return seen.flatMap(({ purchase, cluster, isWarm, own }): WarmCluster[] => {
    if (!cluster || !isWarm || own.phase === 'Leaving') return [];
    const { name, candidate } = purchase;
    if (clusterWaitOf(purchase) !== 'asleep') return [{ name, candidate, supply: room.open(cluster) }];
    const startupMs = measuredWakingMs(receipt, candidate);
    const { problem, unused } = restingOf(receipt, candidate, purchase.revision, startupMs, now);
    if (!mustSleep(purchase) || problem !== undefined) return [];
    const waking = {
      hourly: parseMoney(purchase.awakeRate ?? purchase.most),
      most: parseMoney(purchase.most),
      counted: own.hourly,
      billing: own.billing,
      startupMs,
    };
    return [{ name, candidate, ...room.woken(cluster), unused, waking }];
  });
}
