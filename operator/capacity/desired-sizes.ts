import type { CloudProfile } from '../api/cloudprofile.ts';
import { type DesiredPool, type NormalPool, poolsOf, type SizedBy } from '../api/pools.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { PoolMemory } from './pool-memory.ts';

/** The size decided for one pool. */
export interface DecidedSize {
  /** Nodes, at least 0. */
  readonly count: number;
  /** The decider in a word, for messages. */
  readonly by: string;
  readonly why: string;
  /** RFC 3339: when this count was decided. Absent in receipts written before the field existed. */
  readonly at?: string;
  /** Names of nodes that shall be removed; `count` excludes them already. Absent: none. */
  readonly leaving?: readonly string[];
  /** Memory of the pool's nodes. Absent: none; a decision without it keeps the stored memory. */
  readonly memory?: PoolMemory;
}

/**
 * Sizes decided for a cluster's pools, by pool name. `unknown`: the receipt cannot be read now; this never means the
 * minimum.
 */
export type Decided = ReadonlyMap<string, DecidedSize> | 'none' | 'unknown';

/** Input of desiredSizes. */
export interface SizeInputs {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  /** Absent: none. */
  readonly decided?: Decided;
  /**
   * Nodes last requested for a pool, by name; undefined where the pool is new or sized by a cloud's autoscaler. Absent:
   * undefined for all pools.
   */
  readonly has?: (pool: string) => number | undefined;
}

/** What holds pools below their desired size at this moment. */
export interface Holds {
  /** Whether the cluster sleeps, and who decided it. */
  readonly asleep?: 'schedule' | 'sleep' | 'policy' | undefined;
  /** A quota refuses growth: nodes last requested for a pool, by name. */
  readonly refused?: ((pool: string) => number | undefined) | undefined;
  /** Nodes of a pool for which no permitted offer is left. */
  readonly lacking?: ((pool: string) => number) | undefined;
  /** Whether machines of the cluster are being rolled. */
  readonly rolling?: boolean | undefined;
}

/** Deciders of a pool's size. */
export type Say =
  | 'person'
  | 'floor'
  | 'decider'
  | 'minimum'
  | 'schedule'
  | 'sleep'
  | 'policy'
  | 'quota'
  | 'sold out'
  | 'roll-out';

interface Rule {
  readonly who: Say;
  /** When it decides, and the resulting size: for messages, and for docs/concepts/sizes.md. */
  readonly says: string;
  readonly because: string;
}

interface Decides extends Rule {
  /**
   * @param floor the pool's minimum as its share of a total for all pools. @returns undefined: the next decider is
   * asked
   */
  decide(pool: NormalPool, inputs: SizeInputs, floor?: number): { count: number; sizedBy: SizedBy } | undefined;
}

interface HoldsBack extends Rule {
  /** Nodes that the pool has while the hold applies; undefined: it does not apply. */
  hold(pool: DesiredPool, present: number, holds: Holds): number | undefined;
}

/** Deciders of a pool's desired size: the first with an answer wins. */
export const DECIDES: readonly Decides[] = [
  {
    who: 'person',
    says: 'Somebody wrote `spec.dataPlaneNodes`: the pools share that number, in the order written; not those with `autoscale: Coppice`.',
    because: 'A number that a person fixed belongs to that person.',
    decide: (pool, { cluster }) =>
      cluster.spec.dataPlaneNodes === undefined || isCoppices(pool)
        ? undefined
        : { count: pool.count, sizedBy: 'person' },
  },
  {
    who: 'floor',
    says: 'Somebody wrote `spec.dataPlaneNodes`, and all pools together have fewer nodes: pools with `autoscale: Coppice` get the missing ones, in the order written.',
    because: 'HPA and KEDA know what is needed, but not what else waits: their number is a minimum.',
    decide: (_pool, _inputs, floor) => (floor === undefined ? undefined : { count: floor, sizedBy: 'floor' }),
  },
  {
    who: 'decider',
    says: 'The pool has `autoscale: Coppice`, and a size is stored: the pool has that size, within its minimum and maximum. If the receipt cannot be read, the pool keeps its nodes.',
    because: 'A size that is unknown for a moment must not drain nodes.',
    decide(pool, { decided = 'none', has }) {
      if (decided === 'none' || !isCoppices(pool)) return undefined;
      const count = decided === 'unknown' ? has?.(pool.name) : decided.get(pool.name)?.count;
      if (count === undefined) return undefined;
      return { count: boundSize(pool, count), sizedBy: decided === 'unknown' ? 'kept' : 'decider' };
    },
  },
  {
    who: 'minimum',
    says: 'Nobody decided: the pool has its minimum; the autoscaler of a cloud may go up to its maximum.',
    because: 'Without a word the cheapest that was allowed is right.',
    decide: (pool) => ({ count: pool.count, sizedBy: 'minimum' }),
  },
];

