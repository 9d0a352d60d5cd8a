import { isLeaving, waitOf } from '../burst/clusters/purchases.ts';
import { clustersIn } from '../burst/clusters/receipt.ts';
import type { Wait } from '../burst/clusters/warm.ts';
import type { Simulation } from './state.ts';

/** How clusters of the policy wait, by their keys; those that take work are left out. */
export function waitsOf({ rehearsed }: Simulation): ReadonlyMap<string, Wait> {
  const { policy, receipt } = rehearsed ?? {};
  const waits = (receipt ? clustersIn(receipt) : []).flatMap((one): [string, Wait][] => {
    const wait = waitOf(one);
    return wait && !isLeaving(one) ? [[`${policy!.metadata.namespace}/${one.name}`, wait]] : [];
  });
  return new Map(waits);
}
