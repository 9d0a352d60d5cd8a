import type { Machine } from '../../../../providers/contract.ts';
import { ANNOTATIONS } from '../../../api/group.ts';
import { isMovable } from '../../../kube/pods.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import { EMPTY } from '../../empty-mark.ts';

/** What scaling one pool in comes to. */
export interface PoolScaleIn {
  readonly pool: string;
  /** Machines that go once their pods have left, in the order in which they go. */
  readonly victims: readonly Machine[];
  /** Machines that stay. */
  readonly remaining: number;
}

/** Which machines go, pure: those too many of each pool, see inOrderOfLeaving. Machines already on their way out are counted as gone. */
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
 * Who goes first, pure: those that the autoscaler has emptied, then those that serve nobody (failed, not yet or no longer Ready), then
 * outdated ones, then those a person marked, then the emptiest, then the youngest.
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
        // The autoscaler has emptied that one, and counted it as gone: another in its place would be one that somebody needs.
        named: node?.metadata.annotations?.[ANNOTATIONS.emptiedSince]?.endsWith(EMPTY) ? 0 : 1,
        useless: machine.phase === 'Failed' || !node || !conditionIsTrue(node, 'Ready') ? 0 : 1,
        outdated: machine.outdated ? 0 : 1,
        marked: node?.metadata.annotations?.[ANNOTATIONS.scaleInFirst] === 'true' ? 0 : 1,
        // A node that is being drained already goes on being drained, whatever moved meanwhile.
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

/** Set by us on a node that is cordoned because its machine goes; removed when it may stay after all. */
export const DRAINING_ANNOTATION = 'multi-cluster.demo.io/draining';

/** Nodes that we cordoned for a scale-in that is no longer wanted: they take pods again. @param cordoned names of those that stay so */
export const nodesToUncordon = (nodes: readonly Node[], cordoned: ReadonlySet<string>): Node[] =>
  nodes.filter((node) => node.metadata.annotations?.[DRAINING_ANNOTATION] && !cordoned.has(node.metadata.name));
