import type { NormalPool } from '../api/pools.ts';

/** Machines that a place may or may not have. */
export interface Offer {
  readonly profile: string;
  readonly region: string;
  /** Empty in a region without zones. */
  readonly zone: string;
  readonly machineType: string;
  readonly spot: boolean;
}

/** An offer without capacity at the last attempt, or with a spot machine that the cloud reclaimed. */
export interface DepletedOffer extends Offer {
  /** Milliseconds since the epoch: until then other offers are preferred. */
  readonly until: number;
  /**
   * The cloud reclaimed a machine. The offer may have others, so it is used when no other will do. Absent: the offer
   * had no capacity.
   */
  readonly interrupted?: true;
  /**
   * Reported by nodes of a cluster in this namespace, which its owner can write: counts for that namespace alone.
   * Absent: reported by the cloud, counts for all.
   */
  readonly namespace?: string | undefined;
}

/** An attempt of a cluster that the place had no capacity for. */
export interface Try extends Omit<Offer, 'zone'> {
  /** Name of the requested part of a pool; see PoolPart. */
  readonly part: string;
  readonly zones: readonly string[];
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly until: number;
  /** The part is complete since, or gone. */
  readonly over: boolean;
}

/** What is known of depleted offers at a decision; plain data. */
export interface KnownCapacity {
  readonly depleted: readonly DepletedOffer[];
  /** Attempts of the cluster in question, oldest first. */
  readonly tries: readonly Try[];
}

export const NOTHING_DEPLETED: KnownCapacity = { depleted: [], tries: [] };

/** The depleted offers that count in a namespace. Pure. */
export const countingIn = (depleted: readonly DepletedOffer[], namespace: string | undefined): DepletedOffer[] =>
  depleted.filter((known) => known.namespace === undefined || known.namespace === namespace);

/** Whether an offer had no capacity recently. Pure. */
const isDepleted = ({ depleted }: Pick<KnownCapacity, 'depleted'>, offer: Offer, now: Date): boolean =>
  depleted.some((known) => !known.interrupted && known.until > +now && sameOffer(known, offer));

/** Whether a spot machine of an offer was reclaimed recently. Pure. */
const wasInterrupted = ({ depleted }: Pick<KnownCapacity, 'depleted'>, offer: Offer, now: Date): boolean =>
  depleted.some((known) => known.interrupted === true && known.until > +now && sameOffer(known, offer));

/** Availability of spot or on-demand machines in a place. Pure. */
export const marketFor = (
  place: Pick<Offer, 'profile' | 'region' | 'spot'>,
  capacity: Pick<KnownCapacity, 'depleted'>,
  now: Date,
) => ({
  isDepleted: (machineType: string, zone: string) => isDepleted(capacity, { ...place, machineType, zone }, now),
  wasInterrupted: (machineType: string, zone: string) => wasInterrupted(capacity, { ...place, machineType, zone }, now),
});

export const sameOffer = (one: Offer, other: Offer): boolean =>
  one.zone === other.zone &&
  one.machineType === other.machineType &&
  one.spot === other.spot &&
  one.region === other.region &&
  one.profile === other.profile;

/** Machine types permitted for a pool, in order of preference; empty when none is named. */
export const machineTypesOf = ({
  machineType,
  alternatives,
}: Pick<NormalPool, 'machineType' | 'alternatives'>): string[] =>
  machineType === undefined ? [] : [machineType, ...alternatives];
