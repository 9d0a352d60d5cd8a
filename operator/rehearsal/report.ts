import { profileNameOf } from '../api/workercluster.ts';
import { atPlace } from '../capacity/places.ts';
import type { Micros } from '../cost/money.ts';
import { priceOf } from '../cost/price.ts';
import { askedSize } from '../cost/size.ts';
import { type WorkReport, workReport } from './burst-report.ts';
import type { Cost } from './money.ts';
import type { Standing } from './standings.ts';
import { type Made, metered, type Refused, type RehearsedCluster, type Simulation } from './state.ts';
import { mergeHistograms, type WaitHistogram, waitQuantile } from './waits.ts';

const HOUR_MS = 3_600_000;

/** Results for requested nodes. Waits in milliseconds; p50 to three digits. */
export interface DemandReport {
  /** Requested nodes that became Ready. */
  served: number;
  /** Cancelled before they were Ready. */
  cancelled: number;
  /** Waiting at the end. */
  waiting: number;
  waitP50?: number;
  waitMax?: number;
}

export interface ClusterReport {
  namespace: string;
  name: string;
  profile: string;
  /** Machine milliseconds, from request to removal, as clouds bill them. */
  machineMs: number;
  peak: number;
  demand: DemandReport;
  refused: Refused[];
  /** Absent: no part has a price. */
  cost?: Cost;
  /** Parts missing from `cost`, with their milliseconds. */
  unpriced: { what: string; ms: number }[];
}

/** All clusters that a policy bought of one candidate. */
export interface BoughtReport extends Omit<ClusterReport, 'namespace' | 'name'> {
  candidate: string;
  /** Number of clusters. */
  made: number;
}

/** Result of a rehearsal. */
export interface Report {
  /** Milliseconds of the virtual clock. */
  start: number;
  end: number;
  clusters: ClusterReport[];
  bought: BoughtReport[];
  /** Absent: the trace has no workloads. */
  work?: WorkReport;
  /** The state over time, for charts. */
  standings: readonly Standing[];
  total: { machineMs: number; peak: number; demand: DemandReport; costs: Cost[] };
}

export function reportOf(simulation: Simulation, start: number): Report {
  const states = [...simulation.clusters.values()];
  const all = states.map((state) => ({ candidate: state.candidate, report: clusterReport(simulation, state) }));
  const clusters = all.filter(({ candidate }) => candidate === undefined).map(({ report }) => report);
  const bought = boughtReports(all, simulation);
  const work = workReport(simulation, together(bought.flatMap(({ cost }) => (cost ? [cost] : []))));
  const demands = all.map(({ report }) => report.demand);
  const sum = (of: (demand: DemandReport) => number) => demands.reduce((total, demand) => total + of(demand), 0);
  const waits = mergeHistograms(states.map((state) => state.waits));
  return {
    start,
    end: simulation.now,
    clusters,
    bought,
    ...(work && { work }),
    standings: simulation.standings.all,
    total: {
      machineMs: metered(simulation.machines, simulation.now),
      peak: simulation.peak,
      demand: {
        ...waited(waits),
        cancelled: sum((demand) => demand.cancelled),
        waiting: sum((demand) => demand.waiting),
      },
      costs: together(all.flatMap(({ report: { cost } }) => (cost ? [cost] : []))),
    },
  };
}

function boughtReports(
  all: readonly { candidate: string | undefined; report: ClusterReport }[],
  simulation: Simulation,
): BoughtReport[] {
  const candidates = new Set(all.flatMap(({ candidate }) => candidate ?? []));
  return [...candidates].sort().map((candidate): BoughtReport => {
    const its = all.filter((one) => one.candidate === candidate).map(({ report }) => report);
    const states = [...simulation.clusters.values()].filter((state) => state.candidate === candidate);
    const sum = (of: (report: ClusterReport) => number) => its.reduce((total, report) => total + of(report), 0);
    const [cost] = together(its.flatMap(({ cost: one }) => (one ? [one] : [])));
    return {
      candidate,
      made: its.length,
      profile: its[0]!.profile,
      machineMs: sum(({ machineMs }) => machineMs),
      peak: Math.max(...its.map(({ peak }) => peak)),
      demand: {
        ...waited(mergeHistograms(states.map(({ waits }) => waits))),
        cancelled: sum(({ demand }) => demand.cancelled),
        waiting: sum(({ demand }) => demand.waiting),
      },
      refused: refusedTogether(its.flatMap(({ refused }) => refused)),
      ...(cost && { cost }),
      unpriced: unpricedTogether(its.flatMap(({ unpriced }) => unpriced)),
    };
  });
}

