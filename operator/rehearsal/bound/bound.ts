import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { ClusterOffer, OfferedPool } from '../../burst/clusters/model.ts';
import { clusterOfferOf } from '../../burst/clusters/offer.ts';
import { roomFor } from '../../burst/fit/filters/resources.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { isCoppices } from '../../capacity/desired-sizes.ts';
import { scaleInAfterMs } from '../../controllers/autoscaling/observe.ts';
import { policyLimitsOf } from '../../controllers/burst/limits.ts';
import { manifestOf } from '../../controllers/burst/own-clusters.ts';
import { billingOf } from '../../cost/billing.ts';
import type { Micros } from '../../cost/money.ts';
import { offerInputs } from '../members.ts';
import { mayComeTo } from '../places.ts';
import type { Scenario } from '../scenario.ts';
import type { TraceLine, WorkSize } from '../trace/trace-line.ts';
import { podOf } from '../work-model.ts';
import { type CurveAmounts, DemandCurve, type DemandSince } from './demand-curve.ts';
import { areaOf, highest, type Level, levelsBeyond, lingeringLevels, scaleLevels, stretchLevels } from './levels.ts';
import { PeakPacking } from './peak-packing.ts';
import { StayingWork } from './staying-work.ts';

const HOUR_MS = 3_600_000;
const GPU = 'nvidia.com/gpu';

/**
 * Lower bound of the cost of any planner, and the cost of permanent capacity for the peak. Money of the policy's
 * currency.
 */
export interface CostBound {
  /** Cost of demand beyond the standing clusters at the lowest unit price, with the clouds' billing minimums. */
  readonly least: Micros;
  /** Additional cost when each unit stays for minimumLife. */
  readonly forcedByMinimumLife: Micros;
  /** Cost that policies with autoscalers cannot avoid. */
  readonly forced: Forced;
  /**
   * Cost when jobs never move, and begin in standing clusters where they fit. Not a lower bound: a planner that knows
   * the duration of jobs could be cheaper. Absent: the trace contains other work than jobs.
   */
  readonly staying?: Micros;
  /**
   * Cost of control planes when all demand is served at once: the fewest clusters that suffice while demand exceeds the
   * standing ones, each for minimumLife, at the lowest fee of any candidate.
   */
  readonly controlPlanes: Micros;
  /** Machines needed for the peak if they ran permanently, and their cost. */
  readonly peakNodes: number;
  readonly standing: Micros;
  /**
   * The machines come from a plan in which each pod keeps its place. Otherwise their number is a lower bound, as if
   * demand were divisible.
   */
  readonly isStandingPlan: boolean;
  /**
   * Lower bound for the workloads that ran, at the times they ran, without billing minimums: every planner that ran
   * them paid at least this.
   */
  readonly leastFor: (ran: readonly DemandSince[]) => Micros;
  /** Where the lowest unit price comes from. */
  readonly cheapest: { readonly candidate: string; readonly pool: string };
}

/** Lower bounds when all demand is served at once; each includes those before it. */
interface Forced {
  /** Whole clusters, not units, live for minimumLife with their minimum of nodes. */
  readonly byMinimumLife: Micros;
  /** Machines are sold whole. */
  readonly byWholeMachines: Micros;
  readonly byControlPlanes: Micros;
  /** Clusters stay for idleFor after their last workload; machines too, or for scaleInAfter where that is shorter. */
  readonly byIdleFor: Micros;
}

interface Sold {
  readonly candidate: string;
  readonly offer: ClusterOffer;
  readonly pool: OfferedPool;
  readonly hourly: number;
  readonly leastMs: number;
  /** Time that an unused machine stays in a used cluster. */
  readonly lingersMs: number;
}

/**
 * Lower bound of the cost of a trace's demand, for comparison with a policy's result. undefined: no offer has a price.
 */
