import { isDeepStrictEqual } from 'node:util';
import type { DesiredPool } from '../../api/pools.ts';
import type { SizeChange } from '../../burst/nodes/model.ts';
import type { DecidedSize } from '../../capacity/desired-sizes.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';

/** Reasons for a new size of a pool. */
interface Grounds {
  readonly pool: Pick<DesiredPool, 'name' | 'count' | 'sizedBy'>;
  /** Stored size; undefined: none. */
  readonly known: DecidedSize | undefined;
  /** Growth, or surplus that is no longer requested. */
  readonly grown: SizeChange | undefined;
  /** Present size in the cloud when named nodes left and others replaced them. Absent: none. */
  readonly replaced?: number | undefined;
  /** Names of empty nodes to remove. */
  readonly gone: readonly string[];
  /** Names of nodes that are recorded as leaving and still exist. */
  readonly leaving: readonly string[];
  /** Names of nodes that are recorded as leaving and will not be removed. */
  readonly spared: readonly string[];
  /** Memory about its nodes. */
  readonly memory: PoolMemory;
}

/** Size of a pool to store, without the time of the decision. */
interface PoolDecision {
  readonly size: Omit<DecidedSize, 'at'>;
  /** Names of leaving nodes that stay because the pool grows. */
  readonly revived: readonly string[];
}

/**
 * Size to store for a pool; undefined: no change. Also stores sizes that result from minimum, maximum or floor: when
 * these change, nodes leave one by one when unneeded, not all at once. Pure.
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
  // A node that has not left yet can stay.
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
