import { rfc3339 } from '../../api/conditions.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import { nameOf } from './growth-receipt.ts';
import type { BurstReceipt } from './kept.ts';
import { billingFrom, type KeptWake, keptBilling } from './kept-wake.ts';
import type { Waking, WokenCluster } from './model.ts';
import type { Opening, Removal } from './plan-model.ts';
import { decided, keptSources, middleMs, rested, told, useful, withTime } from './receipt.ts';
import { spentWith, withBegun } from './spend.ts';

/** What is seen of a cluster now that was woken. */
export interface WakeNow {
  readonly hasJoined: boolean;
  /** undefined: nobody can tell. */
  readonly isIdle: boolean | undefined;
  /** Work that waits which it was woken for, since before it was back. */
  readonly waits: string | undefined;
  /** When its hub has placed work there that it was woken for, or never will, milliseconds since the epoch; undefined: it has not joined. */
  readonly placedBy: number | undefined;
  /** Why the policy has nothing to say about it any more; undefined: it has. */
  readonly ownerSays: string | undefined;
}

const timesOf = (entry: string): string => `wake/${entry}`;

/** How long clusters of an entry took to be back in their hub: half of the last ones, milliseconds; undefined: none has. */
export const measuredWakeMs = ({ wakings }: BurstReceipt, entry: string): number | undefined =>
  middleMs(wakings?.[timesOf(entry)]);

/** What clusters that were woken cost in an hour, as budgets count it. */
export const wokenHourly = ({ wakes = [] }: BurstReceipt): Micros =>
  wakes.reduce((sum, { most }) => sum + parseMoney(most), 0n);

/** A cluster of somebody is to be woken. @param cluster `namespace/name` */
export function wakes(
  receipt: BurstReceipt,
  { entry = '', sources, why, alternatives = [] }: Opening,
  waking: Waking,
  { cluster, uid }: Pick<KeptWake, 'cluster' | 'uid'>,
  now: number,
): BurstReceipt {
  const at = rfc3339(new Date(now));
  const rate = formatMoney(waking.hourly);
  const kept: KeptWake = {
    cluster,
    uid,
    entry,
    at,
    sources: keptSources(sources),
    most: formatMoney(waking.most),
    rate,
    rateSince: at,
    ...(waking.billing && { billing: keptBilling(waking.billing) }),
  };
  return decided(
    { ...receipt, wakes: [...(receipt.wakes ?? []), kept], lastOut: at },
    {
      at,
      action: 'Wake',
      cluster: nameOf(cluster),
      candidate: entry,
      why,
      hourly: rate,
      alternatives: told(alternatives),
    },
  );
}

/** A cluster that was woken may sleep again, as its spec says. One that did not wake, or got no work, rests. */
export function letSleep(receipt: BurstReceipt, { name, why, isFailure, toSleep }: Removal, now: number): BurstReceipt {
  const wake = receipt.wakes?.find((one) => nameOf(one.cluster) === name && !one.ended);
  if (!wake) return receipt;
  const at = rfc3339(new Date(now));
  const ended = { ...replaced(receipt, wake, { ended: true }), lastIn: at };
  const action = isFailure ? 'Fail' : 'Sleep';
  const said = decided(ended, { at, action, cluster: name, candidate: wake.entry, why, hourly: wake.rate });
  if (isFailure) return rested(said, wake.cluster, { why: `${name}: ${why}`, at: wake.at }, now);
  // One that its owner takes back says nothing of its use.
  if (wake.worked || !toSleep) return said;
  const tookMs = Math.max(0, Date.parse(wake.joinedAt ?? at) - Date.parse(wake.at));
  return rested(said, wake.cluster, { why: `${name}, which had no work: ${why}`, at: wake.at, unusedMs: tookMs }, now);
}

/** The order was taken back: what it has cost until now is spent. */
export function slept(receipt: BurstReceipt, wake: KeptWake, now: number): BurstReceipt {
  const spent = spentWith(receipt.spent, wake, now);
  const life = Math.max(0, now - Date.parse(wake.at));
  const billing = wake.billing && billingFrom(wake.billing);
  return {
    ...receipt,
    wakes: (receipt.wakes ?? []).filter((one) => one !== wake),
    spent: withBegun(spent, parseMoney(wake.rate), billing, life, now),
  };
}

/**
 * The receipt with what is seen of clusters that were woken: that they are back, have work, or got none; that they are gone, or that their owners
 * have said something else.
 * @param look 'gone': there is no such cluster any more
 */
export function withWakeFacts(
  receipt: BurstReceipt,
  look: (wake: KeptWake) => WakeNow | 'gone',
  now: number,
): BurstReceipt {
  let next = receipt;
  for (const { cluster, uid } of receipt.wakes ?? []) {
    const known = () => next.wakes?.find((one) => one.cluster === cluster && one.uid === uid);
    const wake = known()!;
    const seen = look(wake);
    const name = nameOf(cluster);
    if (seen === 'gone') {
      next = slept(next, wake, now);
      continue;
    }
    if (wake.ended) continue;
    if (seen.ownerSays !== undefined) {
      next = letSleep(next, { name, why: seen.ownerSays, isFailure: false }, now);
      continue;
    }
    if (seen.hasJoined && !wake.joinedAt) {
      next = replaced(next, wake, { joinedAt: rfc3339(new Date(now)) });
      next = { ...next, wakings: withTime(next.wakings, timesOf(wake.entry), now - Date.parse(wake.at)) };
    }
    const hasWork = { worked: true, workedAt: rfc3339(new Date(now)) } as const;
    if (seen.isIdle === false && !wake.worked) next = useful(replaced(next, known()!, hasWork), cluster);
    const { worked } = known()!;
    const isOverdue = seen.placedBy !== undefined && seen.placedBy <= now;
    if (isOverdue && seen.isIdle && !worked && seen.waits !== undefined)
      next = letSleep(next, { name, why: `it got none of the work of ${seen.waits}`, isFailure: true }, now);
  }
  return next;
}

/** As the planner takes it. @param idleSince milliseconds since the epoch */
export const wokenCluster = (
  { cluster, entry, at, most, billing, joinedAt }: KeptWake,
  idleSince: number | undefined,
  hasWork: boolean,
  failure: string | undefined,
): WokenCluster => ({
  key: cluster,
  name: nameOf(cluster),
  candidate: entry,
  at: Date.parse(at),
  phase: joinedAt === undefined ? 'Waking' : 'Joined',
  idleSince,
  hourly: parseMoney(most),
  billing: billing && billingFrom(billing),
  failure,
  hasWork,
});

const replaced = (receipt: BurstReceipt, wake: KeptWake, more: Partial<KeptWake>): BurstReceipt => ({
  ...receipt,
  wakes: (receipt.wakes ?? []).map((one) => (one === wake ? { ...one, ...more } : one)),
});
