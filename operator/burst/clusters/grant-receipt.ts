import { rfc3339 } from '../../api/conditions.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import { isComing, nameOf } from './growth-receipt.ts';
import { type BurstReceipt, type KeptGrant, type KeptPurchase, mostNodesOf } from './kept.ts';
import type { GrantRaise } from './plan-model.ts';
import { changed, decided, rested, useful } from './receipt.ts';

/** Nodes that are granted are asked for within this time, or are taken back. */
const USED_MS = 60_000;

/** Pools that did not use what was granted to them rest by this name. */
export const grantRestOf = (cluster: string, pool: string): string => `${cluster}/${pool}/granted`;

/** A pool of a purchase, as it is seen now. */
export interface GrantedPool {
  /** Most nodes that its cluster lets it have. */
  readonly maximum: number;
  /** Nodes that it should have, or has; the larger. */
  readonly held: number;
}

/** Whether the cluster is to let the pool have all that is granted: nodes are on their way, or about to be asked for. */
export function isInUse(
  { growths = [] }: BurstReceipt,
  { uid }: Pick<KeptPurchase, 'uid'>,
  pool: string,
  { raisedAt }: KeptGrant,
  now: number,
): boolean {
  if (raisedAt !== undefined && Date.parse(raisedAt) + USED_MS > now) return true;
  return growths.some((one) => one.uid === uid && one.pool === pool && isComing(one, now));
}

/** When what is granted and not asked for is taken back, milliseconds since the epoch. */
export const grantsEnd = ({ purchases }: BurstReceipt): number[] =>
  purchases.flatMap(({ granted = {} }) =>
    Object.values(granted).flatMap(({ raisedAt }) => (raisedAt === undefined ? [] : [Date.parse(raisedAt) + USED_MS])),
  );

/** A pool may have so many more nodes, which budgets count from now on. @param uid of its cluster */
export function grantedMore(
  receipt: BurstReceipt,
  uid: string,
  pool: string,
  more: number,
  each: Micros,
  now: number,
): BurstReceipt {
  const purchase = receipt.purchases.find((one) => one.uid === uid);
  if (!purchase?.granted || more <= 0) return receipt;
  const nodes = (purchase.granted[pool]?.nodes ?? 0) + more;
  return withGrant(receipt, purchase, pool, { nodes, each: formatMoney(each), raisedAt: rfc3339(new Date(now)) });
}

/** Pods that wait in a cluster of the policy are to have nodes: its autoscaler may ask for so many more. */
export function raised(receipt: BurstReceipt, raise: GrantRaise, uid: string, now: number): BurstReceipt {
  const { cluster, pool, nodes, each, why } = raise;
  return decided(grantedMore(receipt, uid, pool, nodes, each, now), {
    at: rfc3339(new Date(now)),
    action: 'Grow',
    cluster: nameOf(cluster),
    pool,
    why,
    hourly: formatMoney(each * BigInt(nodes)),
  });
}

/**
 * The receipt with what is seen of pools that nodes were granted to: what their clusters let them have no more is free for others. A pool that has
 * asked for none of it rests.
 * @param look undefined: nobody can tell now
 */
export function withGrantFacts(
  receipt: BurstReceipt,
  look: (purchase: KeptPurchase, pool: string) => GrantedPool | undefined,
  now: number,
): BurstReceipt {
  let next = receipt;
  for (const { name, granted = {}, leaving } of receipt.purchases)
    for (const [pool, grant] of Object.entries(granted)) {
      const purchase = next.purchases.find((one) => one.name === name)!;
      const seen = leaving ? undefined : look(purchase, pool);
      if (!seen) continue;
      const rest = grantRestOf(`${receipt.policy.namespace}/${name}`, pool);
      const { raisedAt, ...settled } = grant;
      if (raisedAt !== undefined && seen.held >= grant.nodes)
        next = useful(withGrant(next, purchase, pool, settled), rest);
      else if (!isInUse(next, purchase, pool, grant, now) && seen.held <= seen.maximum && seen.maximum < grant.nodes) {
        next = withGrant(next, purchase, pool, { ...settled, nodes: seen.maximum });
        if (raisedAt !== undefined)
          next = rested(next, rest, { why: `pool ${pool} has asked for no node that was granted`, at: raisedAt }, now);
      }
    }
  return next;
}

/** With another grant of a pool, and what budgets count then. */
function withGrant(receipt: BurstReceipt, purchase: KeptPurchase, pool: string, grant: KeptGrant): BurstReceipt {
  const before = purchase.granted?.[pool] ?? { nodes: 0, each: '0' };
  const most = parseMoney(purchase.most) - hourlyOf(before) + hourlyOf(grant);
  return changed(receipt, purchase.name, {
    granted: { ...purchase.granted, [pool]: grant },
    most: formatMoney(most > 0n ? most : 0n),
    mostNodes: mostNodesOf(purchase) - before.nodes + grant.nodes,
  });
}

const hourlyOf = ({ nodes, each }: KeptGrant): Micros => parseMoney(each) * BigInt(nodes);
