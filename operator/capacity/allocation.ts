import { shortHash } from '../api/names.ts';

/**
 * What of a pool is asked for at once: nodes of one machine type in the same zones. A pool is one part, unless it has nodes of its
 * first choice and some of another, because the first was sold out when they were needed. To a provider each part is a pool.
 */
export interface PoolPart {
  /** The pool's own name for its first choice; unique in the cluster, and no longer than 12 characters for any other. */
  readonly name: string;
  readonly machineType: string;
  readonly zones: readonly string[];
  readonly count: number;
}

/** A part that was asked for before. */
export interface HeldPart extends PoolPart {
  /** Nodes that it has; absent: nobody can see them now. */
  readonly running?: number | undefined;
}

/** What of a pool matters here. */
export interface PoolWish {
  readonly name: string;
  /** The preferred one first; at least one. */
  readonly machineTypes: readonly string[];
  /** Empty where the region has none. */
  readonly zones: readonly string[];
  readonly count: number;
}

/** What there is to be bought now. */
export interface OfferAvailability {
  /** Whether the part of this name could not be filled when it was tried last. */
  isShort(part: string): boolean;
  isDepleted(machineType: string, zone: string): boolean;
  /** Whether its cloud took a spot machine of it away a moment ago. */
  wasInterrupted(machineType: string, zone: string): boolean;
}

/** How a pool is divided. */
interface Allocation {
  readonly parts: readonly PoolPart[];
  /** Nodes for which nothing is left that the pool may have: they go on being asked for where they were last. */
  readonly lacking: number;
}

const SUFFIX = 4;
const ROOM = 12 - SUFFIX - 1;

/** The name of the part of a pool with these machines. */
export function partName(
  { name, machineTypes, zones }: PoolWish,
  machineType: string,
  partZones: readonly string[],
): string {
  if (machineType === machineTypes[0] && partZones.length === zones.length) return name;
  const hash = shortHash(JSON.stringify([name, machineType, [...partZones].sort()])).slice(0, SUFFIX);
  return `${name.slice(0, ROOM).replace(/-+$/, '')}-${hash}`;
}

/** The part of a pool that was asked for under this name, if it may still be had: people may have taken it off the list. Pure. */
function partOf(wish: PoolWish, held: HeldPart): HeldPart | undefined {
  const preferred = wish.machineTypes[0]!;
  if (held.name === wish.name) return { ...held, machineType: preferred, zones: wish.zones };
  if (!wish.machineTypes.includes(held.machineType) || !held.zones.every((zone) => wish.zones.includes(zone)))
    return undefined;
  return held.name === partName(wish, held.machineType, held.zones) ? held : undefined;
}

/**
 * Divides a pool among what is to be had, pure. Nodes that run stay where they are, whatever has become available since. What a part
 * could not get goes to the first offer that is not depleted: the zones that are left of the best machine type, then the next
 * machine type. So does what the pool grows by. It shrinks from its last choice up.
 * @param held parts of all pools as they were asked for last
 */
export function allocate(wish: PoolWish, held: readonly HeldPart[], market: OfferAvailability): Allocation {
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
  // A pool without nodes is there all the same: autoscalers and people see it.
  const none: PoolPart = { ...preferredOf(wish), name: wish.name, count: 0 };
  return { parts: parts.length > 0 ? parts.map(plain) : [none], lacking };
}

/** How many of its nodes a part has for sure: all, unless it is known to be short. */
function assured({ name, count, running }: HeldPart, market: OfferAvailability): number {
  return running !== undefined && running < count && market.isShort(name) ? running : count;
}

const plain = ({ name, machineType, zones, count }: PoolPart): PoolPart => ({ name, machineType, zones, count });

type Machines = Pick<PoolPart, 'machineType' | 'zones'>;

const preferredOf = ({ machineTypes, zones }: PoolWish): Machines => ({ machineType: machineTypes[0]!, zones });

/** What a pool's next node would be of; undefined: nothing is left that it may have. Pure. */
export function bestOffer(wish: Pick<PoolWish, 'machineTypes' | 'zones'>, market: Market): Machines | undefined {
  const there = offersOf(wish, market);
  return there.find((one) => !isInterrupted(one, market)) ?? there[0];
}

/** What of a market decides what the next node is of. */
type Market = Pick<OfferAvailability, 'isDepleted' | 'wasInterrupted'>;

/** Whether machines were taken away in all of the zones that are left: where one is not hit the cloud finds it by itself. Pure. */
export const isInterrupted = ({ machineType, zones }: Machines, { wasInterrupted }: Pick<Market, 'wasInterrupted'>) =>
  zonesOf(zones).every((zone) => wasInterrupted(machineType, zone));

/** Machine types in the zones that have some, the preferred one first. */
const offersOf = ({ machineTypes, zones }: Pick<PoolWish, 'machineTypes' | 'zones'>, market: Market): Machines[] =>
  machineTypes.flatMap((machineType): Machines[] => {
    const left = zonesOf(zones).filter((zone) => !market.isDepleted(machineType, zone));
    return left.length > 0 ? [{ machineType, zones: zones.length > 0 ? left : zones }] : [];
  });

/** As offers name them: the one of a region without zones is empty. */
const zonesOf = (zones: readonly string[]): readonly string[] => (zones.length > 0 ? zones : ['']);

function add(kept: Map<string, HeldPart>, wish: PoolWish, { machineType, zones }: Machines, count: number): void {
  const name = partName(wish, machineType, zones);
  const there = kept.get(name);
  kept.set(name, { name, machineType, zones, count: count + (there?.count ?? 0) });
}

/** Asks again for what a part was asked for before, so that nothing changes while nothing is to be had. @returns how much. */
function restore(kept: Map<string, HeldPart>, before: HeldPart, most: number): number {
  const part = kept.get(before.name)!;
  const more = Math.min(most, before.count - part.count);
  kept.set(part.name, { ...part, count: part.count + more });
  return more;
}

/** In order of preference; parts of one machine type with more zones first. */
function ranked<T extends Machines & { name?: string }>({ machineTypes }: PoolWish, parts: readonly T[]): T[] {
  const rank = ({ machineType }: Machines) => machineTypes.indexOf(machineType);
  return parts.toSorted(
    (a, b) => rank(a) - rank(b) || b.zones.length - a.zones.length || (a.name ?? '').localeCompare(b.name ?? ''),
  );
}

const sum = (parts: Iterable<{ count: number }>): number => [...parts].reduce((total, { count }) => total + count, 0);
