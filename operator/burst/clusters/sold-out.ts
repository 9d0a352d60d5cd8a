import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { bestOffer } from '../../capacity/allocation.ts';
import { desiredSizes } from '../../capacity/desired-sizes.ts';
import { isDepleted, type KnownCapacity, machineTypesOf, type Offer, sameOffer } from '../../capacity/offers.ts';
import { atPlace, placesOf } from '../../capacity/places.ts';
import type { ClusterOffer } from './model.ts';
import { regionOf } from './offer.ts';
import { listed, text } from './words.ts';

/** What of a cluster that could be made is known to be sold out. */
export interface SoldOut {
  /** Names of its pools for which nothing is to be had. */
  readonly pools: ReadonlySet<string>;
  /** Why it would not come, a sentence; undefined: nothing that is known speaks against it. */
  readonly problem: string | undefined;
}

const NOTHING: SoldOut = { pools: new Set(), problem: undefined };

/**
 * What is known to be sold out of a cluster that could be made, or woken: of each pool all machine types in all zones, also of the places that it
 * falls back to. One that is there already stays in its place. One whose pools with a minimum cannot be had is not worth its order: it fails, and
 * work waits for it meanwhile. Pure.
 */
export function soldOutOf(
  cluster: WorkerCluster,
  profileOf: (name: string) => CloudProfile | undefined,
  capacity: Pick<KnownCapacity, 'depleted'>,
  now: Date,
): SoldOut {
  const places = Array.from({ length: placesOf(cluster) }, (_, place) => atPlace(cluster, place));
  const isThere = (place: WorkerCluster) => {
    const profile = profileOf(profileNameOf(place));
    return profile && regionOf({ cluster: place, profile }) === cluster.status?.region;
  };
  const there = places.filter(isThere);
  const each = (there.length > 0 ? there : places).map((place) =>
    soldOutAt(place, profileOf(profileNameOf(place)), capacity, now),
  );
  const [first = NOTHING, ...others] = each;
  // Elsewhere it has other machine types, and comes.
  if (others.some(({ problem }) => problem === undefined)) return NOTHING;
  return { ...first, problem: first.problem && each.map(({ problem }) => problem).join('; ') };
}

/** An offer without what is sold out of it. */
export const withoutSoldOut = (offer: ClusterOffer, { pools }: SoldOut): ClusterOffer =>
  pools.size === 0 ? offer : { ...offer, pools: offer.pools.filter(({ name }) => !pools.has(name)) };

function soldOutAt(
  cluster: WorkerCluster,
  profile: CloudProfile | undefined,
  capacity: Pick<KnownCapacity, 'depleted'>,
  now: Date,
): SoldOut {
  if (!profile) return NOTHING;
  const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }) };
  const wanted = desiredSizes({ cluster, profile }).filter(({ count, maximum }) => Math.max(count, maximum) > 0);
  const gone = wanted.flatMap((pool) => {
    const machineTypes = machineTypesOf(pool);
    const market = {
      isDepleted: (machineType: string, zone: string) =>
        isDepleted(capacity, { ...place, spot: pool.spot, machineType, zone }, now),
    };
    if (machineTypes.length === 0 || bestOffer({ machineTypes, zones: pool.zones }, market)) return [];
    return [{ pool, why: whyOf(pool, machineTypes, place, capacity) }];
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
  { depleted }: Pick<KnownCapacity, 'depleted'>,
): string {
  const offers = machineTypes.flatMap((machineType) =>
    (zones.length > 0 ? zones : ['']).map((zone): Offer => ({ profile, region, zone, machineType, spot })),
  );
  const times = depleted.filter((one) => offers.some((offer) => sameOffer(one, offer))).map(({ until }) => until);
  const where = zones.length > 0 ? listed(zones) : region;
  const verb = machineTypes.length === 1 ? 'is' : 'are';
  const until = Math.min(...times);
  const again = Number.isFinite(until) ? `, and not asked for again until ${text(until)}` : '';
  return `${spot ? 'spot ' : ''}${listed(machineTypes)} of pool ${name} in ${where} ${verb} sold out${again}`;
}
