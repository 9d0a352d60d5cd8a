import { rfc3339 } from '../../api/conditions.ts';
import type { Emptying, Kept } from './model.ts';
import { type BurstRecord, changed, decided, type KeptPurchase, restMs } from './record.ts';

const FIRST_LEFT_ALONE_MS = 30 * 60_000;

/** The work of a cluster is moved away from now on, so that it can be given back. */
export function emptying(record: BurstRecord, { name, why }: Emptying, now: number): BurstRecord {
  const purchase = record.purchases.find((one) => one.name === name);
  if (!purchase || purchase.leaving || purchase.emptyingSince !== undefined) return record;
  const at = rfc3339(new Date(now));
  const { candidate, rate } = purchase;
  const begun = { ...changed(record, name, { emptyingSince: at }), lastIn: at };
  return decided(begun, { at, action: 'Empty', cluster: name, candidate, why, hourly: rate });
}

/** A cluster that was being emptied takes work again; one that could not be is left alone, each time twice as long. */
export function kept(record: BurstRecord, { name, why, isFailure }: Kept, now: number): BurstRecord {
  const purchase = record.purchases.find((one) => one.name === name);
  if (purchase?.emptyingSince === undefined || purchase.leaving) return record;
  const at = rfc3339(new Date(now));
  const { emptyingSince: _, ...open } = purchase;
  const failures = (purchase.leftAlone?.failures ?? 0) + 1;
  const again: KeptPurchase = isFailure
    ? { ...open, leftAlone: { failures, until: rfc3339(new Date(now + restMs(failures, FIRST_LEFT_ALONE_MS))) } }
    : open;
  const purchases = record.purchases.map((one) => (one === purchase ? again : one));
  return decided(
    { ...record, purchases, lastIn: at },
    { at, action: 'Keep', cluster: name, candidate: purchase.candidate, why },
  );
}
