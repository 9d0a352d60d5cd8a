import { isDeepStrictEqual } from 'node:util';
import type { DesiredPool } from '../../api/pools.ts';
import type { SizeChange } from '../../burst/nodes/model.ts';
import type { DecidedSize } from '../../capacity/desired-sizes.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';

/** What speaks for another size of a pool. */
interface Grounds {
  readonly pool: Pick<DesiredPool, 'name' | 'count' | 'sizedBy'>;
  /** What is stored; undefined: nothing. */
  readonly known: DecidedSize | undefined;
  /** What is to be bought, or not to be asked for any more. */
  readonly grown: SizeChange | undefined;
  /** Nodes that its cloud is asked for still, though those that were to leave are gone: others took their place. Absent: none did. */
  readonly replaced?: number | undefined;
  /** Names of nodes that are empty and go. */
  readonly gone: readonly string[];
  /** Names of nodes that are stored as leaving, and are there still. */
  readonly leaving: readonly string[];
  /** Names of nodes that are stored as leaving, and that nobody takes away any more. */
  readonly spared: readonly string[];
  /** What is known of its nodes now. */
  readonly memory: PoolMemory;
}

/** What is to be stored of a pool, but for when it was decided. */
interface PoolDecision {
  readonly size: Omit<DecidedSize, 'at'>;
  /** Names of nodes that were to leave and may stay, since the pool grows. */
  readonly revived: readonly string[];
}

/**
 * What is to be written down of a pool; undefined: nothing new. What a minimum, a maximum or a floor made of its size is written down, too:
 * when that ends, nodes go because nobody needs them, one by one, and not all at once by a deadline. Pure.
 */
export function decisionOf({
  pool,
  known,
  grown,
  replaced,
  gone,
  leaving,
  spared,
  memory,
}: Grounds): PoolDecision | undefined {
  // Who goes still and is not gone yet may as well stay.
  const revived = grown ? leaving.slice(0, Math.max(0, grown.count - pool.count)) : [];
  const left = [...leaving.filter((name) => !revived.includes(name)), ...gone];
  const count = grown?.count ?? (replaced ?? pool.count) - gone.length;
  const isSpared = known?.leaving?.some((name) => spared.includes(name)) === true;
  const isAdopted = known ? known.count !== pool.count : pool.count > 0;
  const isLearned = !isDeepStrictEqual(memory, known?.memory ?? {}) && known !== undefined;
  if (!grown && replaced === undefined && gone.length === 0 && !isSpared && !isAdopted && !isLearned) return undefined;
  const why =
    grown?.why ??
    (gone.length === 0 && replaced !== undefined
      ? 'the cloud replaced a node that was being removed'
      : gone.length > 0
        ? `nobody needs ${gone.join(', ')} any more`
        : isAdopted
          ? adopted(pool)
          : (known?.why ?? ''));
  const isSame = known?.count === count && !grown && gone.length === 0;
  const size = {
    count,
    by: isSame ? known.by : 'Coppice',
    why,
    ...(left.length > 0 && { leaving: left }),
    ...((known?.memory || Object.keys(memory).length > 0) && { memory }),
  };
  return { size, revived };
}

const adopted = ({ sizedBy }: Grounds['pool']): string =>
  sizedBy === 'floor' ? 'raised to the floor that spec.dataPlaneNodes says' : 'within its minimum and maximum';
