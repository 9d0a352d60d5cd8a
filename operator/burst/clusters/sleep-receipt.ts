import { rfc3339 } from '../../api/conditions.ts';
import type { BurstReceipt, KeptPurchase } from './kept.ts';
import type { Opening, Removal } from './plan-model.ts';
import { changed, costs, decided, keptSources, told, unusedRested, withTime } from './receipt.ts';

/** Whether it is told to sleep: it was ready to take work once, and waits. */
export const isToSleep = ({ sleeps, warmAt, leaving }: KeptPurchase): boolean =>
  sleeps === true && warmAt !== undefined && !leaving;

/** Whether it was woken and is not back in its hub yet. */
export const isWaking = ({ warm, wokenAt, joinedAt }: KeptPurchase): boolean =>
  !warm && wokenAt !== undefined && joinedAt === undefined;

/** A cluster that sleeps is woken. From now on it counts for what it costs awake: a budget must not be spent twice until its machines are there. */
export function woken(receipt: BurstReceipt, opening: Opening, now: number): BurstReceipt {
  const { name, candidate, sources, why, alternatives = [] } = opening;
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase?.sleeps) return receipt;
  const at = rfc3339(new Date(now));
  const hourly = purchase.awake ?? purchase.most;
  const settled = costs(receipt, name, hourly, now);
  const purchases = settled.purchases.map((one) => {
    if (one.name !== name) return one;
    const { warm: _, sleeps: __, ...awake } = one;
    return { ...awake, sources: keptSources(sources), wokenAt: at };
  });
  const decision = {
    at,
    action: 'Wake',
    cluster: name,
    candidate,
    why,
    hourly,
    alternatives: told(alternatives),
  } as const;
  return decided({ ...settled, purchases, lastOut: at }, decision);
}

/** A cluster without work is put to sleep. What it costs from now on is seen from its machines. */
export function putToSleep(receipt: BurstReceipt, { name, why }: Removal, now: number): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (!purchase || purchase.leaving || purchase.warm) return receipt;
  const at = rfc3339(new Date(now));
  const purchases = receipt.purchases.map((one): KeptPurchase => {
    if (one !== purchase) return one;
    const {
      joinedAt: _,
      worked: __,
      workedAt: ___,
      useless: ____,
      emptyingSince: _____,
      leftAlone: ______,
      ...rest
    } = one;
    return { ...rest, sources: [], warm: true, sleeps: true, warmAt: at, awake: one.rate };
  });
  const { candidate } = purchase;
  const said = decided({ ...receipt, purchases, lastIn: at }, { at, action: 'Sleep', cluster: name, candidate, why });
  return unusedRested(said, purchase, why, now);
}

/** A cluster of a candidate is back in its hub, so long after it was woken. */
export function wokeUp(receipt: BurstReceipt, name: string, now: number): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.name === name);
  if (purchase?.wokenAt === undefined) return receipt;
  const tookMs = now - Date.parse(purchase.wokenAt);
  const wakings = withTime(receipt.wakings, purchase.candidate, tookMs);
  return changed({ ...receipt, wakings }, name, { joinedAt: rfc3339(new Date(now)) });
}
