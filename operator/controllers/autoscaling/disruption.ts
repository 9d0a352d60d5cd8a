import { ANNOTATIONS } from '../../api/group.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import { budgetLimitsOf, type Disruption } from '../../burst/nodes/budgets.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { isThere, isYoung } from './nodes-seen.ts';

/** Nodes that are disrupted for other reasons than draining. */
interface Missing {
  /** Names of leaving nodes, by pool. */
  readonly leaving: ReadonlyMap<string, readonly string[]>;
  /** Names of interrupted nodes. */
  readonly interrupted: Pick<ReadonlySet<string>, 'has'>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Allowed and present disruption per pool with a budget. A starting node counts neither as existing nor as disrupted.
 * Pure.
 * @returns also the next change of a budget, milliseconds since the epoch
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
    const going = new Set(leaving.get(pool));
    const up = (ofPool.get(pool) ?? []).filter((node) => isReady(node) || !isYoung(node, now));
    const missing = up.filter((node) => {
      const { name, annotations } = node.metadata;
      if (going.has(name) || interrupted.has(name) || !isThere(node)) return true;
      return !isReady(node) && annotations?.[ANNOTATIONS.emptiedSince] === undefined;
    });
    const { limits, changesAt } = budgetLimitsOf(budgets, up.length, now);
    disruptions.set(pool, { limits, missing: missing.length });
    changes.push(...changesAt);
  }
  return { disruptions, changesAt: changes };
}

const isReady = (node: Node): boolean => conditionIsTrue(node, 'Ready');
