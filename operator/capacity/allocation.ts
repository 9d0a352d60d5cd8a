import { shortHash } from '../api/names.ts';

/**
 * A part of a pool that is requested as one: nodes of one machine type in the same zones. A pool is one part, unless
 * its first choice was sold out when nodes were needed and some nodes are of another choice. Providers see each part as
 * a pool.
 */
export interface PoolPart {
  /** The pool's own name for its first choice; otherwise unique in the cluster and at most 12 characters. */
  readonly name: string;
  readonly machineType: string;
  readonly zones: readonly string[];
  readonly count: number;
}

/** A part that was requested before. */
export interface HeldPart extends PoolPart {
  /** Nodes that exist; absent: they cannot be counted now. */
  readonly running?: number | undefined;
}

/** The fields of a pool that allocation reads. */
interface PoolWish {
  readonly name: string;
  /** In order of preference; at least one. */
  readonly machineTypes: readonly string[];
  /** Empty in a region without zones. */
  readonly zones: readonly string[];
  readonly count: number;
}

/** Which offers are available now. */
export interface OfferAvailability {
  /** Whether the last attempt to fill the part of this name failed. */
  isShort(part: string): boolean;
  isDepleted(machineType: string, zone: string): boolean;
  /** Whether the cloud reclaimed a spot machine of this offer recently. */
  wasInterrupted(machineType: string, zone: string): boolean;
}

/** How a pool is divided into parts. */
interface Allocation {
  readonly parts: readonly PoolPart[];
  /** Nodes for which no permitted offer is left: they stay requested from the part that had them last. */
  readonly lacking: number;
}

const SUFFIX = 4;
const ROOM = 12 - SUFFIX - 1;

/** Name of the part of a pool with this machine type and these zones. */
export function partName(
  { name, machineTypes, zones }: PoolWish,
  machineType: string,
  partZones: readonly string[],
): string {
  if (machineType === machineTypes[0] && partZones.length === zones.length) return name;
  const hash = shortHash(JSON.stringify([name, machineType, [...partZones].sort()])).slice(0, SUFFIX);
  return `${name.slice(0, ROOM).replace(/-+$/, '')}-${hash}`;
}

/** The previously requested part, if the pool's spec still permits it. Pure. */
function partOf(wish: PoolWish, held: HeldPart): HeldPart | undefined {
  const preferred = wish.machineTypes[0]!;
  if (held.name === wish.name) return { ...held, machineType: preferred, zones: wish.zones };
  if (!wish.machineTypes.includes(held.machineType) || !held.zones.every((zone) => wish.zones.includes(zone)))
    return undefined;
  return held.name === partName(wish, held.machineType, held.zones) ? held : undefined;
}

/**
 * Divides a pool among the available offers. Pure. Running nodes stay where they are, whatever has become available
 * since. Nodes that a part could not get, and nodes added to the pool, go to the first offer that is not depleted: the
 * remaining zones of the preferred machine type, then the next machine type. Shrinking starts with the least preferred
 * part.
 * @param held parts of all pools as requested last
 */
export function allocatePool(wish: PoolWish, held: readonly HeldPart[], market: OfferAvailability): Allocation {
  const before = held.flatMap((part) => partOf(wish, part) ?? []);
  const kept = new Map(before.map((part) => [part.name, { ...part, count: assured(part, market) }]));
  let missing = wish.count - sum(kept.values());
  if (missing < 0) {
    for (const part of ranked(wish, [...kept.values()]).reverse()) {
      const less = Math.min(part.count, -missing);
      kept.set(part.name, { ...part, count: part.count - less });
      missing += less;
    }
  }
  let lacking = 0;
  if (missing > 0) {
    const offer = bestOffer(wish, market);
    if (offer) add(kept, wish, offer, missing);
    else {
      lacking = missing;
      for (const part of before) missing -= restore(kept, part, missing);
      if (missing > 0) add(kept, wish, ranked(wish, before)[0] ?? preferredOf(wish), missing);
    }
  }
  const parts = ranked(
    wish,
    [...kept.values()].filter(({ count }) => count > 0),
  );
  // A pool without nodes keeps one part, so that autoscalers and people see it.
  const none: PoolPart = { ...preferredOf(wish), name: wish.name, count: 0 };
  return { parts: parts.length > 0 ? parts.map(plain) : [none], lacking };
}

/** Nodes that a part certainly has: all, unless it is known to be short. */
function assured({ name, count, running }: HeldPart, market: OfferAvailability): number {
  return running !== undefined && running < count && market.isShort(name) ? running : count;
}

const plain = ({ name, machineType, zones, count }: PoolPart): PoolPart => ({ name, machineType, zones, count });

type Machines = Pick<PoolPart, 'machineType' | 'zones'>;

const preferredOf = ({ machineTypes, zones }: PoolWish): Machines => ({ machineType: machineTypes[0]!, zones });

/** The offer for a pool's next node; undefined: no permitted offer is left. Pure. */
export function bestOffer(wish: Pick<PoolWish, 'machineTypes' | 'zones'>, market: Market): Machines | undefined {
  const there = offersOf(wish, market);
  return there.find((one) => !isInterrupted(one, market)) ?? there[0];
}

/** The availability that decides the offer of the next node. */
type Market = Pick<OfferAvailability, 'isDepleted' | 'wasInterrupted'>;

/**
 * Whether spot machines were reclaimed in every remaining zone; the cloud itself avoids a single affected zone. Pure.
 */
export const isInterrupted = ({ machineType, zones }: Machines, { wasInterrupted }: Pick<Market, 'wasInterrupted'>) =>
  zonesOf(zones).every((zone) => wasInterrupted(machineType, zone));

/** Offers of a pool, by machine type in order of preference, each in the zones that are not depleted. */
const offersOf = ({ machineTypes, zones }: Pick<PoolWish, 'machineTypes' | 'zones'>, market: Market): Machines[] =>
  machineTypes.flatMap((machineType): Machines[] => {
    const left = zonesOf(zones).filter((zone) => !market.isDepleted(machineType, zone));
    return left.length > 0 ? [{ machineType, zones: zones.length > 0 ? left : zones }] : [];
  });

/** Zones as offers name them: a region without zones has one, with an empty name. */
const zonesOf = (zones: readonly string[]): readonly string[] => (zones.length > 0 ? zones : ['']);

function add(kept: Map<string, HeldPart>, wish: PoolWish, { machineType, zones }: Machines, count: number): void {
  const name = partName(wish, machineType, zones);
  const there = kept.get(name);
  kept.set(name, { name, machineType, zones, count: count + (there?.count ?? 0) });
}

/** Requests a part again as before, so that nothing changes while no offer is available. @returns nodes restored */
function restore(kept: Map<string, HeldPart>, before: HeldPart, most: number): number {
  const part = kept.get(before.name)!;
  const more = Math.min(most, before.count - part.count);
  kept.set(part.name, { ...part, count: part.count + more });
  return more;
}

/** Sorted by preference; parts of one machine type with more zones first. */
function ranked<T extends Machines & { name?: string }>({ machineTypes }: PoolWish, parts: readonly T[]): T[] {
  const rank = ({ machineType }: Machines) => machineTypes.indexOf(machineType);
  return parts.toSorted(
    (a, b) => rank(a) - rank(b) || b.zones.length - a.zones.length || (a.name ?? '').localeCompare(b.name ?? ''),
  );
}

const sum = (parts: Iterable<{ count: number }>): number => [...parts].reduce((total, { count }) => total + count, 0);
