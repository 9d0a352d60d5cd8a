import type { CloudProfile } from '../api/cloudprofile.ts';
import { LABELS } from '../api/group.ts';
import type { DesiredPool } from '../api/pools.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import type { PoolNow } from '../burst/clusters/receipt-facts.ts';
import { isLate } from '../burst/nodes/grow.ts';
import { bestOffer, isInterrupted } from '../capacity/allocation.ts';
import { type DecidedSize, desiredSizes, isCoppices } from '../capacity/desired-sizes.ts';
import { machineTypesOf, marketFor } from '../capacity/offers.ts';
import type { PoolNamed, PoolSeen } from '../controllers/burst/seen.ts';
import { offeredPools } from './members.ts';
import { dateOf, type RehearsedCluster, type Simulation } from './state.ts';

/** Pools sized by Coppice itself, without those for which it stands in for a cloud. */
function growingPools({ object, manifest, profile, decided }: RehearsedCluster): readonly DesiredPool[] {
  if (!object || !profile) return [];
  const sizes = [...decided.values()];
  const known = grown.get(object);
  const isSame = known?.profile === profile && known.sizes.length === sizes.length;
  if (known && isSame && sizes.every((size, index) => size === known.sizes[index])) return known.pools;
  const own = new Set((manifest.spec.pools ?? []).filter(isCoppices).map(({ name }) => name));
  const all = desiredSizes({ cluster: object, profile, decided });
  const pools = all.filter((pool) => isCoppices(pool) && own.has(pool.name));
  grown.set(object, { profile, sizes, pools });
  return pools;
}

/** Hot path: each look asks once per purchase of nodes. Objects and decided sizes are immutable. */
const grown = new WeakMap<
  WorkerCluster,
  { readonly profile: CloudProfile; readonly sizes: readonly DecidedSize[]; readonly pools: readonly DesiredPool[] }
>();

/** Offer of a pool's next node, and whether the cloud recently reclaimed such machines. */
function nextOffer(
  simulation: Simulation,
  cluster: WorkerCluster,
  profile: CloudProfile,
  pool: DesiredPool,
): { next: ReturnType<typeof bestOffer>; isTaken: boolean } {
  const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }), spot: pool.spot };
  const market = marketFor(place, simulation.capacity.known(cluster.metadata), dateOf(simulation));
  const next = bestOffer({ machineTypes: machineTypesOf(pool), zones: pool.zones }, market);
  return { next, isTaken: next !== undefined && isInterrupted(next, market) };
}

/** A cluster's pools sized by Coppice, as a policy sees them; undefined: unknown now. */
export function rehearsedPoolsSeen(simulation: Simulation, state: RehearsedCluster): PoolSeen[] | undefined {
  const { object, profile, serves, decided } = state;
  if (!object || !profile || !serves) return undefined;
  const offered = offeredPools(object, profile);
  const now = simulation.epoch + simulation.now;
  return growingPools(state).map((pool): PoolSeen => {
    const { name, count, minimum, maximum } = pool;
    const { next, isTaken } = nextOffer(simulation, object, profile, pool);
    const template = next && offered.find((one) => one.name === name)?.template;
    const at = decided.get(name)?.at;
    const decidedAt = at === undefined ? undefined : Date.parse(at);
    const ready = readyOf(state, pool);
    const late = { name, count, minimum, maximum, present: ready, ...(decidedAt !== undefined && { decidedAt }) };
    return {
      pool,
      ready,
      present: ready,
      count,
      decidedAt,
      template,
      soldOut: next ? undefined : 'all its machine types are sold out',
      isLast: isTaken,
      // A simulated cloud deletes the named machines.
      removesNodes: true,
      isLate: isLate({ ...late, ...(template && { offer: { template, price: 0 } }) }, now),
    };
  });
}

/** Ready nodes of a pool, of any of its machine types. */
const readyOf = ({ pools, wanted }: RehearsedCluster, { name }: Pick<DesiredPool, 'name'>): number =>
  [...pools.values()]
    .filter((pool) => {
      const its = wanted.find((one) => one.name === pool.name);
      return (its?.labels[LABELS.alternativeOf] ?? pool.name) === name;
    })
    .reduce((sum, { ready }) => sum + ready, 0);

/** Observed state of nodes that were added to a pool. */
export function poolNow(
  simulation: Simulation,
  { cluster: key, uid, pool: name }: PoolNamed,
): PoolNow | 'gone' | 'unknown' {
  const cluster = simulation.clusters.get(key);
  if (cluster?.object?.metadata.uid !== uid || cluster.object.metadata.deletionTimestamp) return 'gone';
  // As in a garden, a cluster that does not answer is unknown: it is being created, or sleeps.
  if (!cluster.serves) return 'unknown';
  const pool = growingPools(cluster).find((one) => one.name === name);
  if (!pool) return 'gone';
  const isSoldOut = cluster.machineRefusal?.includes('ERR_INFRA_RESOURCES_DEPLETED') === true;
  return { count: pool.count, present: readyOf(cluster, pool), isSoldOut };
}
