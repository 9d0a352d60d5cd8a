import { isSaturated } from '../../api/quantity.ts';
import { amountsByName, effectiveRequests } from '../../kube/effective-requests.ts';
import type { Pod } from '../../kube/resources.ts';
import type { Amounts } from './model.ts';

/** Requests of a pod by the scheduler's rule. Throws RangeError for invalid or too large amounts. */
export const podRequestsOf = (pod: Pick<Pod, 'spec' | 'status'>): Amounts => toAmounts(effectiveRequests(pod));

/** Amounts of a node or a profile. Throws RangeError for invalid or too large amounts. */
export const amountsOf = (quantities: Readonly<Record<string, string>> | undefined): Amounts =>
  toAmounts(amountsByName(quantities));

function toAmounts(sum: ReadonlyMap<string, number>): Amounts {
  const others = new Map<string, number>();
  for (const [name, amount] of sum) {
    // The scheduler's int64 exceeds a number here, so the fit is unknown.
    if (isSaturated(amount)) throw new RangeError(`the amount of ${name} is too large to count with`);
    if (!['cpu', 'memory', 'ephemeral-storage', 'pods'].includes(name) && amount !== 0) others.set(name, amount);
  }
  return {
    cpu: sum.get('cpu') ?? 0,
    memory: sum.get('memory') ?? 0,
    storage: sum.get('ephemeral-storage') ?? 0,
    others,
  };
}
