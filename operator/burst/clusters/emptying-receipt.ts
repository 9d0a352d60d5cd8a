import { rfc3339 } from '../../api/conditions.ts';
import type { BurstReceipt, KeptPurchase } from './kept.ts';
import type { Emptying, Kept } from './plan-model.ts';
import { changed, decided, restMs } from './receipt.ts';

const FIRST_LEFT_ALONE_MS = 30 * 60_000;

/** The work of a cluster is moved away from now on, so that it can be given back. */
export function emptying(receipt: BurstReceipt, { name, why }: Emptying, now: number): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase || purchase.leaving || purchase.emptyingSince !== undefined) return receipt;
  const at = rfc3339(new Date(now));
  const { candidate, rate } = purchase;
  const begun = { ...changed(receipt, name, { emptyingSince: at }), lastIn: at };
  return decided(begun, { at, action: 'Empty', cluster: name, candidate, why, hourly: rate });
}

/** A cluster that was being emptied takes work again; one that could not be is left alone, each time twice as long. */
export function kept(receipt: BurstReceipt, { name, why, isFailure }: Kept, now: number): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (purchase?.emptyingSince === undefined || purchase.leaving) return receipt;
  const at = rfc3339(new Date(now));
  const { emptyingSince: _, ...open } = purchase;
  const failures = (purchase.leftAlone?.failures ?? 0) + 1;
  const again: KeptPurchase = isFailure
    ? { ...open, leftAlone: { failures, until: rfc3339(new Date(now + restMs(failures, FIRST_LEFT_ALONE_MS))) } }
    : open;
  const purchases = receipt.purchases.map((one) => (one === purchase ? again : one));
  return decided(
    { ...receipt, purchases, lastIn: at },
    { at, action: 'Keep', cluster: name, candidate: purchase.candidate, why },
  );
}
