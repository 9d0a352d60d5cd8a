import type { CloudPool } from '../../../providers/cloud.ts';
import { findCondition } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { profileNameOf } from '../../api/workercluster.ts';
import { allocatePool, type HeldPart, type OfferAvailability, type PoolPart } from '../../capacity/allocation.ts';
import { capacityCondition, type DividedPool } from '../../capacity/condition.ts';
import { type KnownCapacity, machineTypesOf, marketFor, NOTHING_DEPLETED, type Try } from '../../capacity/offers.ts';
import type { Node } from '../../kube/resources.ts';
import { conditionBefore, type Said } from '../conditions.ts';
import { wasBegun } from '../managed/wish.ts';
import type { Resolved, SizedView, WorkerClusterView } from './view.ts';

const ZONE = 'topology.kubernetes.io/zone';

/** Divides the pools among available offers; see allocate. Pure. */
export function dividePools(
  view: SizedView,
  region: string | undefined,
  now: Date,
): { pools: DesiredPool[]; divided: DividedPool[] } {
  const capacity = view.capacity ?? NOTHING_DEPLETED;
  const held = heldParts(view, capacity);
  const whole = view.sizes.map((pool) => {
    const machineTypes = machineTypesOf(pool);
    const [machineType] = machineTypes;
    // Without a machine type the spec is refused.
    if (machineType === undefined) return { pools: [pool], divided: [] };
    const wish = { name: pool.name, machineTypes, zones: pool.zones, count: pool.count };
    const { parts, lacking } = allocatePool(wish, held, marketOf(view, capacity, pool, region ?? '', now));
    return {
      pools: parts.map((part, index) => asPool(pool, part, parts, index)),
      divided: [{ pool: pool.name, machineType, parts, lacking }],
    };
  });
  return { pools: whole.flatMap(({ pools }) => pools), divided: whole.flatMap((one) => one.divided) };
}

function marketOf(
  { cluster }: WorkerClusterView,
  capacity: KnownCapacity,
  { spot }: DesiredPool,
  region: string,
  now: Date,
): OfferAvailability {
  const profile = profileNameOf(cluster);
  const here = capacity.tries.filter((known) => !known.over && known.profile === profile && known.region === region);
  return {
    isShort: (part) => here.some((known) => known.part === part),
    ...marketFor({ profile, region, spot }, capacity, now),
  };
}

/** A part as a pool of its own. In an autoscaled pool only the last part grows: the others are exhausted. */
function asPool(pool: DesiredPool, part: PoolPart, parts: readonly PoolPart[], index: number): DesiredPool {
  const { name, machineType, count } = part;
  const labels = name === pool.name ? pool.labels : { ...pool.labels, [LABELS.alternativeOf]: pool.name };
  const own = { ...pool, name, machineType, zones: [...part.zones], count, labels };
  if (parts.length === 1) return own;
  const minimum = Math.min(pool.minimum, count);
  const others = parts.reduce((total, other) => total + (other === part ? 0 : other.count), 0);
  return { ...own, minimum, maximum: index === parts.length - 1 ? Math.max(count, pool.maximum - others) : count };
}

/**
 * Last requested nodes by pool, as the sum of its parts; without pools sized by a cloud's autoscaler. undefined:
 * something exists, and the request is unknown.
 */
export function lastAsked({ shoot, managed, cluster }: WorkerClusterView): ReadonlyMap<string, number> | undefined {
  const counts = new Map<string, number>();
  const add = (name: string, labels: Readonly<Record<string, string>> | undefined, count: number) => {
    const pool = labels?.[LABELS.alternativeOf] ?? name;
    counts.set(pool, (counts.get(pool) ?? 0) + count);
  };
  if (shoot) {
    for (const { name, labels, minimum } of shoot.spec.provider.workers ?? []) add(name, labels, minimum);
    return counts;
  }
  if (!managed?.pools) return managed?.exists || wasBegun(cluster) ? undefined : counts;
  // A sleeping cluster's zero nodes are nobody's decision.
  for (const { name, labels, desired } of managed.pools) if (desired) add(name, labels, desired);
  return counts;
}

