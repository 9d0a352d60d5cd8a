import { type Machine, type Pool, sizeWhileRolling } from '../../../../providers/contract.ts';
import { countOrPercentOf } from '../../../api/quantity.ts';
import type { Worker } from '../../../api/shoot-worker.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import { DRAINING_ANNOTATION, inOrderOfLeaving } from './scale-in.ts';

/** How many machines a pool may have too many, and too few, during a roll. */
interface Pace {
  readonly surge: number;
  readonly unavailable: number;
}

/** maxSurge and maxUnavailable of a pool, as in Kubernetes' Deployments: percentages of its size, not both zero. */
export function paceOf({
  maxSurge,
  maxUnavailable,
  minimum,
}: Pick<Worker, 'maxSurge' | 'maxUnavailable' | 'minimum'>): Pace {
  const surge = countOrPercentOf(maxSurge ?? 1, minimum, Math.ceil);
  const unavailable = Math.min(minimum, countOrPercentOf(maxUnavailable ?? 0, minimum, Math.floor));
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** The roll of one pool. */
export interface PoolRoll {
  readonly pool: string;
  readonly count: number;
  readonly outdated: number;
  /** Up-to-date machines with a Ready node. */
  readonly renewed: number;
  /** Number of machines to request now. */
  readonly asked: number;
  /** Existing machines. */
  readonly there: number;
  /** Oldest up-to-date machine without a Ready node. */
  readonly awaited?: Machine;
  /** Outdated machines to remove now, in order. */
  readonly victims: readonly Machine[];
}

/**
 * The next step of a roll. Pure; leaves out pools without outdated machines. As in Kubernetes' Deployments: removes
 * those beyond count - maxUnavailable, not counting machines that are not up yet; first those without a Ready node or
 * already draining. Machines being deleted count as gone.
 */
export function planRoll(
  pools: readonly { name: string; count: number; pace: Pace }[],
  machines: readonly Machine[],
  nodes: ReadonlyMap<string, Node>,
  podsByNode: ReadonlyMap<string, readonly Pod[]>,
): PoolRoll[] {
  const serves = ({ phase, nodeName }: Machine): boolean => {
    const node = nodes.get(nodeName);
    return (
      phase !== 'Failed' &&
      node !== undefined &&
      conditionIsTrue(node, 'Ready') &&
      !node.metadata.annotations?.[DRAINING_ANNOTATION]
    );
  };
  return pools.flatMap(({ name, count, pace }) => {
    const there = machines.filter(({ pool, phase }) => pool === name && phase !== 'Terminating');
    const outdated = there.filter((machine) => machine.outdated);
    if (outdated.length === 0) return [];
    const awaited = there.filter((machine) => !machine.outdated && !serves(machine));
    const coming = awaited.length;
    const [oldest] = awaited.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
    const renewed = there.length - outdated.length - coming;
    const fewest = count - Math.min(count, pace.unavailable);
    const room = there.length - coming - fewest;
    const leaving = inOrderOfLeaving(outdated, nodes, podsByNode);
    // Those without a Ready node first, or more serving ones than allowed would go.
    const victims = [...leaving.filter((one) => !serves(one)), ...leaving.filter(serves)].slice(0, Math.max(0, room));
    const asked = sizeWhileRolling({ count, maxSurge: pace.surge }, outdated.length);
    return [
      {
        pool: name,
        count,
        outdated: outdated.length,
        renewed,
        asked,
        there: there.length,
        victims,
        ...(oldest && { awaited: oldest }),
      },
    ];
  });
}

/** Texts about pools with outdated machines. @param ready machines whose node is Ready */
export function rollLines(pools: readonly Pool[], machines: readonly Machine[], ready: readonly Machine[]): string[] {
  return pools.flatMap(({ name, count }) => {
    if (!machines.some(({ pool, outdated }) => pool === name && outdated)) return [];
    const renewed = ready.filter(({ pool, outdated }) => pool === name && !outdated).length;
    return [`rolling pool ${name}: ${Math.min(count, renewed)} of ${count} machines are new`];
  });
}
