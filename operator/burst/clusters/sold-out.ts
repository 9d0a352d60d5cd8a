import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { bestOffer, isInterrupted } from '../../capacity/allocation.ts';
import { desiredSizes } from '../../capacity/desired-sizes.ts';
import { type KnownCapacity, machineTypesOf, marketFor, type Offer, sameOffer } from '../../capacity/offers.ts';
import { inEachPlace } from '../../capacity/places.ts';
import type { CandidateView, ClusterOffer } from './model.ts';
import { regionOf } from './offer.ts';
import { listText, plainText } from './words.ts';

type ProfileOf = (name: string) => CloudProfile | undefined;
type Known = Pick<KnownCapacity, 'depleted'>;

/** Parts of a planned cluster that are known to be sold out. */
interface SoldOut {
  /** Names of its pools without any available offer. */
  readonly pools: ReadonlySet<string>;
  /** Why it would not come, a sentence; undefined: no known obstacle. */
  readonly problem: string | undefined;
}

const NOTHING: SoldOut = { pools: new Set(), problem: undefined };

/** Places where a cluster may be made: an existing one stays, and only mode Managed can fall back. */
function mayComeTo(cluster: WorkerCluster, profileOf: ProfileOf): WorkerCluster[] {
  const { spec, status } = cluster;
  const mode = status?.mode ?? spec.mode ?? profileOf(profileNameOf(cluster))?.spec.defaults?.mode;
  if (mode !== 'Managed') return [cluster];
  const places = inEachPlace(cluster);
  const there = places.filter((place) => {
    const profile = profileOf(profileNameOf(place));
    return profile && regionOf({ cluster: place, profile }) === status?.region;
  });
  return there.length > 0 ? there : places;
}

/**
 * The cluster as written for the place where it would be made, which determines machines and prices: the first place
 * where nothing is sold out, else its own. An existing cluster keeps the first place of its region. Pure.
 */
export function comesTo(cluster: WorkerCluster, profileOf: ProfileOf, capacity: Known, now: Date): WorkerCluster {
  const [first = cluster, ...others] = mayComeTo(cluster, profileOf);
  if (others.length === 0 || cluster.status?.region !== undefined) return first;
  const open = [first, ...others].find(
    (place) => soldOutAt(place, profileOf(profileNameOf(place)), capacity, now, false).problem === undefined,
  );
  return open ?? first;
}

/**
 * Known sold-out parts of a cluster to make or wake, across all machine types, zones and fallback places of each pool.
 * An existing cluster stays in its place. A cluster whose minimum cannot be had is not worth an order: it would fail
 * while work waits for it. Pure.
 * @param passesOver whether recently interrupted offers count as sold out
 */
export function soldOutOf(
  cluster: WorkerCluster,
  profileOf: ProfileOf,
  capacity: Known,
  now: Date,
  passesOver = false,
): SoldOut {
  const places = mayComeTo(cluster, profileOf);
  const at = (place: WorkerCluster, alsoTaken: boolean) =>
    soldOutAt(place, profileOf(profileNameOf(place)), capacity, now, alsoTaken);
  const each = places.map((place) => at(place, false));
  // A cluster moves to another place when machines are sold out, not when some were interrupted.
  const open = each.findIndex(({ problem }) => problem === undefined);
  if (open < 0) return { ...each[0]!, problem: each.map(({ problem }) => problem).join('; ') };
  const taken = passesOver ? at(places[open]!, true) : NOTHING;
  if (taken.pools.size > each[open]!.pools.size) return taken;
  // At the next place it has other machine types, and comes.
  return each.slice(open + 1).some(({ problem }) => problem === undefined) ? NOTHING : each[open]!;
}

/** A candidate without its sold-out offers, and without recently interrupted ones when that differs. Pure. */
export function offeredNow(
  offer: ClusterOffer,
  cluster: WorkerCluster,
  profileOf: ProfileOf,
  capacity: Known,
  now: Date,
): Pick<CandidateView, 'offer' | 'problem' | 'steady'> {
  const soldOut = soldOutOf(cluster, profileOf, capacity, now);
  const isTaken = capacity.depleted.some(({ interrupted }) => interrupted);
  const taken = isTaken ? soldOutOf(cluster, profileOf, capacity, now, true) : soldOut;
  const as = (one: SoldOut) => ({ offer: withoutSoldOut(offer, one), problem: one.problem });
  const isSame = taken.pools.size === soldOut.pools.size && taken.problem === soldOut.problem;
  return { ...as(soldOut), ...(!isSame && { steady: as(taken) }) };
}

/** The offer without sold-out pools: they get no nodes for work, but their autoscalers may fill them later. */
export const withoutSoldOut = (offer: ClusterOffer, { pools }: SoldOut): ClusterOffer =>
  pools.size === 0
    ? offer
    : { ...offer, pools: offer.pools.map((pool) => (pools.has(pool.name) ? { ...pool, most: pool.minimum } : pool)) };

function soldOutAt(
  cluster: WorkerCluster,
  profile: CloudProfile | undefined,
  capacity: Known,
  now: Date,
  passesOver: boolean,
): SoldOut {
  if (!profile) return NOTHING;
  const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }) };
  const wanted = desiredSizes({ cluster, profile }).filter(({ count, maximum }) => Math.max(count, maximum) > 0);
  const gone = wanted.flatMap((pool) => {
    const machineTypes = machineTypesOf(pool);
    const market = marketFor({ ...place, spot: pool.spot }, capacity, now);
    const best = bestOffer({ machineTypes, zones: pool.zones }, market);
    if (machineTypes.length === 0 || (best && !(passesOver && isInterrupted(best, market)))) return [];
    return [{ pool, why: whyOf(pool, machineTypes, place, capacity, best !== undefined) }];
  });
  const needed = gone.filter(({ pool }) => pool.count > 0);
  const missing = needed.length > 0 ? needed : gone.length === wanted.length ? gone : [];
  return {
    pools: new Set(gone.map(({ pool }) => pool.name)),
    problem: missing.length > 0 ? missing.map(({ why }) => why).join('; ') : undefined,
  };
}

function whyOf(
  { name, zones, spot }: DesiredPool,
  machineTypes: readonly string[],
  { profile, region }: Pick<Offer, 'profile' | 'region'>,
  { depleted }: Known,
  wasTaken: boolean,
): string {
  const offers = machineTypes.flatMap((machineType) =>
    (zones.length > 0 ? zones : ['']).map((zone): Offer => ({ profile, region, zone, machineType, spot })),
  );
  const its = depleted.filter((one) => offers.some((offer) => sameOffer(one, offer)));
  const times = its.flatMap(({ until, interrupted = false }) => (interrupted === wasTaken ? [until] : []));
  const where = zones.length > 0 ? listText(zones) : region;
  const verb = machineTypes.length === 1 ? 'is' : 'are';
  const until = Math.min(...times);
  const what = `${spot ? 'spot ' : ''}${listText(machineTypes)} of pool ${name} in ${where}`;
  const when = Number.isFinite(until) ? ` until ${plainText(until)}` : '';
  if (wasTaken) return `its cloud took ${what} away a moment ago, so others are preferred${when}`;
  const again = when && `, and not asked for again${when}`;
  return `${what} ${verb} sold out${again}`;
}