/** Last request, with its existing nodes. */
function heldParts({ shoot, managed }: WorkerClusterView, { tries }: KnownCapacity): HeldPart[] {
  if (shoot) {
    const { status, spec } = shoot;
    const isSeen = findCondition(status?.conditions, 'EveryNodeReady')?.reason !== 'NotObserved';
    return (spec.provider.workers ?? []).map(({ name, machine, zones = [], minimum }) => {
      const running = isSeen ? status?.workers?.find((worker) => worker.name === name)?.current : undefined;
      return { name, machineType: machine.type, zones, count: minimum, running };
    });
  }
  return (managed?.pools ?? []).map((pool) => ({
    name: pool.name,
    machineType: pool.machineType,
    zones: pool.zones,
    count: pool.desired ?? pool.minimum,
    running: runningIn(pool, managed, tries),
  }));
}

function runningIn(pool: CloudPool, managed: WorkerClusterView['managed'], tries: readonly Try[]): number | undefined {
  // Before its first completion nothing can run on its nodes.
  if (!managed?.outputs) return 0;
  if (!managed.inside) return undefined;
  const nodes = managed.inside.nodes.filter((node) => node.metadata.labels?.[LABELS.pool] === pool.name);
  const short = tries.find((known) => !known.over && known.part === pool.name)?.zones ?? [];
  const inZone = (zone: string) => nodes.filter((node: Node) => node.metadata.labels?.[ZONE] === zone).length;
  // In a pool with equal numbers per zone, the sold-out zone limits the size.
  const least =
    short.length > 0 && short.length < pool.zones.length
      ? Math.min(...short.map(inZone)) * pool.zones.length
      : Infinity;
  return Math.min(nodes.length, least);
}

/** Other consequences of sold-out offers. Pure. */
export function capacityConditionOf(
  view: WorkerClusterView,
  { divided: pools, mode, region = '' }: Pick<Resolved, 'divided' | 'mode' | 'region'>,
  now: Date,
): { moves: boolean; lookAgainAt?: Date; filled: string[]; condition: Said<'WorkerCluster'> | undefined } {
  const { cluster, managed, elsewhere } = view;
  const capacity = view.capacity ?? NOTHING_DEPLETED;
  const profile = profileNameOf(cluster);
  const isLacking = pools.some(({ lacking }) => lacking > 0);
  // A completed cluster may contain people's work: it stays in its place.
  const isMovable = mode === 'Managed' && !managed?.outputs && elsewhere !== undefined;
  const moves = isMovable && (isLacking || elsewhere.decided);
  const waits = capacity.depleted
    .filter((known) => known.profile === profile && known.region === region && known.until > +now)
    .map(({ until }) => until);
  const held = heldParts(view, capacity);
  const parts = pools.flatMap((pool) => pool.parts);
  // A decision shows in the held parts a moment later: until then the part is as short as before.
  const isOver = (name: string): boolean => {
    const before = held.find((part) => part.name === name);
    const wanted = parts.find((part) => part.name === name)?.count;
    if (!before) return wanted === undefined;
    return before.running !== undefined && before.running >= Math.max(before.count, wanted ?? 0);
  };
  return {
    moves,
    ...(isLacking && !moves && waits.length > 0 && { lookAgainAt: new Date(Math.min(...waits)) }),
    filled: capacity.tries.map(({ part }) => part).filter(isOver),
    condition: capacityCondition(
      {
        pools,
        tries: capacity.tries,
        place: { profile, region },
        isFull: parts.every(({ name }) => isOver(name)),
        goingTo: moves ? elsewhere.name : undefined,
      },
      conditionBefore('WorkerCluster', cluster.status?.conditions, 'CapacityAvailable'),
    ),
  };
}
