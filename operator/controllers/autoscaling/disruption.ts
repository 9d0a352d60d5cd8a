import { ANNOTATIONS } from '../../api/group.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import { type Disruption, limitsOf } from '../../burst/nodes/budgets.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { isThere, isYoung } from './nodes-seen.ts';

/** Which nodes are missing for other reasons than that they are being emptied. */
interface Missing {
  /** Names of nodes that are to go by what is stored, by pool. */
  readonly leaving: ReadonlyMap<string, readonly string[]>;
  /** Names of nodes that a cloud takes away. */
  readonly interrupted: Pick<ReadonlySet<string>, 'has'>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * How many nodes of each pool may be missing at once, and are; pools are left out of which nobody says so. A node that is on its way up
 * counts neither as one that is there nor as one that is missing. Pure.
 * @returns also when a budget begins or ends to hold, milliseconds since the epoch
 */
export function disruptionsOf(
  pools: readonly Pick<WorkerPool, 'name' | 'disruption'>[],
  ofPool: ReadonlyMap<string, readonly Node[]>,
  { leaving, interrupted, now }: Missing,
): { disruptions: ReadonlyMap<string, Disruption>; changesAt: readonly number[] } {
  const disruptions = new Map<string, Disruption>();
  const changes: number[] = [];
  for (const { name: pool, disruption } of pools) {
    const { budgets = [] } = disruption ?? {};
    if (budgets.length === 0) continue;
    const up = (ofPool.get(pool) ?? []).filter((node) => isReady(node) || !isYoung(node, now));
    const missing = up.filter((node) => {
      const { name, annotations } = node.metadata;
      if (leaving.get(pool)?.includes(name) || interrupted.has(name) || !isThere(node)) return true;
      return !isReady(node) && annotations?.[ANNOTATIONS.emptiedSince] === undefined;
    });
    const { limits, changesAt } = limitsOf(budgets, up.length, now);
    disruptions.set(pool, { limits, missing: missing.length });
    changes.push(...changesAt);
  }
  return { disruptions, changesAt: changes };
}

const isReady = (node: Node): boolean => conditionIsTrue(node, 'Ready');
