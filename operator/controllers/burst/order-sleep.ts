import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { isToSleep } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { SleepOrder } from '../../capacity/sleep-order.ts';
import { keyOf } from '../../kube/resources.ts';
import { keptClusters } from './own-clusters.ts';
import type { BurstWorld } from './world.ts';

/** Whose order it is, as it stands in the order itself. */
export const orderedBy = ({ metadata: { name, namespace } }: BurstPolicy): string => `BurstPolicy ${namespace}/${name}`;

/**
 * Has clusters of the policy sleep that wait so, and takes the order back of those that were woken. Does nothing where it was done. What a
 * cluster is told lies where only the operator writes: its spec stays as it was made.
 */
export async function orderSleep(
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  signal: AbortSignal,
): Promise<void> {
  const by = orderedBy(policy);
  for (const { purchase, cluster } of keptClusters(world.clusters, policy, receipt)) {
    const { uid = '' } = cluster.metadata;
    const known = world.sleepOrder(keyOf(cluster), uid);
    const isOurs = typeof known !== 'string' && known.by === by;
    if (known === 'unknown' || isToSleep(purchase) === (isOurs && known.asleep)) continue;
    const why = 'it waits until work needs it';
    const order: SleepOrder | undefined = isToSleep(purchase)
      ? { asleep: true, by, why, at: purchase.readyAt! }
      : undefined;
    await world.orderSleep(keyOf(cluster), uid, order, signal);
    const text = order ? `${by} puts it to sleep: ${why}` : `${by} wakes it for ${purchase.sources[0] ?? 'work'}`;
    world.recordEvent(cluster, 'Normal', order ? 'PutToSleep' : 'Woken', text);
  }
}
