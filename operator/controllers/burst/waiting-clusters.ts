import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Supply, WarmCluster } from '../../burst/clusters/model.ts';
import { isToSleep, waitOf } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, measuredWakingMs } from '../../burst/clusters/receipt.ts';
import { restingOf } from '../../burst/clusters/rests.ts';
import { parseMoney } from '../../cost/money.ts';
import type { Seen } from './seen.ts';

/** What clusters that wait would take. */
interface WaitingRoom {
  /** One that is awake, once its hub opens it. */
  readonly open: (cluster: WorkerCluster) => Supply;
  /** One that sleeps, once it is awake; and why it would not come. */
  readonly woken: (cluster: WorkerCluster) => Pick<WarmCluster, 'supply' | 'problem'>;
}

/** Clusters of a policy that wait and are ready. Of a candidate that rests none is woken: its machines do not come. Pure. */
export function waitingClusters(
  receipt: BurstReceipt,
  seen: readonly Seen[],
  room: WaitingRoom,
  now: number,
): WarmCluster[] {
  return seen.flatMap(({ purchase, cluster, isWarm, own }): WarmCluster[] => {
    if (!cluster || !isWarm || own.phase === 'Leaving') return [];
    const { name, candidate } = purchase;
    if (waitOf(purchase) !== 'asleep') return [{ name, candidate, supply: room.open(cluster) }];
    const startupMs = measuredWakingMs(receipt, candidate);
    const { problem, unused } = restingOf(receipt, candidate, purchase.revision, startupMs, now);
    if (!isToSleep(purchase) || problem !== undefined) return [];
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
