import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { mustSleep } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { SleepOrder } from '../../capacity/sleep-order.ts';
import { keyOf } from '../../kube/resources.ts';
import { keptClusters } from './own-clusters.ts';
import type { BurstWorld } from './world.ts';

/** The order's author, as stored in the order. */
export const orderedBy = ({ metadata: { name, namespace } }: BurstPolicy): string => `BurstPolicy ${namespace}/${name}`;

/**
 * Orders waiting clusters of the policy to sleep, and withdraws orders of woken ones. Idempotent. The order is stored
 * where only the operator writes: the spec stays unchanged.
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
    if (known === 'unknown' || mustSleep(purchase) === (isOurs && known.asleep)) continue;
    const why = 'it waits until work needs it';
    const order: SleepOrder | undefined = mustSleep(purchase)
      ? { asleep: true, by, why, at: purchase.readyAt! }
      : undefined;
    await world.orderSleep(keyOf(cluster), uid, order, signal);
    const text = order ? `${by} puts it to sleep: ${why}` : `${by} wakes it for ${purchase.sources[0] ?? 'work'}`;
    world.recordEvent(cluster, 'Normal', order ? 'PutToSleep' : 'Woken', text);
  }
}
