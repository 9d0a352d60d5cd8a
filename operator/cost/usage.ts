import type { CloudProfile, MachineType } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import { formatBytes, formatCpu, scaledQuantity } from '../api/quantity.ts';
import { HOURS_PER_MONTH, METRICS, type Metric } from '../api/quota.ts';
import { formatMoney } from './money.ts';
import { priceOf } from './price.ts';

/** Integers of the smallest unit: millicores of cpu, bytes of memory, micros of money, otherwise pieces. */
export type UsageAmounts = Readonly<Record<Metric, bigint>>;

/** A cluster's usage of what quotas limit. */
export interface Usage {
  readonly amounts: UsageAmounts;
  /** A line for each part of unknown price or size, which the amounts exclude. */
  readonly unknown: readonly string[];
  /** Number of machines (and fees) without a price in the currency. */
  readonly unpriced: number;
}

const UNITS: Record<Metric, bigint> = {
  clusters: 1n,
  nodes: 1n,
  cpu: 1000n,
  memory: 1n,
  gpu: 1n,
  'cost.hourly': 1_000_000n,
  'cost.monthly': 1_000_000n,
};

export const NOTHING: Usage = {
  amounts: { clusters: 0n, nodes: 0n, cpu: 0n, memory: 0n, gpu: 0n, 'cost.hourly': 0n, 'cost.monthly': 0n },
  unknown: [],
  unpriced: 0,
};

/** Amount of a quantity, rounded up. Throws RangeError for an invalid quantity. */
export const parseAmount = (metric: Metric, quantity: string | number): bigint =>
  scaledQuantity(quantity, UNITS[metric]);

/** The amount as a canonical quantity. */
export function formatAmount(metric: Metric, amount: bigint): string {
  if (metric === 'cpu') return formatCpu(Number(amount));
  if (metric === 'memory') return formatBytes(Number(amount));
  return UNITS[metric] === 1n ? amount.toString() : formatMoney(amount);
}

export const plus = (a: UsageAmounts, b: UsageAmounts): UsageAmounts => combine(a, b, (x, y) => x + y);

/** Increase from `from` to `to` per metric; decreases count as zero. */
export const usageGrowth = (from: UsageAmounts, to: UsageAmounts): UsageAmounts =>
  combine(from, to, (x, y) => (y > x ? y - x : 0n));

function combine(a: UsageAmounts, b: UsageAmounts, how: (x: bigint, y: bigint) => bigint): UsageAmounts {
  const sum = { ...a };
  for (const metric of METRICS) sum[metric] = how(a[metric], b[metric]);
  return sum;
}

/**
 * undefined for a type that was removed from the profile or cannot be parsed: other clusters must not be blocked by it.
 */
function machineAmounts(type: MachineType | undefined): Pick<UsageAmounts, 'cpu' | 'memory' | 'gpu'> | undefined {
  if (!type) return undefined;
  try {
    const { cpu, memory, gpu } = type;
    return { cpu: parseAmount('cpu', cpu), memory: parseAmount('memory', memory), gpu: parseAmount('gpu', gpu) };
  } catch {
    return undefined;
  }
}

// A decision reads every cluster of its namespace, and nearly all are unchanged since the last one.
const remembered = new WeakMap<ClusterSize, { profile: CloudProfile | undefined; byCurrency: Map<string, Usage> }>();

/** Usage of a cluster of this size; no size: zero. Sizes and profiles are never mutated. */
export function usageOf(size: ClusterSize | undefined, profile: CloudProfile | undefined, currency: string): Usage {
  if (!size) return NOTHING;
  let known = remembered.get(size);
  if (known?.profile !== profile || !known) {
    known = { profile, byCurrency: new Map() };
    remembered.set(size, known);
  }
  const usage = known.byCurrency.get(currency) ?? computeUsage(size, profile, currency);
  known.byCurrency.set(currency, usage);
  return usage;
}

function computeUsage(size: ClusterSize, profile: CloudProfile | undefined, currency: string): Usage {
  const amounts = { ...NOTHING.amounts, clusters: 1n };
  const unknown: string[] = [];
  for (const pool of size.pools) {
    const count = BigInt(pool.count);
    amounts.nodes += count;
    const machine = machineAmounts(profile?.spec.machineTypes.find((known) => known.name === pool.machineType));
    if (!machine) unknown.push(`pool ${pool.name}: its CloudProfile does not say how large ${pool.machineType} is`);
    amounts.cpu += count * (machine?.cpu ?? 0n);
    amounts.memory += count * (machine?.memory ?? 0n);
    amounts.gpu += count * (machine?.gpu ?? 0n);
  }
  if (!profile) return { amounts, unknown, unpriced: Number(amounts.nodes) };
  const price = priceOf(size, profile);
  const foreign = price.currency !== currency && (price.hourly ?? 0n) > 0n;
  if (foreign) unknown.push(`its prices are in ${price.currency}, not in ${currency}`);
  amounts['cost.hourly'] = foreign ? 0n : (price.hourly ?? 0n);
  amounts['cost.monthly'] = amounts['cost.hourly'] * BigInt(HOURS_PER_MONTH);
  return {
    amounts,
    unknown: [...unknown, ...price.unpriced],
    unpriced: foreign ? Number(amounts.nodes) + 1 : price.unpricedCount,
  };
}
