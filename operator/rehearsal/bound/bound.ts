import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { ClusterOffer, OfferedPool } from '../../burst/clusters/model.ts';
import { offerOf } from '../../burst/clusters/offer.ts';
import { roomFor } from '../../burst/fit/filters/resources.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { isCoppices } from '../../capacity/desired-sizes.ts';
import { scaleInAfterMs } from '../../controllers/autoscaling/observe.ts';
import { limitsOf } from '../../controllers/burst/limits.ts';
import { manifestOf } from '../../controllers/burst/own-clusters.ts';
import { billingOf } from '../../cost/billing.ts';
import type { Micros } from '../../cost/money.ts';
import { offerInputs } from '../members.ts';
import { mayComeTo } from '../places.ts';
import type { Scenario } from '../scenario.ts';
import type { TraceLine, WorkSize } from '../trace/trace-line.ts';
import { podOf } from '../work-model.ts';
import { type Amounts, type Asked, DemandCurve } from './demand-curve.ts';
import { areaOf, beyond, highest, type Level, lingering, scaled, stretched } from './levels.ts';
import { PeakPacking } from './peak-packing.ts';
import { StayingWork } from './staying-work.ts';

const HOUR_MS = 3_600_000;
const GPU = 'nvidia.com/gpu';

/** What no planner can do better than, and what it would cost to have the peak standing. Money of the policy's currency. */
export interface Bound {
  /** What the standing clusters have no place for, at the cheapest price of a unit, with the minimums that clouds bill. */
  readonly least: Micros;
  /** What is paid besides where each unit stays for minimumLife. */
  readonly forcedByMinimumLife: Micros;
  /** What policies must pay that let autoscalers take nodes away. */
  readonly forced: Forced;
  /**
   * What it costs where jobs stay where they began, and begin in the standing clusters where they have room. No bound: who knew how long jobs run
   * could choose better. Absent: not all of the trace is jobs.
   */
  readonly staying?: Micros;
  /**
   * What control planes cost who serves all of it at once: a cluster as long as there is work beyond what stands, as few as take it, each for
   * minimumLife, at the lowest fee of any candidate.
   */
  readonly controlPlanes: Micros;
  /** The peak of it as machines that stand all the time: how many, and their cost. */
  readonly peakNodes: number;
  readonly standing: Micros;
  /** Each pod has its place on these machines, and keeps it. Else they are no fewer than can be had: as if all could be cut to fit. */
  readonly isStandingPlan: boolean;
  /** The least for what ran somewhere, at the times at which it ran, without minimums that clouds bill: who ran that has paid no less. */
  readonly leastFor: (ran: readonly Asked[]) => Micros;
  /** Of what the cheapest unit is. */
  readonly cheapest: { readonly candidate: string; readonly pool: string };
}

/** What is the least for who serves all of it at once: each with what is before it. */
interface Forced {
  /** As clusters, and not units, live for minimumLife, with as few nodes as they may have. */
  readonly byMinimumLife: Micros;
  /** As nobody sells a part of a machine. */
  readonly byWholeMachines: Micros;
  readonly byControlPlanes: Micros;
  /** As clusters stay for idleFor when nobody needs them any more, and so do machines, or for scaleInAfter where that is shorter. */
  readonly byIdleFor: Micros;
}

interface Sold {
  readonly candidate: string;
  readonly offer: ClusterOffer;
  readonly pool: OfferedPool;
  readonly hourly: number;
  readonly leastMs: number;
  /** How long a machine stays that nobody needs any more, while its cluster does. */
  readonly lingersMs: number;
}

/** Beside what a policy does: what its demand would cost at least, by the trace alone. undefined: nothing on offer has a price. */
export async function boundOf(
  scenario: Scenario,
  policy: BurstPolicy,
  trace: AsyncIterable<TraceLine>,
  { start, end }: { start: number; end: number },
): Promise<Bound | undefined> {
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
  const unitsOf = (asked: readonly Asked[]) =>
    sizes.length === 1 ? byReplicas(scenario, sizes[0]!, asked, sold) : byAmounts(scenario, asked, sold);
  const units = unitsOf(curve.until(end));
  if (!units) return undefined;
  const { levels, machines, clusters, hourly, cheapest, nodes } = units;
  const plan = packing.plan();
  const { minimumLifeMs, idleForMs } = limitsOf(policy.spec);
  const cost = (curve: readonly Level[]): Micros => BigInt(Math.round(areaOf(curve, end) / HOUR_MS));
  const single = inWhole(levels, 1);
  const paid = (leastMs: number) => cost(scaled(stretched(single, leastMs), hourly));
  const work = scaled(levels, hourly);
  const billed = paid(cheapest.leastMs);
  const living = (of: readonly Level[]) => stretched(of, minimumLifeMs);
  const fees = (of: readonly Level[]) => cost(scaled(living(of), lowestFee(sold)));
  const atLeast = (of: readonly Level[]) => scaled(of, leastMachines(sold));
  const inMachines = scaled(machines, Math.min(...sold.map((one) => one.hourly)));
  const lived = highest(work, atLeast(beyond(living(clusters), clusters)));
  const whole = highest(lived, inMachines, atLeast(living(clusters)));
  const longer = lingering(clusters, idleForMs);
  const lingeringMachines = lingering(inMachines, Math.min(...sold.map(({ lingersMs }) => lingersMs)));
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
    leastFor: (ran) => cost(scaled(unitsOf(ran)!.levels, hourly)),
    cheapest: { candidate: cheapest.candidate, pool: cheapest.pool.name },
  };
}