function refusedTogether(all: readonly Refused[]): Refused[] {
  const byCode = new Map<string, Refused>();
  for (const one of all) {
    const known = byCode.get(one.code);
    const [first, last] = [Math.min(known?.first ?? one.first, one.first), Math.max(known?.last ?? one.last, one.last)];
    byCode.set(one.code, { ...(known ?? one), times: (known?.times ?? 0) + one.times, first, last });
  }
  return [...byCode.values()];
}

function unpricedTogether(all: readonly { what: string; ms: number }[]): { what: string; ms: number }[] {
  const byWhat = new Map<string, number>();
  for (const { what, ms } of all) byWhat.set(what, (byWhat.get(what) ?? 0) + ms);
  return [...byWhat].map(([what, ms]) => ({ what, ms }));
}

function clusterReport(simulation: Simulation, state: RehearsedCluster): ClusterReport {
  const pools = [...state.pools.values()];
  const made = madeOf(state);
  const { namespace = '', name } = state.manifest.metadata;
  return {
    namespace,
    name,
    profile: profileNameOf(made.at(-1)!.manifest),
    machineMs: made.flatMap((one) => one.pools).reduce((sum, { meter }) => sum + metered(meter, simulation.now), 0),
    peak: state.peak,
    demand: {
      ...waited(state.waits),
      cancelled: pools.reduce((sum, pool) => sum + pool.line.cancelled, 0),
      waiting: pools.reduce((sum, pool) => sum + pool.line.waiting, 0),
    },
    refused: [...state.refused.values()],
    ...costOf(simulation, state),
  };
}

function waited(histogram: WaitHistogram): Pick<DemandReport, 'served' | 'waitP50' | 'waitMax'> {
  const { served, max } = histogram;
  const p50 = waitQuantile(histogram, 0.5);
  // Rounded up to three digits, the median may exceed the longest wait.
  return { served, ...(p50 !== undefined && { waitP50: Math.min(p50, max), waitMax: max }) };
}

/** Cost by the prices of status.cost: machines, and the fee of a managed control plane. */
function costOf(simulation: Simulation, state: RehearsedCluster): Pick<ClusterReport, 'cost' | 'unpriced'> {
  let microsTimesMs = 0n;
  let currency: string | undefined;
  const unpriced: ClusterReport['unpriced'] = [];
  for (const { size, profile, ms } of madeOf(state).flatMap((made) => partsOf(made, simulation.now))) {
    if (ms === 0) continue;
    const price = priceOf(size, profile);
    for (const what of price.unpriced) unpriced.push({ what, ms });
    if (price.hourly === undefined || price.currency === undefined) continue;
    currency = price.currency;
    microsTimesMs += price.hourly * BigInt(ms);
  }
  // Divided once at the end: rounded parts would not add up.
  const amount = (microsTimesMs + BigInt(HOUR_MS / 2)) / BigInt(HOUR_MS);
  return { ...(currency !== undefined && { cost: { currency, amount } }), unpriced };
}

/** Machine types and control plane with their durations. */
function partsOf({ manifest, profile, pools, controlPlane }: Made, now: number) {
  if (!profile) return [];
  const { region, mode } = askedSize(manifest, profile, []);
  const inRegion = region === undefined ? {} : { region };
  const machines = pools.map(({ name, machineType, spot, meter }) => ({
    size: { ...inRegion, pools: [{ name, machineType, spot, count: 1 }] },
    profile,
    ms: metered(meter, now),
  }));
  const size = { ...inRegion, ...(mode && { mode }), pools: [] };
  return [...machines, { size, profile, ms: metered(controlPlane, now) }];
}

/** Parts in the present place and in those left. */
const madeOf = ({ left, manifest, place, profile, pools, controlPlane }: RehearsedCluster): Made[] => [
  ...left,
  { manifest: atPlace(manifest, place), profile, pools: [...pools.values()], controlPlane },
];

function together(costs: readonly Cost[]): Cost[] {
  const sums = new Map<string, Micros>();
  for (const { currency, amount } of costs) sums.set(currency, (sums.get(currency) ?? 0n) + amount);
  return [...sums].map(([currency, amount]) => ({ currency, amount }));
}
