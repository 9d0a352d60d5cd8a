import type { Machine } from '../../../../providers/contract.ts';
import { ANNOTATIONS } from '../../../api/group.ts';
import { isMovable } from '../../../kube/pods.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import { EMPTY } from '../../empty-mark.ts';

/** The scale-in of one pool. */
export interface PoolScaleIn {
  readonly pool: string;
  /** Machines to remove after their drain, in order. */
  readonly victims: readonly Machine[];
  /** Number of machines that stay. */
  readonly remaining: number;
}

/** Surplus machines of each pool to remove. Pure; see inOrderOfLeaving. Machines being deleted count as gone. */
export function planScaleIn(
  pools: readonly { name: string; count: number }[],
  machines: readonly Machine[],
  nodes: ReadonlyMap<string, Node>,
  podsByNode: ReadonlyMap<string, readonly Pod[]>,
): PoolScaleIn[] {
  const plans: PoolScaleIn[] = [];
  for (const pool of pools) {
    const alive = machines.filter((machine) => machine.pool === pool.name && machine.phase !== 'Terminating');
    const surplus = alive.length - pool.count;
    if (surplus <= 0) continue;
    const victims = inOrderOfLeaving(alive, nodes, podsByNode).slice(0, surplus);
    plans.push({ pool: pool.name, victims, remaining: pool.count });
  }
  return plans;
}

/**
 * Order of removal. Pure: machines emptied by the autoscaler, then those without a Ready node, then outdated ones, then
 * those with the annotation, then the emptiest, then the youngest.
 */
export function inOrderOfLeaving(
  machines: readonly Machine[],
  nodes: ReadonlyMap<string, Node>,
  podsByNode: ReadonlyMap<string, readonly Pod[]>,
): Machine[] {
  return machines
    .map((machine) => {
      const node = nodes.get(machine.nodeName);
      return {
        machine,
        // The autoscaler counted this machine as gone: removing another one would remove a needed one.
        named: node?.metadata.annotations?.[ANNOTATIONS.emptiedSince]?.endsWith(EMPTY) ? 0 : 1,
        useless: machine.phase === 'Failed' || !node || !conditionIsTrue(node, 'Ready') ? 0 : 1,
        outdated: machine.outdated ? 0 : 1,
        marked: node?.metadata.annotations?.[ANNOTATIONS.scaleInFirst] === 'true' ? 0 : 1,
        // A draining node continues to drain.
        draining: node?.metadata.annotations?.[DRAINING_ANNOTATION] ? 0 : 1,
        load: (podsByNode.get(machine.nodeName) ?? []).filter(isMovable).length,
      };
    })
    .sort(
      (a, b) =>
        a.named - b.named ||
        a.useless - b.useless ||
        a.outdated - b.outdated ||
        a.marked - b.marked ||
        a.draining - b.draining ||
        a.load - b.load ||
        b.machine.createdAt.localeCompare(a.machine.createdAt) ||
        a.machine.name.localeCompare(b.machine.name),
    )
    .map(({ machine }) => machine);
}

/** Annotation of nodes that Coppice cordoned because their machine will be removed; removed if it stays after all. */
export const DRAINING_ANNOTATION = 'multi-cluster.demo.io/draining';

/** Nodes to uncordon after a cancelled scale-in. @param cordoned names of nodes that stay cordoned */
export const nodesToUncordon = (nodes: readonly Node[], cordoned: ReadonlySet<string>): Node[] =>
  nodes.filter((node) => node.metadata.annotations?.[DRAINING_ANNOTATION] && !cordoned.has(node.metadata.name));
