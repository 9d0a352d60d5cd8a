import { countingIn, type DepletedOffer, type KnownCapacity, type Offer, sameOffer, type Try } from './offers.ts';

const MINUTE = 60_000;

/**
 * Time a depleted offer is avoided after its first failure; same as Karpenter's UnavailableOfferingsTTL
 * (pkg/cache/unavailableofferings.go of aws/karpenter-provider-aws).
 */
const FIRST_MS = 3 * MINUTE;
/** Doubled with each further failure in a row, up to this limit: an attempt in a cloud is a run of the programs. */
const LONGEST_MS = 30 * MINUTE;
/** After this long without news an offer counts as never depleted. */
const FORGOTTEN_MS = 60 * MINUTE;
/**
 * A cluster does not return to a place it left before this time: what was partly built there would have to be built
 * again.
 */
const LEFT_MS = 30 * MINUTE;
/** Attempts remembered per cluster. */
const MOST_TRIES = 12;
/**
 * Offers remembered per namespace, and for all clouds; beyond that the least recently updated is forgotten, which costs
 * one more attempt.
 */
const MOST_OFFERS = 1_000;
/** Reclaimed nodes remembered; beyond that the least recently seen are forgotten. */
const MOST_TAKEN = 20_000;

/** An attempt as its caller reports it. */
type ToldTry = Omit<Try, 'at' | 'until' | 'over'>;

/** Metadata of a cluster, or of an object that creates clusters in its namespace. */
interface Decider {
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
}

/** Reports of reclaimed spot machines from nodes. */
interface ToldByNodes {
  /** Namespace of their cluster. */
  readonly namespace: string | undefined;
  /** UIDs of the nodes; each counts once, however long it stays. Absent: the report counts. */
  readonly taken?: readonly string[];
}

/**
 * Offers without capacity, or with reclaimed machines, shared by all clusters: what one cluster has met, the others
 * need not try. In memory only: a restart costs one more attempt per offer.
 */
export class DepletedOffers {
  readonly #now: () => Date;
  #offers: (DepletedOffer & { readonly times: number })[] = [];
  /** UIDs of reclaimed nodes, the most recently seen last. */
  readonly #taken = new Set<string>();
  /** By UID of the cluster. */
  readonly #tries = new Map<string, readonly Try[]>();
  /** By UID of the cluster: places that it left, and until when it does not return to each. */
  readonly #left = new Map<string, ReadonlyMap<number, number>>();

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** What is known of offers, for a decision on this cluster or its namespace. */
  known({ namespace, uid = '' }: Decider): KnownCapacity {
    return { depleted: countingIn(this.#offers, namespace), tries: this.#tries.get(uid) ?? [] };
  }

  /** Records a failed attempt. @returns whether it is new: the same failure within its time is not */
  note(cluster: string, told: ToldTry): boolean {
    const now = +this.#now();
    const tries = this.#tries.get(cluster) ?? [];
    const same = (known: Try) =>
      known.part === told.part && known.profile === told.profile && known.region === told.region;
    if (tries.some((known) => same(known) && !known.over && known.until > now)) return false;
    const { profile, region, machineType, spot } = told;
    const zones = told.zones.length > 0 ? told.zones : [''];
    const until = Math.max(...zones.map((zone) => this.#deplete({ profile, region, zone, machineType, spot }, now)));
    this.#tries.set(
      cluster,
      [...tries.filter((known) => !same(known)), { ...told, at: now, until, over: false }].slice(-MOST_TRIES),
    );
    return true;
  }

  /**
   * Records that a cloud reclaims a spot machine of this offer. A replacement of the same offer is likely to be
   * reclaimed too; same as Karpenter's SpotInterruption (pkg/controllers/interruption of aws/karpenter-provider-aws).
   * Tenants who write nodes can report any offer, so their reports count for their own namespace alone.
   */
  interrupted(offer: Offer, { namespace, taken }: ToldByNodes): void {
    const isNews = !taken || taken.filter((node) => this.#isNews(node)).length > 0;
    if (isNews) this.#deplete({ ...offer, interrupted: true, namespace }, +this.#now());
  }

  #isNews(node: string): boolean {
    const isNews = !this.#taken.delete(node);
    this.#taken.add(node);
    const [oldest] = this.#taken;
    if (oldest !== undefined && this.#taken.size > MOST_TAKEN) this.#taken.delete(oldest);
    return isNews;
  }

  /** Marks attempts as over: the parts are complete or gone. */
  settle(cluster: string, isOver: (known: Try) => boolean): void {
    const tries = this.#tries.get(cluster);
    if (!tries?.some((known) => !known.over && isOver(known))) return;
    this.#tries.set(
      cluster,
      tries.map((known) => (known.over || !isOver(known) ? known : { ...known, over: true })),
    );
  }

  /** Records that the cluster has left the place of this number. */
  left(cluster: string, place: number): void {
    if (this.leftPlaces(cluster).has(place)) return;
    const until = +this.#now() + LEFT_MS;
    this.#left.set(cluster, new Map([...(this.#left.get(cluster) ?? []), [place, until]]));
  }

  /** Numbers of the places that the cluster avoids for now. */
  leftPlaces(cluster: string): ReadonlySet<number> {
    const now = +this.#now();
    const left = [...(this.#left.get(cluster) ?? [])].filter(([, until]) => until > now);
    return new Set(left.map(([place]) => place));
  }

  /** Forgets a deleted cluster. */
  forget(cluster: string): void {
    this.#tries.delete(cluster);
    this.#left.delete(cluster);
  }

  /** @returns until when the offer is depleted */
  #deplete(offer: Omit<DepletedOffer, 'until'>, now: number): number {
    const isAsTold = (known: DepletedOffer) =>
      known.interrupted === offer.interrupted && known.namespace === offer.namespace;
    const before = this.#offers.find((known) => isAsTold(known) && sameOffer(known, offer));
    if (before && before.until > now) return before.until;
    const times = before && before.until + FORGOTTEN_MS > now ? before.times + 1 : 1;
    const until = now + Math.min(LONGEST_MS, FIRST_MS * 2 ** (times - 1));
    const lasting = this.#offers.filter((known) => known !== before && known.until + FORGOTTEN_MS > now);
    const { alike = [], others = [] } = Object.groupBy(lasting, (known) => (isAsTold(known) ? 'alike' : 'others'));
    this.#offers = [...others, ...[...alike, { ...offer, until, times }].slice(-MOST_OFFERS)];
    return until;
  }
}