export async function boundOf(
  scenario: Scenario,
  policy: BurstPolicy,
  trace: AsyncIterable<TraceLine>,
  { start, end }: { start: number; end: number },
): Promise<CostBound | undefined> {
  const curve = new DemandCurve();
  const sold = soldOf(scenario, policy);
  const staying = new StayingWork(standingAmounts(scenario));
  const packing = new PeakPacking(standingPools(scenario), sold);
  for await (const line of trace) {
    if (line.at > end) continue;
    curve.add(line);
    staying.add(line);
    packing.add(line);
  }
  const sizes = [...curve.sizes.values()];
  const unitsOf = (asked: readonly DemandSince[]) =>
    sizes.length === 1 ? byReplicas(scenario, sizes[0]!, asked, sold) : byAmounts(scenario, asked, sold);
  const units = unitsOf(curve.until(end));
  if (!units) return undefined;
  const { levels, machines, clusters, hourly, cheapest, nodes } = units;
  const plan = packing.plan();
  const { minimumLifeMs, idleForMs } = policyLimitsOf(policy.spec);
  const cost = (curve: readonly Level[]): Micros => BigInt(Math.round(areaOf(curve, end) / HOUR_MS));
  const single = inWhole(levels, 1);
  const paid = (leastMs: number) => cost(scaleLevels(stretchLevels(single, leastMs), hourly));
  const work = scaleLevels(levels, hourly);
  const billed = paid(cheapest.leastMs);
  const living = (of: readonly Level[]) => stretchLevels(of, minimumLifeMs);
  const fees = (of: readonly Level[]) => cost(scaleLevels(living(of), lowestFee(sold)));
  const atLeast = (of: readonly Level[]) => scaleLevels(of, leastMachines(sold));
  const inMachines = scaleLevels(machines, Math.min(...sold.map((one) => one.hourly)));
  const lived = highest(work, atLeast(levelsBeyond(living(clusters), clusters)));
  const whole = highest(lived, inMachines, atLeast(living(clusters)));
  const longer = lingeringLevels(clusters, idleForMs);
  const lingeringMachines = lingeringLevels(inMachines, Math.min(...sold.map(({ lingersMs }) => lingersMs)));
  const prices = unitPrices(sold);
  const stays = staying.until(end)?.map((one) => ({ at: one.at, units: dearest(one, prices) }));
  return {
    least: cost(work) + billed - paid(0),
    forcedByMinimumLife: paid(Math.max(cheapest.leastMs, minimumLifeMs)) - billed,
    forced: {
      byMinimumLife: cost(lived),
      byWholeMachines: cost(whole),
      byControlPlanes: cost(whole) + fees(clusters),
      byIdleFor: cost(highest(lived, lingeringMachines, atLeast(living(longer)))) + fees(longer),
    },
    ...(stays && { staying: cost(stays) }),
    controlPlanes: fees(clusters),
    peakNodes: plan ? [...plan.values()].reduce((sum, count) => sum + count, 0) : nodes,
    standing: standingCost(plan ?? new Map([[cheapest, nodes]]), end - start),
    isStandingPlan: plan !== undefined,
    leastFor: (ran) => cost(scaleLevels(unitsOf(ran)!.levels, hourly)),
    cheapest: { candidate: cheapest.candidate, pool: cheapest.pool.name },
  };
}

/** The smallest whole number of consumers, each of which takes this many units. */
const inWhole = (levels: readonly Level[], each: number): Level[] =>
  levels.map(({ at, units }) => ({ at, units: Math.ceil(units / each - 1e-9) }));

function soldOf(scenario: Scenario, policy: BurstPolicy): Sold[] {
  const { currency } = policy.spec.budget;
  const { idleForMs } = policyLimitsOf(policy.spec);
  return policy.spec.candidates.flatMap((candidate) => {
    const made = manifestOf(policy, candidate, { name: 'new', number: 0, nodes: {} });
    return mayComeTo(made, scenario.profiles).flatMap((cluster) => {
      const profile = scenario.profiles.get(profileNameOf(cluster));
      if (!profile) return [];
      const offer = clusterOfferOf(offerInputs(cluster, profile, { currency, assumedHourly: candidate.assumedHourly }));
      const leastMs = billingOf(profile, 'machines').minimumMs;
      return offer.pools.flatMap((pool) => {
        if (pool.price === undefined) return [];
        const written = cluster.spec.pools?.find(({ name }) => name === pool.name);
        const lingersMs = written && isCoppices(written) ? Math.min(idleForMs, scaleInAfterMs(written)) : idleForMs;
        return [{ candidate: candidate.name, offer, pool, hourly: Number(pool.price), leastMs, lingersMs }];
      });
    });
  });
}

