import type { CloudProfile } from '../api/cloudprofile.ts';
import { LABELS } from '../api/group.ts';
import { matchesLabels } from '../api/label-selector.ts';
import type { DesiredPool } from '../api/pools.ts';
import { MAX_NODES } from '../api/worker-pool.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { grew, type PoolNow, restOf, withGrowthFacts } from '../burst/clusters/growth-receipt.ts';
import type { KeptGrowth } from '../burst/clusters/kept.ts';
import type { GrowingPool, GrowthView } from '../burst/clusters/model.ts';
import { offerOf, regionOf } from '../burst/clusters/offer.ts';
import type { Growth } from '../burst/clusters/plan-model.ts';
import { bestOffer, isInterrupted } from '../capacity/allocation.ts';
import { desiredSizes, isCoppices } from '../capacity/desired-sizes.ts';
import { machineTypesOf, marketFor } from '../capacity/offers.ts';
import { billingOf } from '../cost/billing.ts';
import { parseMoney } from '../cost/money.ts';
import { offerInputs } from './members.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { type ClusterState, dateOf, type Simulation } from './state.ts';

type Entry = NonNullable<RehearsedPolicy['policy']['spec']['grow']>[number];

/** Pools that are Coppice's to size, and not those for which it stands in for a cloud. */
export function growingPools({ object, manifest, profile, decided }: ClusterState): DesiredPool[] {
  if (!object || !profile) return [];
  const own = new Set((manifest.spec.pools ?? []).filter(isCoppices).map(({ name }) => name));
  return desiredSizes({ cluster: object, profile, decided }).filter((pool) => isCoppices(pool) && own.has(pool.name));
}

/** Whether the next node of a pool would be of machines that its cloud took away a moment ago: others grow first. */
export function isLast(
  simulation: Simulation,
  cluster: WorkerCluster,
  profile: CloudProfile,
  pool: DesiredPool,
): boolean {
  const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }), spot: pool.spot };
  const market = marketFor(place, simulation.capacity.known(cluster.metadata), dateOf(simulation));
  const next = bestOffer({ machineTypes: machineTypesOf(pool), zones: pool.zones }, market);
  return next !== undefined && isInterrupted(next, market);
}

/** Pools that the policy may have grow: of its own clusters, and of those that it names. */
export function growthOf(simulation: Simulation, rehearsed: RehearsedPolicy): GrowthView[] {
  const { policy, receipt } = rehearsed;
  const closed = new Set(
    receipt.purchases.flatMap(({ name, leaving: goes, emptyingSince, warm }) =>
      goes || emptyingSince || warm ? [name] : [],
    ),
  );
  const members = [...simulation.clusters.values()].filter(
    ({ object, serves }) => serves && object && !object.metadata.deletionTimestamp,
  );
  const pools = (which: (cluster: ClusterState) => boolean, entry?: Entry) =>
    members.filter(which).flatMap((cluster) => poolsOf(simulation, rehearsed, cluster, entry));
  const mine = pools(({ candidate, manifest }) => candidate !== undefined && !closed.has(manifest.metadata.name));
  const named = (policy.spec.grow ?? []).map((entry): GrowthView => {
    const added = (receipt.growths ?? []).filter((one) => one.entry === entry.name);
    const isNamed = ({ manifest: { metadata } }: ClusterState) =>
      metadata.labels?.[LABELS.burst] === undefined && matchesLabels(metadata.labels ?? {}, entry.clusterSelector);
    const left = entry.maximumNodes - added.reduce((sum, { nodes }) => sum + nodes, 0);
    return { name: entry.name, left, pools: pools(isNamed, entry) };
  });
  return [...(mine.length > 0 ? [{ name: undefined, left: MAX_NODES, pools: mine }] : []), ...named];
}

function poolsOf(
  simulation: Simulation,
  { policy, receipt }: RehearsedPolicy,
  cluster: ClusterState,
  entry?: Entry,
): GrowingPool[] {
  const { key, object, profile } = cluster;
  if (!object || !profile) return [];
  const { currency } = policy.spec.budget;
  const inputs = offerInputs(object, profile, { currency });
  const offered = offerOf(inputs).pools;
  return growingPools(cluster).flatMap((pool): GrowingPool[] => {
    const { name, count, maximum } = pool;
    const offer = offered.find((one) => one.name === name);
    if (!offer || (entry?.pools && !entry.pools.includes(name))) return [];
    const price = entry?.assumedHourly === undefined ? offer.price : (offer.price ?? parseMoney(entry.assumedHourly));
    const rest = receipt.rests[restOf({ cluster: key, pool: name })];
    const rests =
      rest && Date.parse(rest.until) > simulation.epoch + simulation.now
        ? `it is in back-off until ${rest.until}`
        : undefined;
    const unpriced = entry && price === undefined ? `a node of pool ${name} has no price in ${currency}` : undefined;
    return [
      {
        cluster: key,
        member: inputs.member,
        pool: name,
        template: { ...offer.template, id: `${key}/${name}` },
        more: Math.max(0, Math.min(maximum - count, MAX_NODES - count)),
        hourly: entry ? (price ?? 0n) : 0n,
        ...(price !== undefined && { price }),
        ...(profile.spec.billing && {
          billing: { machines: billingOf(profile, 'machines'), controlPlane: undefined, fee: 0n },
        }),
        problem: rests ?? unpriced,
        ...(isLast(simulation, object, profile, pool) && { isLast: true }),
      },
    ];
  });
}

/** Has a pool be as large as was decided, and writes that down. */
export function growPool(simulation: Simulation, rehearsed: RehearsedPolicy, growth: Growth): void {
  const cluster = simulation.clusters.get(growth.cluster);
  const pool = cluster && growingPools(cluster).find(({ name }) => name === growth.pool);
  if (!cluster?.object || !pool) return;
  const uid = cluster.object.metadata.uid ?? '';
  rehearsed.receipt = grew(rehearsed.receipt, growth, uid, pool.count, simulation.epoch + simulation.now);
  const by = `BurstPolicy ${rehearsed.policy.metadata.name}`;
  const at = dateOf(simulation).toISOString();
  cluster.decided.set(growth.pool, { count: pool.count + growth.nodes, by, why: growth.why, at });
  simulation.toPlan.add(cluster);
}

/** What is seen of nodes that were added to pools. */
export function noteGrowths(simulation: Simulation, rehearsed: RehearsedPolicy): void {
  rehearsed.receipt = withGrowthFacts(
    rehearsed.receipt,
    (growth) => poolNow(simulation, growth),
    simulation.epoch + simulation.now,
  );
}

function poolNow(simulation: Simulation, { cluster: key, uid, pool: name }: KeptGrowth): PoolNow | 'gone' {
  const cluster = simulation.clusters.get(key);
  const pool = cluster?.object?.metadata.uid === uid && growingPools(cluster).find((one) => one.name === name);
  if (!cluster || !pool) return 'gone';
  const isSoldOut = cluster.machineRefusal?.includes('ERR_INFRA_RESOURCES_DEPLETED') === true;
  return { count: pool.count, present: cluster.pools.get(name)?.ready ?? 0, isSoldOut };
}
