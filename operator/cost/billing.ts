import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import { parseDuration } from '../api/duration.ts';
import type { Micros } from './money.ts';
import { priceOf } from './price.ts';

/** How time of one thing is billed, in milliseconds. */
export interface Billing {
  /** What has begun of it is paid for as a whole. */
  readonly stepMs: number;
  /** It is paid for so long at least. */
  readonly minimumMs: number;
}

/** How a cluster is billed. */
export interface ClusterBilling {
  readonly machines: Billing;
  /** undefined: no cloud bills it. What it costs is its share of a seed, for each moment. */
  readonly controlPlane: Billing | undefined;
  /** How much of what it costs in an hour is for its control plane. */
  readonly fee: Micros;
}

/** Where nothing is known: every moment counts. */
export const EXACT: Billing = { stepMs: 1, minimumMs: 0 };

const HOUR_MS = 3_600_000n;

/** How a cloud bills time, as far as its profile says. */
export function billingOf({ spec }: CloudProfile, part: 'machines' | 'controlPlane'): Billing {
  const { step = '', minimum = '' } = spec.billing?.[part] ?? {};
  return { stepMs: Math.max(1, parseDuration(step) ?? 1), minimumMs: parseDuration(minimum) ?? 0 };
}

/** How a cluster of this size is billed; undefined where its profile says nothing of that. */
export function clusterBilling({ mode }: ClusterSize, profile: CloudProfile): ClusterBilling | undefined {
  if (!profile.spec.billing) return undefined;
  const fee = priceOf({ ...(mode && { mode }), pools: [] }, profile).hourly ?? 0n;
  const controlPlane = mode === 'Managed' ? billingOf(profile, 'controlPlane') : undefined;
  return { machines: billingOf(profile, 'machines'), controlPlane, fee };
}

/** For how long something is paid for that lives so long, milliseconds. */
export const billedMs = (lifeMs: number, { stepMs, minimumMs }: Billing): number =>
  Math.max(minimumMs, Math.ceil(lifeMs / stepMs) * stepMs);

/**
 * What a cluster costs that lives so long, rounded up.
 * @param hourly what it costs in an hour, its fee included
 * @param billing undefined: every moment counts
 * @param paidMs so much of its life is paid for elsewhere, milliseconds
 */
export function costOver(hourly: Micros, lifeMs: number, billing: ClusterBilling | undefined, paidMs = 0): Micros {
  const fee = billing === undefined ? 0n : billing.fee < hourly ? billing.fee : hourly;
  const part = (amount: Micros, how: Billing) =>
    amount * BigInt(Math.ceil(Math.max(0, billedMs(lifeMs, how) - paidMs)));
  const sum = part(hourly - fee, billing?.machines ?? EXACT) + part(fee, billing?.controlPlane ?? EXACT);
  return (sum + HOUR_MS - 1n) / HOUR_MS;
}

/** How much longer a cluster that has lived so long may live without costing more, milliseconds. */
export function paidAheadMs(lifeMs: number, hourly: Micros, { machines, controlPlane, fee }: ClusterBilling): number {
  const parts = [...(hourly > fee ? [machines] : []), ...(fee > 0n && controlPlane ? [controlPlane] : [])];
  return parts.length === 0 ? 0 : Math.min(...parts.map((how) => billedMs(lifeMs, how) - lifeMs));
}
