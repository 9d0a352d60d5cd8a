import type { NormalPool } from '../api/pools.ts';

/** Machines that a place may have or not. */
export interface Offer {
  readonly profile: string;
  readonly region: string;
  /** Empty where the region has none. */
  readonly zone: string;
  readonly machineType: string;
  readonly spot: boolean;
}

/** An offer that had nothing when it was asked for last, or of which its cloud took a spot machine away. */
export interface DepletedOffer extends Offer {
  /** Milliseconds since the epoch: until then it is not asked for where something else will do. */
  readonly until: number;
  /** Its cloud took one away. It may have others: where nothing else will do, it is asked for all the same. Absent: it had nothing. */
  readonly interrupted?: true;
  /**
   * Nodes of a cluster of this namespace say so, and whoever owns them may: it counts for that namespace alone. Absent: a cloud said so,
   * for all.
   */
  readonly namespace?: string | undefined;
}

/** One try of a cluster that the place had no machines for. */
export interface Try extends Omit<Offer, 'zone'> {
  /** Name of the part of a pool that was asked for; see PoolPart. */
  readonly part: string;
  readonly zones: readonly string[];
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly until: number;
  /** The part has got its machines since, or is no more. */
  readonly over: boolean;
}

/** What is known of depleted offers when something is decided; plain data. */
export interface KnownCapacity {
  readonly depleted: readonly DepletedOffer[];
  /** Those of the cluster in question, oldest first. */
  readonly tries: readonly Try[];
}

export const NOTHING_DEPLETED: KnownCapacity = { depleted: [], tries: [] };

/** Of what is known, that which counts in a namespace. Pure. */
export const countingIn = (depleted: readonly DepletedOffer[], namespace: string | undefined): DepletedOffer[] =>
  depleted.filter((known) => known.namespace === undefined || known.namespace === namespace);

/** Whether an offer had nothing a short while ago. Pure. */
const isDepleted = ({ depleted }: Pick<KnownCapacity, 'depleted'>, offer: Offer, now: Date): boolean =>
  depleted.some((known) => !known.interrupted && known.until > +now && sameOffer(known, offer));

/** Whether its cloud took a spot machine of an offer away a short while ago. Pure. */
const wasInterrupted = ({ depleted }: Pick<KnownCapacity, 'depleted'>, offer: Offer, now: Date): boolean =>
  depleted.some((known) => known.interrupted === true && known.until > +now && sameOffer(known, offer));

/** What is known of machines of one kind in a place. Pure. */
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

/** Machine types that a pool may have, the preferred one first; empty when none is named anywhere. */
export const machineTypesOf = ({
  machineType,
  alternatives,
}: Pick<NormalPool, 'machineType' | 'alternatives'>): string[] =>
  machineType === undefined ? [] : [machineType, ...alternatives];