/** As many as take that, of which each takes so much. */
const inWhole = (levels: readonly Level[], each: number): Level[] =>
  levels.map(({ at, units }) => ({ at, units: Math.ceil(units / each - 1e-9) }));

function soldOf(scenario: Scenario, policy: BurstPolicy): Sold[] {
  const { currency } = policy.spec.budget;
  const { idleForMs } = limitsOf(policy.spec);
  return policy.spec.candidates.flatMap((candidate) => {
    const made = manifestOf(policy, candidate, { name: 'new', number: 0, nodes: {} });
    return mayComeTo(made, scenario.profiles).flatMap((cluster) => {
      const profile = scenario.profiles.get(profileNameOf(cluster));
      if (!profile) return [];
      const offer = offerOf(offerInputs(cluster, profile, { currency, assumedHourly: candidate.assumedHourly }));
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
  /** As few machines as take that, of the largest that are for sale. */
  readonly machines: readonly Level[];
  /** As few clusters as take that. */
  readonly clusters: readonly Level[];
  /** Millionths an hour of one unit. */
  readonly hourly: number;
  readonly cheapest: Sold;
  readonly nodes: number;
}

/** All asks for the same: a unit is a replica, and how many a node takes is known exactly. */
function byReplicas(
  scenario: Scenario,
  size: WorkSize,
  asked: readonly Asked[],
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

/** Sizes are mixed: a unit is a CPU, or as much memory, or GPUs, as costs the same; the dearest counts, as if all could be cut to fit. */
function byAmounts(scenario: Scenario, asked: readonly Asked[], sold: readonly Sold[]): Units | undefined {
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
  /** How many take all of it, of which each takes so much. */
  const counted = (each: Amounts) =>
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

const amountsBy = (amount: (of: keyof Amounts) => number): Amounts => ({
  cpu: amount('cpu'),
  memory: amount('memory'),
  gpu: amount('gpu'),
});

/** What a node of a pool has. */
const offered = ({ template: { allocatable } }: OfferedPool): Amounts => ({
  cpu: allocatable.cpu,
  memory: allocatable.memory,
  gpu: allocatable.others.get(GPU) ?? 0,
});

const priceOf = (of: keyof Amounts, { hourly, pool }: Sold): number => hourly / offered(pool)[of];

/** The cheapest of each by itself: millionths an hour of a millicore, a byte, a GPU. Of what nobody sells: nothing. */
const unitPrices = (sold: readonly Sold[]): Amounts =>
  amountsBy((of) => {
    const least = Math.min(...sold.map((one) => priceOf(of, one)));
    return Number.isFinite(least) ? least : 0;
  });

/** What that costs at least, as a machine has some of each: millionths an hour. */
const dearest = (amounts: Amounts, prices: Amounts): number =>
  Math.max(...RESOURCES.map((of) => amounts[of] * prices[of]));

/** What the standing clusters offer, as if it could be cut to fit. */
function standingAmounts(scenario: Scenario): Amounts {
  const pools = standingPools(scenario);
  return amountsBy((of) => pools.reduce((total, { pool, count }) => total + count * offered(pool)[of], 0));
}

/** Of the cluster that may have most of it, of any candidate. */
function mostOf(sold: readonly Sold[], of: (pool: OfferedPool) => number): number {
  const offers = new Set(sold.map(({ offer }) => offer));
  return Math.max(...[...offers].map(({ pools }) => pools.reduce((sum, pool) => sum + of(pool), 0)));
}

/** What machines of the smallest cluster cost in an hour: its minimum, or one, as a hub places nothing where there is none. */
function leastMachines(sold: readonly Sold[]): number {
  const offers = new Set(sold.map(({ offer }) => offer));
  const costs = [...offers].map(({ pools }) => {
    const minimum = pools.reduce((sum, pool) => sum + Number(pool.price ?? 0n) * pool.minimum, 0);
    const one = Math.min(...pools.map(({ price }) => (price === undefined ? Number.POSITIVE_INFINITY : Number(price))));
    return minimum > 0 ? minimum : one;
  });
  return Math.min(...costs);
}

/** What the cheapest control plane costs in an hour, in millionths. */
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

/** Nodes that stand, whatever a policy does; of pools that grow by themselves, all that they may have. */
function standingPools({ clusters, profiles }: Scenario): { pool: OfferedPool; count: number }[] {
  return [...clusters.values()].flatMap((cluster: WorkerCluster) => {
    const profile = profiles.get(profileNameOf(cluster));
    if (!profile) return [];
    return offerOf(offerInputs(cluster, profile, { currency: '' })).pools.map((pool) => {
      const grows = cluster.spec.pools?.find(({ name }) => name === pool.name)?.autoscale === 'Coppice';
      return { pool, count: grows ? pool.most : pool.minimum };
    });
  });
}

/** Clusters as large as they may be, and one for the rest, for all the time. */
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