/** Holds on a pool, applied in order: each lowers the result of those before it. None changes the desired size. */
export const HOLDS: readonly HoldsBack[] = [
  {
    who: 'schedule',
    says: 'A schedule of `spec.hibernation` has the cluster sleep: the pool has no nodes until it wakes.',
    because: 'It wakes to what was decided, so quotas go on counting that.',
    hold: (_pool, _present, { asleep }) => (asleep === 'schedule' ? 0 : undefined),
  },
  {
    who: 'sleep',
    says: '`spec.hibernation.enabled` has the cluster sleep: the pool has no nodes until it wakes.',
    because: 'It wakes to what was decided, so quotas go on counting that.',
    hold: (_pool, _present, { asleep }) => (asleep === 'sleep' ? 0 : undefined),
  },
  {
    who: 'policy',
    says: 'A BurstPolicy has a cluster of its own sleep until work needs it: the pool has no nodes until it wakes.',
    because: 'It wakes to what was decided, so quotas go on counting that.',
    hold: (_pool, _present, { asleep }) => (asleep === 'policy' ? 0 : undefined),
  },
  {
    who: 'quota',
    says: 'A quota does not let the cluster be as large: the pool keeps what it has, and shrinks if less was decided.',
    because: 'Half of a change may be of no use: a change is granted as a whole, or waits.',
    hold: ({ name }, present, { refused }) => (refused ? Math.min(present, refused(name) ?? 0) : undefined),
  },
  {
    who: 'sold out',
    says: 'Nothing is left that the pool may have: it has what could be had, and the rest is asked for again.',
    because: 'What was decided is still wanted when machines come back.',
    hold({ name }, present, { lacking }) {
      const short = lacking?.(name) ?? 0;
      return short > 0 ? Math.max(0, present - short) : undefined;
    },
  },
  {
    who: 'roll-out',
    says: 'Machines are replaced: one more than decided may be there for a moment, never fewer.',
    because: 'Replacing is no growth: who counts nodes must not decide by a machine on its way out.',
    hold: (_pool, present, { rolling }) => (rolling ? present : undefined),
  },
];

/**
 * Desired size of each pool of a cluster, with its decider. Pure. The only place where sizes are resolved: callers use
 * the view of the cluster, or call this with the same inputs.
 */
export function desiredSizes(inputs: SizeInputs): DesiredPool[] {
  const { dataPlaneNodes } = inputs.cluster.spec;
  const stated = poolsOf(inputs.cluster, inputs.profile);
  const pools = stated.map((pool) => asked(asMinimum(pool), inputs));
  if (dataPlaneNodes === undefined || !pools.some(isCoppices)) return pools;
  let lacking = dataPlaneNodes - pools.reduce((sum, { count }) => sum + count, 0);
  return pools.map((pool) => {
    const more = isCoppices(pool) ? Math.max(0, Math.min(lacking, pool.maximum - pool.count)) : 0;
    lacking -= more;
    return more > 0 ? asked(pool, inputs, pool.count + more) : pool;
  });
}

/** A pool's share of a total for all pools does not count as a count of its own. */
const asMinimum = (pool: NormalPool): NormalPool => (isCoppices(pool) ? { ...pool, count: pool.minimum } : pool);

function asked(pool: NormalPool, inputs: SizeInputs, floor?: number): DesiredPool {
  for (const rule of DECIDES) {
    const said = rule.decide(pool, inputs, floor);
    if (said) return { ...pool, ...said };
  }
  return { ...pool, sizedBy: 'minimum' };
}

/** Whether Coppice's own autoscaler decides the size of the pool. */
export const isCoppices = ({ autoscale }: { readonly autoscale?: string | undefined }): boolean =>
  autoscale === 'Coppice';

/** Present size of a pool under its holds, with the holds that apply. Pure. */
export function presentSize(pool: DesiredPool, holds: Holds): { present: number; heldBy: Say[] } {
  let present = pool.count;
  const heldBy: Say[] = [];
  for (const rule of HOLDS) {
    const left = rule.hold(pool, present, holds);
    if (left === undefined) continue;
    present = left;
    heldBy.push(rule.who);
  }
  return { present, heldBy };
}

/** Clamps a size to the pool's minimum and maximum. */
export const boundSize = ({ minimum, maximum }: Pick<NormalPool, 'minimum' | 'maximum'>, count: number): number =>
  Math.max(minimum, Math.min(maximum, count));
