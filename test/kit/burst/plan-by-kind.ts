import type { ClustersView } from '../../../operator/burst/clusters/model.ts';
import { planClusters } from '../../../operator/burst/clusters/plan.ts';
import { type ClustersPlan, type Order, ordersOf } from '../../../operator/burst/clusters/plan-model.ts';

type Of<Kind extends Order['kind']> = Omit<Extract<Order, { readonly kind: Kind }>, 'kind'>;

/** A plan with its orders by kind. */
interface PlanByKind extends Omit<ClustersPlan, 'orders'> {
  readonly purchases: readonly (Omit<Of<'cluster'>, 'waits'> & { readonly warm?: true; readonly sleeps?: true })[];
  readonly growths: readonly Of<'nodes'>[];
  readonly openings: readonly (Of<'open'> & Partial<Of<'wake'>>)[];
  readonly emptyings: readonly Of<'empty'>[];
  readonly cuts: readonly Of<'cut'>[];
}

function withoutKind<One extends Order>(order: One): Omit<One, 'kind'> {
  const { kind: _, ...rest } = order;
  return rest;
}

function purchaseOf(order: Extract<Order, { readonly kind: 'cluster' }>): PlanByKind['purchases'][number] {
  const { waits, ...rest } = withoutKind(order);
  return { ...rest, ...(waits && { warm: true }), ...(waits === 'asleep' && { sleeps: true }) };
}

/** What planClusters decides, by kind. */
export function planByKind(view: ClustersView, now: number): PlanByKind {
  const { orders, ...plan } = planClusters(view, now);
  return {
    ...plan,
    purchases: ordersOf(orders, 'cluster').map(purchaseOf),
    growths: ordersOf(orders, 'nodes').map(withoutKind),
    openings: orders.filter((one) => one.kind === 'open' || one.kind === 'wake').map(withoutKind),
    emptyings: ordersOf(orders, 'empty').map(withoutKind),
    cuts: ordersOf(orders, 'cut').map(withoutKind),
  };
}
