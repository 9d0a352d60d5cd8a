import { findCondition } from '../../api/conditions.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { type Holds, presentSize } from '../../capacity/desired-sizes.ts';
import { say } from '../conditions.ts';
import { lastAsked } from './capacity.ts';
import type { Asked, Resolved, Said, SizedView } from './view.ts';

const TYPE = 'SizeDecided';

/** Pools that somebody other than a person may size. */
export const decidablePools = (sizes: readonly DesiredPool[]): DesiredPool[] =>
  sizes.filter(({ sizedBy, minimum, maximum }) => sizedBy !== 'person' && maximum > minimum);

/**
 * Whether what was decided is unknown, and so is what the pools have: then nothing is asked for, or what was decided would be taken back.
 */
export const mayTakeBack = (view: SizedView): boolean =>
  view.decided === 'unknown' && decidablePools(view.sizes).length > 0 && lastAsked(view) === undefined;

/** What is said of sizes that were decided, and what holds them back; undefined: none was, or a person fixed them all. Pure. */
export function sizeCondition(view: SizedView, { divided }: Resolved, { overQuota }: Asked): Said | undefined {
  const { decided = 'none', sizes } = view;
  if (decided === 'none') return undefined;
  if (decided === 'unknown') {
    const names = decidablePools(sizes).map(({ name }) => name);
    if (names.length === 0) return undefined;
    const message = `what was decided for pools ${names.join(', ')} cannot be read: each keeps the nodes that it has. Restore the record in the operator's namespace, or delete it`;
    return say(TYPE, 'Unknown', 'RecordUnreadable', message);
  }
  const pools = sizes.filter(({ sizedBy }) => sizedBy === 'decider');
  if (pools.length === 0) return undefined;
  const asked = overQuota ? lastAsked(view) : undefined;
  const holds: Holds = {
    asleep: view.asleep,
    refused: overQuota ? (pool) => asked?.get(pool) : undefined,
    lacking: (pool) => divided.find((known) => known.pool === pool)?.lacking ?? 0,
    rolling: findCondition(view.shoot?.status?.conditions, 'Rolling')?.status === 'True',
  };
  const words = pools.map((pool) => {
    const { by, why } = decided.get(pool.name)!;
    const { present, heldBy } = presentSize(pool, holds);
    const held = heldBy.length > 0 ? `; ${present} at present, held by ${heldBy.join(', ')}` : '';
    return `pool ${pool.name}: ${pool.count} nodes, decided by ${by} (${why})${held}`;
  });
  return say(TYPE, true, 'Decided', words.join('. '));
}
