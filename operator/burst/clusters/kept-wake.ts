import type { Billing, ClusterBilling } from '../../cost/billing.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';

/** How a cluster is billed. */
export interface KeptBilling {
  readonly machines: Billing;
  readonly controlPlane?: Billing;
  readonly fee: string;
}

/** Billing as it is kept. */
export const keptBilling = ({ machines, controlPlane, fee }: ClusterBilling): KeptBilling => ({
  machines,
  ...(controlPlane && { controlPlane }),
  fee: formatMoney(fee),
});

/** Billing as it was kept. */
export const billingFrom = ({ machines, controlPlane, fee }: KeptBilling): ClusterBilling => ({
  machines,
  controlPlane,
  fee: parseMoney(fee),
});

/** A cluster of somebody that the policy has woken, as it is written down before that is ordered. Money as decimals, times as RFC 3339. */
export interface KeptWake {
  /** `namespace/name` of the WorkerCluster, and its UID. */
  readonly cluster: string;
  readonly uid: string;
  /** Of the entry of the policy. */
  readonly entry: string;
  readonly at: string;
  readonly sources: readonly string[];
  /** What budgets count an hour of it with: what it costs awake, and not asleep. */
  readonly most: string;
  /** What it costs so in an hour since `rateSince`. */
  readonly rate: string;
  readonly rateSince: string;
  /** How its time is billed; absent: every moment counts. */
  readonly billing?: KeptBilling;
  /** When it was first seen back in its hub. */
  readonly joinedAt?: string;
  /** It was seen to have work since then. */
  readonly worked?: true;
  /** When that was first seen. */
  readonly workedAt?: string;
  /** The order is to be taken back. */
  readonly ended?: true;
}