interface Units {
  readonly levels: readonly Level[];
  /** The fewest machines that suffice, of the largest size offered. */
  readonly machines: readonly Level[];
  /** The fewest clusters that suffice. */
  readonly clusters: readonly Level[];
  /** Micros per hour of one unit. */
  readonly hourly: number;
  readonly cheapest: Sold;
  readonly nodes: number;
}

/** Units when all pods are equal: a unit is a replica, and the number per node is exact. */
function byReplicas(
  scenario: Scenario,
  size: WorkSize,
  asked: readonly DemandSince[],
  sold: readonly Sold[],
): Units | undefined {
  const pod = fitPod(podOf(size, false));
  const priced = sold
    .map((one) => ({ one, each: one.hourly / fitsOn(pod, one.pool), fits: fitsOn(pod, one.pool) }))
    .filter(({ fits }) => fits > 0)
    .sort((a, b) => a.each - b.each)[0];
  if (!priced) return undefined;
  const slots = standingPools(scenario).reduce((sum, { pool, count }) => sum + count * fitsOn(pod, pool), 0);
  const levels = asked.map(({ at, count }) => ({ at, units: Math.max(0, count - slots) }));
  const nodes = Math.ceil(peakOf(levels) / priced.fits);
  const most = mostOf(sold, (pool) => pool.most * fitsOn(pod, pool));
  const clusters = inWhole(levels, most);
  const machines = inWhole(levels, Math.max(...sold.map(({ pool }) => fitsOn(pod, pool))));
  return { levels, machines, clusters, hourly: priced.each, cheapest: priced.one, nodes };
}

/**
 * Units when pod sizes differ: a unit is a CPU, or memory or GPUs of the same price; the most expensive resource
 * counts, as if pods were divisible.
 */
function byAmounts(scenario: Scenario, asked: readonly DemandSince[], sold: readonly Sold[]): Units | undefined {
  const usable = sold.filter(({ pool }) => pool.template.allocatable.cpu > 0 && pool.template.allocatable.memory > 0);
  const cheapest = [...usable].sort((a, b) => priceOf('cpu', a) - priceOf('cpu', b))[0];
  if (!cheapest) return undefined;
  const prices = unitPrices(sold);
  const there = standingAmounts(scenario);
  const beyondThere = asked.map((one) => ({
    at: one.at,
    ...amountsBy((of) => Math.max(0, one[of] - there[of])),
  }));
  const levels = beyondThere.map((one) => ({ at: one.at, units: dearest(one, prices) / (1000 * prices.cpu) }));
  /** Number of consumers with these amounts that suffice for all resources. */
  const counted = (each: CurveAmounts) =>
    beyondThere.map((one) => ({
      at: one.at,
      units: Math.ceil(Math.max(...RESOURCES.map((of) => (each[of] > 0 ? one[of] / each[of] : 0)))),
    }));
  const machines = counted(amountsBy((of) => Math.max(...usable.map(({ pool }) => offered(pool)[of]))));
  const clusters = counted(amountsBy((of) => mostOf(sold, (pool) => pool.most * offered(pool)[of])));
  const nodes = peakOf(counted(offered(cheapest.pool)));
  return { levels, machines, clusters, hourly: 1000 * prices.cpu, cheapest, nodes };
}

const RESOURCES = ['cpu', 'memory', 'gpu'] as const;

const amountsBy = (amount: (of: keyof CurveAmounts) => number): CurveAmounts => ({
  cpu: amount('cpu'),
  memory: amount('memory'),
  gpu: amount('gpu'),
});

/** Allocatable amounts of a pool's node. */
const offered = ({ template: { allocatable } }: OfferedPool): CurveAmounts => ({
  cpu: allocatable.cpu,
  memory: allocatable.memory,
  gpu: allocatable.others.get(GPU) ?? 0,
});

const priceOf = (of: keyof CurveAmounts, { hourly, pool }: Sold): number => hourly / offered(pool)[of];

/**
 * Lowest price of each resource alone: micros per hour of a millicore, a byte, a GPU. Zero for resources that no offer
 * has.
 */
