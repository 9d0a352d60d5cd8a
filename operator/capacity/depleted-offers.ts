import { countingIn, type DepletedOffer, type KnownCapacity, type Offer, sameOffer, type Try } from './offers.ts';

const MINUTE = 60_000;

/**
 * How long an offer that had nothing is left alone the first time; what Karpenter takes (UnavailableOfferingsTTL in
 * pkg/cache/unavailableofferings.go of aws/karpenter-provider-aws).
 */
const FIRST_MS = 3 * MINUTE;
/** Each further time in a row twice as long, up to this: a try in a cloud is a run of the programs. */
const LONGEST_MS = 30 * MINUTE;
/** After so long without a word of it, an offer is like one that was never depleted. */
const FORGOTTEN_MS = 60 * MINUTE;
/** A place that a cluster has left is not gone back to before: what was half made there takes as long to make again. */
const LEFT_MS = 30 * MINUTE;
/** Of one cluster, so many tries are told. */
const MOST_TRIES = 12;
/** Of more offers, of clouds or of one namespace, the one that was heard of longest ago is forgotten: that costs one more try. */
const MOST_OFFERS = 1_000;
/** Of more nodes that were taken away, those are forgotten that were seen longest ago. */
const MOST_TAKEN = 20_000;

/** A try as whoever made it tells it. */
type ToldTry = Omit<Try, 'at' | 'until' | 'over'>;

/** Who decides something: the metadata of a cluster, or of what makes clusters in its namespace. */
interface Decider {
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
}

/** What nodes say of spot machines. */
interface ToldByNodes {
  /** Of their cluster. */
  readonly namespace: string | undefined;
  /** UIDs of the nodes, each of which is news once, however long it stays. Absent: this is news. */
  readonly taken?: readonly string[];
}

/**
 * What the operator remembers of offers that had no machines left, or lost some, of all clusters: what one has met, others need not. In
 * memory only: after a restart it costs one more try each.
 */
export class DepletedOffers {
  readonly #now: () => Date;
  #offers: (DepletedOffer & { readonly times: number })[] = [];
  /** UIDs of nodes that were taken away, those last that were seen last. */
  readonly #taken = new Set<string>();
  /** By UID of the cluster. */
  readonly #tries = new Map<string, readonly Try[]>();
  /** By UID of the cluster: places that it has left, and until when it does not go back there. */
  readonly #left = new Map<string, ReadonlyMap<number, number>>();

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** What is known, for a decision about this cluster, or for its namespace. */
  known({ namespace, uid = '' }: Decider): KnownCapacity {
    return { depleted: countingIn(this.#offers, namespace), tries: this.#tries.get(uid) ?? [] };
  }

  /** @returns whether it is news: the same again before its time is over is none. */
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
   * A cloud takes a spot machine of this offer away. Whoever asks for another at once is likely to lose that as well; Karpenter does the same
   * (SpotInterruption in pkg/controllers/interruption of aws/karpenter-provider-aws). Whoever writes nodes of a cluster can say so of any: it is
   * remembered for that namespace alone.
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

  /** The parts have what they were asked for, or are no more: what was tried for them is history. */
  settle(cluster: string, isOver: (known: Try) => boolean): void {
    const tries = this.#tries.get(cluster);
    if (!tries?.some((known) => !known.over && isOver(known))) return;
    this.#tries.set(
      cluster,
      tries.map((known) => (known.over || !isOver(known) ? known : { ...known, over: true })),
    );
  }

  /** The cluster has left the place of this number. */
  left(cluster: string, place: number): void {
    if (this.leftPlaces(cluster).has(place)) return;
    const until = +this.#now() + LEFT_MS;
    this.#left.set(cluster, new Map([...(this.#left.get(cluster) ?? []), [place, until]]));
  }

  /** Numbers of the places that the cluster does not go to for now. */
  leftPlaces(cluster: string): ReadonlySet<number> {
    const now = +this.#now();
    const left = [...(this.#left.get(cluster) ?? [])].filter(([, until]) => until > now);
    return new Set(left.map(([place]) => place));
  }

  /** The cluster is no more. */
  forget(cluster: string): void {
    this.#tries.delete(cluster);
    this.#left.delete(cluster);
  }

  /** @returns until when. */
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
