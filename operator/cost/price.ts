import type { CloudProfile, MachineType } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import { type Micros, parseMoney } from './money.ts';

/** An hourly price with its gaps. */
export interface HourlyPrice {
  /** Sum of the known prices; undefined when no part has a price. */
  readonly hourly: Micros | undefined;
  /** ISO 4217; undefined when the profile has no prices. */
  readonly currency: string | undefined;
  /** A line for each part missing from `hourly`. */
  readonly unpriced: readonly string[];
  /** Number of machines (and fees) that these lines cover. */
  readonly unpricedCount: number;
}

/** Hourly price of a machine; undefined where the profile states none: prices of other regions are not used. */
export function machinePrice(type: MachineType, region: string | undefined, spot: boolean): Micros | undefined {
  const { price } = type;
  if (!price) return undefined;
  const elsewhere = price.regions?.find((known) => known.name === region);
  const here = elsewhere ?? (price.region === undefined || price.region === region ? price : undefined);
  const amount = spot ? here?.spot : here?.hourly;
  return amount === undefined ? undefined : parseMoney(amount);
}

/** The currency of a profile's prices: a sum has one currency, and prices in another count as missing. */
const currencyOf = (profile: CloudProfile): string | undefined =>
  profile.spec.machineTypes.find((type) => type.price)?.price?.currency ??
  profile.spec.controlPlaneFee?.currency ??
  profile.spec.hostedControlPlaneFee?.currency;

/**
 * Hourly price of a cluster of this size: its machines, and the fee of a managed control plane or the share of a hosted
 * one in its seed.
 */
export function priceOf(size: ClusterSize, profile: CloudProfile): HourlyPrice {
  const currency = currencyOf(profile);
  const of = `CloudProfile ${profile.metadata.name}`;
  const unpriced: string[] = [];
  let hourly = 0n;
  let priced = 0;
  let unpricedCount = 0;
  const add = (each: Micros | undefined, count: number, itsCurrency: string | undefined, missing: string): void => {
    if (each !== undefined && itsCurrency === currency) {
      hourly += each * BigInt(count);
      priced++;
    } else {
      unpriced.push(each === undefined ? missing : `${missing} in ${currency}, only in ${itsCurrency}`);
      unpricedCount += count;
    }
  };
  for (const pool of size.pools) {
    if (pool.count === 0) continue;
    const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
    const each = type && machinePrice(type, size.region, pool.spot ?? false);
    const kind = pool.spot ? 'spot price' : 'price';
    const missing = `pool ${pool.name}: ${of} has no ${kind} of machine type ${pool.machineType} in region ${size.region}`;
    add(each, pool.count, type?.price?.currency, missing);
  }
  if (size.mode === 'Managed') {
    const fee = profile.spec.controlPlaneFee;
    add(fee && parseMoney(fee.hourly), 1, fee?.currency, `control plane: ${of} has no controlPlaneFee`);
  }
  const share = profile.spec.hostedControlPlaneFee;
  if (size.mode === 'Hosted' && share)
    add(parseMoney(share.hourly), 1, share.currency, `control plane: ${of} has no hostedControlPlaneFee`);
  return { hourly: priced === 0 && unpriced.length > 0 ? undefined : hourly, currency, unpriced, unpricedCount };
}
