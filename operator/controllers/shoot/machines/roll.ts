import { type Machine, type Pool, sizeWhileRolling } from '../../../../providers/contract.ts';
import { countOf } from '../../../api/quantity.ts';
import type { Worker } from '../../../api/shoot-worker.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import { DRAINING_ANNOTATION, inOrderOfLeaving } from './scale-in.ts';

/** How many machines of a pool may be too many, and how many may be missing, while outdated ones are replaced. */
export interface Pace {
  readonly surge: number;
  readonly unavailable: number;
}

/** maxSurge and maxUnavailable of a pool, as Kubernetes' Deployments read them: percentages of its size, and not both nothing. */
export function paceOf({
  maxSurge,
  maxUnavailable,
  minimum,
}: Pick<Worker, 'maxSurge' | 'maxUnavailable' | 'minimum'>): Pace {
  const surge = countOf(maxSurge ?? 1, minimum, Math.ceil);
  const unavailable = Math.min(minimum, countOf(maxUnavailable ?? 0, minimum, Math.floor));
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** What is to be done about the outdated machines of one pool. */
export interface PoolRoll {
  readonly pool: string;
  readonly count: number;
  readonly outdated: number;
  /** Machines that are as described, and whose nodes are Ready. */
  readonly renewed: number;
  /** How many machines the pool is to have for now. */
  readonly asked: number;
  /** How many there are. */
  readonly there: number;
  /** The oldest machine that is as described and whose node is not Ready. */
  readonly awaited?: Machine;
  /** Outdated machines that may go now, in the order in which they go. */
  readonly victims: readonly Machine[];
}

/**
 * The next step of replacing outdated machines, pure; pools without one are left out. As Kubernetes' Deployments go about it: so many
 * go as are there beyond count - maxUnavailable, machines that have yet to come up not counted, and first those that serve nobody or are
 * being drained already. Machines on their way out are counted as gone.
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
    // Those that serve nobody come first, or more would go of those that serve than can be spared.
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

/** What people read of pools with outdated machines. @param ready whether a machine's node is Ready */
export function rollLines(pools: readonly Pool[], machines: readonly Machine[], ready: readonly Machine[]): string[] {
  return pools.flatMap(({ name, count }) => {
    if (!machines.some(({ pool, outdated }) => pool === name && outdated)) return [];
    const renewed = ready.filter(({ pool, outdated }) => pool === name && !outdated).length;
    return [`rolling pool ${name}: ${Math.min(count, renewed)} of ${count} machines are new`];
  });
}
