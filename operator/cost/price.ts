import type { CloudProfile, MachineType } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import { type Micros, parseMoney } from './money.ts';

/** What something costs in an hour. */
export interface HourlyPrice {
  /** The sum of what has a price; undefined when there is something and none of it has one. */
  readonly hourly: Micros | undefined;
  /** ISO 4217; undefined when the profile has no price at all. */
  readonly currency: string | undefined;
  /** One line for each part that is not in `hourly`. */
  readonly unpriced: readonly string[];
  /** How many machines (and fees) these lines are about. */
  readonly unpricedCount: number;
}

/** Price of one machine in an hour; undefined where the profile does not say: none is guessed from another region. */
export function machinePrice(type: MachineType, region: string | undefined, spot: boolean): Micros | undefined {
  const { price } = type;
  if (!price) return undefined;
  const elsewhere = price.regions?.find((known) => known.name === region);
  const here = elsewhere ?? (price.region === undefined || price.region === region ? price : undefined);
  const amount = spot ? here?.spot : here?.hourly;
  return amount === undefined ? undefined : parseMoney(amount);
}

/** The currency of a profile's prices: a sum has only one, and what is in another one counts as unpriced. */
const currencyOf = (profile: CloudProfile): string | undefined =>
  profile.spec.machineTypes.find((type) => type.price)?.price?.currency ??
  profile.spec.controlPlaneFee?.currency ??
  profile.spec.hostedControlPlaneFee?.currency;

/**
 * What a cluster of this size costs in an hour: its machines, and the fee for a control plane that the cloud manages, or the share that one
 * has in its seed.
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
