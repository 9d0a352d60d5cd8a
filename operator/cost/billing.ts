import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import { parseDuration } from '../api/duration.ts';
import type { Micros } from './money.ts';
import { priceOf } from './price.ts';

/** Billing rule of a resource, in milliseconds. */
export interface Billing {
  /** A started step is billed as a whole. */
  readonly stepMs: number;
  /** Minimum billed time. */
  readonly minimumMs: number;
}

/** How a cluster is billed. */
export interface ClusterBilling {
  readonly machines: Billing;
  /** undefined: no cloud bills it. Its cost is its share of a seed, billed continuously. */
  readonly controlPlane: Billing | undefined;
  /** The control plane's part of the hourly cost. */
  readonly fee: Micros;
}

/** Default: billed continuously. */
const EXACT: Billing = { stepMs: 1, minimumMs: 0 };

const HOUR_MS = 3_600_000n;

/** A cloud's billing rule, as far as its profile states one. */
export function billingOf({ spec }: CloudProfile, part: 'machines' | 'controlPlane'): Billing {
  const { step = '', minimum = '' } = spec.billing?.[part] ?? {};
  return { stepMs: Math.max(1, parseDuration(step) ?? 1), minimumMs: parseDuration(minimum) ?? 0 };
}

/** Billing of a cluster of this size; undefined where its profile states none. */
export function clusterBilling({ mode }: ClusterSize, profile: CloudProfile): ClusterBilling | undefined {
  if (!profile.spec.billing) return undefined;
  const fee = priceOf({ ...(mode && { mode }), pools: [] }, profile).hourly ?? 0n;
  const controlPlane = mode === 'Managed' ? billingOf(profile, 'controlPlane') : undefined;
  return { machines: billingOf(profile, 'machines'), controlPlane, fee };
}

/** Billed time of a resource of this lifetime, milliseconds. */
export const billedMs = (lifeMs: number, { stepMs, minimumMs }: Billing): number =>
  Math.max(minimumMs, Math.ceil(lifeMs / stepMs) * stepMs);

/**
 * Cost of a cluster of this lifetime, rounded up.
 * @param hourly hourly cost, fee included
 * @param billing undefined: billed continuously
 * @param paidMs part of its life that is paid elsewhere, milliseconds
 */
export function costOver(hourly: Micros, lifeMs: number, billing: ClusterBilling | undefined, paidMs = 0): Micros {
  const fee = billing === undefined ? 0n : billing.fee < hourly ? billing.fee : hourly;
  const part = (amount: Micros, how: Billing) =>
    amount * BigInt(Math.ceil(Math.max(0, billedMs(lifeMs, how) - paidMs)));
  const sum = part(hourly - fee, billing?.machines ?? EXACT) + part(fee, billing?.controlPlane ?? EXACT);
  return (sum + HOUR_MS - 1n) / HOUR_MS;
}

/** Remaining time of a cluster of this age that is already paid, milliseconds. */
export function paidAheadMs(lifeMs: number, hourly: Micros, { machines, controlPlane, fee }: ClusterBilling): number {
  const parts = [...(hourly > fee ? [machines] : []), ...(fee > 0n && controlPlane ? [controlPlane] : [])];
  return parts.length === 0 ? 0 : Math.min(...parts.map((how) => billedMs(lifeMs, how) - lifeMs));
}