const unitPrices = (sold: readonly Sold[]): CurveAmounts =>
  amountsBy((of) => {
    const least = Math.min(...sold.map((one) => priceOf(of, one)));
    return Number.isFinite(least) ? least : 0;
  });

/**
 * Lower bound of the price of these amounts in micros per hour: each machine has some of every resource, so the most
 * expensive one counts.
 */
const dearest = (amounts: CurveAmounts, prices: CurveAmounts): number =>
  Math.max(...RESOURCES.map((of) => amounts[of] * prices[of]));

/** Total allocatable of the standing clusters, as if it were divisible. */
function standingAmounts(scenario: Scenario): CurveAmounts {
  const pools = standingPools(scenario);
  return amountsBy((of) => pools.reduce((total, { pool, count }) => total + count * offered(pool)[of], 0));
}

/** Largest amount that any candidate's cluster may reach. */
function mostOf(sold: readonly Sold[], of: (pool: OfferedPool) => number): number {
  const offers = new Set(sold.map(({ offer }) => offer));
  return Math.max(...[...offers].map(({ pools }) => pools.reduce((sum, pool) => sum + of(pool), 0)));
}

/**
 * Hourly cost of the smallest cluster's machines: its minimum, or one machine, as a hub places nothing on an empty
 * cluster.
 */
function leastMachines(sold: readonly Sold[]): number {
  const offers = new Set(sold.map(({ offer }) => offer));
  const costs = [...offers].map(({ pools }) => {
    const minimum = pools.reduce((sum, pool) => sum + Number(pool.price ?? 0n) * pool.minimum, 0);
    const one = Math.min(...pools.map(({ price }) => (price === undefined ? Number.POSITIVE_INFINITY : Number(price))));
    return minimum > 0 ? minimum : one;
  });
  return Math.min(...costs);
}

/** Lowest hourly fee of a control plane, in micros. */
function lowestFee(sold: readonly Sold[]): number {
  const fees = sold.flatMap(({ offer }) => {
    const least = new Map(offer.pools.map(({ name, minimum }) => [name, minimum]));
    const price = offer.price(least);
    if (typeof price === 'string') return [];
    const machines = offer.pools.reduce((sum, pool) => sum + (pool.price ?? 0n) * BigInt(pool.minimum), 0n);
    return price.hourly > machines ? [Number(price.hourly - machines)] : [0];
  });
  return fees.length > 0 ? Math.min(...fees) : 0;
}

const peakOf = (levels: readonly Level[]): number => levels.reduce((most, { units }) => Math.max(most, units), 0);

const fitsOn = (pod: FitPod, { template }: OfferedPool): number => roomFor(pod, template, []);

/** Nodes that exist independently of a policy; autoscaled pools count with their maximum. */
function standingPools({ clusters, profiles }: Scenario): { pool: OfferedPool; count: number }[] {
  return [...clusters.values()].flatMap((cluster: WorkerCluster) => {
    const profile = profiles.get(profileNameOf(cluster));
    if (!profile) return [];
    return clusterOfferOf(offerInputs(cluster, profile, { currency: '' })).pools.map((pool) => {
      const grows = cluster.spec.pools?.find(({ name }) => name === pool.name)?.autoscale === 'Coppice';
      return { pool, count: grows ? pool.most : pool.minimum };
    });
  });
}

/** Cost of permanent clusters: as many as possible at full size, and one for the rest. */
function standingCost(nodes: ReadonlyMap<Sold, number>, ms: number): Micros {
  let hourly = 0n;
  for (const [offer, its] of Map.groupBy(nodes, ([{ offer }]) => offer)) {
    const clusters = Math.max(...its.map(([{ pool }, count]) => Math.ceil(count / pool.most)));
    for (let index = 0; index < clusters; index++) {
      const inIt = ({ most }: OfferedPool, count: number) => Math.max(0, Math.min(most, count - index * most));
      const price = offer.price(new Map(its.map(([{ pool }, count]) => [pool.name, inIt(pool, count)])));
      if (typeof price !== 'string') hourly += price.hourly;
    }
  }
  return (hourly * BigInt(Math.round(ms))) / BigInt(HOUR_MS);
}
