import type { ClusterSize } from '../api/cost.ts';
import { profileNameOf } from '../api/workercluster.ts';
import type { Micros } from '../cost/money.ts';
import { priceOf } from '../cost/price.ts';
import { askedSize } from '../cost/size.ts';
import { type ClusterState, metered, type Refused, type World } from './state.ts';
import { mergeHistograms, type WaitHistogram, waitQuantile } from './waits.ts';

const HOUR_MS = 3_600_000;

/** How demand for nodes fared. Waits in milliseconds; p50 to three digits. */
export interface DemandReport {
  /** Nodes that were asked for and became Ready. */
  served: number;
  /** Given up before they were there. */
  cancelled: number;
  /** Waiting at the end. */
  waiting: number;
  waitP50?: number;
  waitMax?: number;
}

/** Money of one currency, in millionths. */
export interface Cost {
  currency: string;
  amount: Micros;
}

export interface ClusterReport {
  namespace: string;
  name: string;
  profile: string;
  /** Milliseconds of machines, from the request until they were taken away, as clouds bill them. */
  machineMs: number;
  peak: number;
  demand: DemandReport;
  refused: Refused[];
  /** Absent: nothing of it has a price. */
  cost?: Cost;
  /** What is not in `cost`, and how many milliseconds of it. */
  unpriced: { what: string; ms: number }[];
}

/** What came of a rehearsal. */
export interface Report {
  /** On the virtual clock, milliseconds. */
  start: number;
  end: number;
  clusters: ClusterReport[];
  total: { machineMs: number; peak: number; demand: DemandReport; costs: Cost[] };
}

export function reportOf(world: World, start: number): Report {
  const states = [...world.clusters.values()];
  const clusters = states.map((state) => clusterReport(world, state));
  const demands = clusters.map(({ demand }) => demand);
  const sum = (of: (demand: DemandReport) => number) => demands.reduce((total, demand) => total + of(demand), 0);
  const waits = mergeHistograms(states.map((state) => state.waits));
  return {
    start,
    end: world.now,
    clusters,
    total: {
      machineMs: metered(world.machines, world.now),
      peak: world.peak,
      demand: {
        ...waited(waits),
        cancelled: sum((demand) => demand.cancelled),
        waiting: sum((demand) => demand.waiting),
      },
      costs: together(clusters.flatMap(({ cost }) => (cost ? [cost] : []))),
    },
  };
}

function clusterReport(world: World, state: ClusterState): ClusterReport {
  const pools = [...state.pools.values()];
  const { namespace = '', name } = state.manifest.metadata;
  return {
    namespace,
    name,
    profile: profileNameOf(state.manifest),
    machineMs: pools.reduce((sum, pool) => sum + metered(pool.meter, world.now), 0),
    peak: state.peak,
    demand: {
      ...waited(state.waits),
      cancelled: pools.reduce((sum, pool) => sum + pool.line.cancelled, 0),
      waiting: pools.reduce((sum, pool) => sum + pool.line.waiting, 0),
    },
    refused: [...state.refused.values()],
    ...costOf(world, state),
  };
}

function waited(histogram: WaitHistogram): Pick<DemandReport, 'served' | 'waitP50' | 'waitMax'> {
  const { served, max } = histogram;
  const p50 = waitQuantile(histogram, 0.5);
  // Rounded up to three digits, the median may come out above the longest wait.
  return { served, ...(p50 !== undefined && { waitP50: Math.min(p50, max), waitMax: max }) };
}

/** By the prices that status.cost is made of: machines, and the fee where the cloud would run the control plane. */
function costOf(world: World, state: ClusterState): Pick<ClusterReport, 'cost' | 'unpriced'> {
  const { profile, manifest, pools, controlPlane } = state;
  if (!profile) return { unpriced: [] };
  const { region, mode } = askedSize(manifest, profile, []);
  const inRegion = region === undefined ? {} : { region };
  const parts: { size: ClusterSize; ms: number }[] = [...pools.values()].map(({ name, machineType, spot, meter }) => ({
    size: { ...inRegion, mode: 'Hosted', pools: [{ name, machineType, spot, count: 1 }] },
    ms: metered(meter, world.now),
  }));
  if (mode === 'Managed') parts.push({ size: { ...inRegion, mode, pools: [] }, ms: metered(controlPlane, world.now) });
  let microsTimesMs = 0n;
  let currency: string | undefined;
  const unpriced: ClusterReport['unpriced'] = [];
  for (const { size, ms } of parts) {
    if (ms === 0) continue;
    const price = priceOf(size, profile);
    for (const what of price.unpriced) unpriced.push({ what, ms });
    if (price.hourly === undefined || price.currency === undefined) continue;
    currency = price.currency;
    microsTimesMs += price.hourly * BigInt(ms);
  }
  // Divided once, at the end: parts rounded by themselves would not add up.
  const amount = (microsTimesMs + BigInt(HOUR_MS / 2)) / BigInt(HOUR_MS);
  return { ...(currency !== undefined && { cost: { currency, amount } }), unpriced };
}

function together(costs: readonly Cost[]): Cost[] {
  const sums = new Map<string, Micros>();
  for (const { currency, amount } of costs) sums.set(currency, (sums.get(currency) ?? 0n) + amount);
  return [...sums].map(([currency, amount]) => ({ currency, amount }));
}
