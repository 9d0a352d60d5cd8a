import type { Machine } from '../../../providers/contract.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { conditionIsTrue, type Node, type Pod } from '../../kube/resources.ts';

/** What scaling one pool in comes to. */
export interface PoolScaleIn {
  readonly pool: string;
  /** Machines that go once their pods have left, in the order in which they go. */
  readonly victims: readonly Machine[];
  /** Machines that stay. */
  readonly remaining: number;
}

/**
 * Which machines go, pure. First those that serve nobody (failed, not yet or no longer Ready), then those a person marked,
 * then the emptiest, then the youngest. Machines already on their way out are counted as gone.
 */
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
    const ranked = alive
      .map((machine) => {
        const node = nodes.get(machine.nodeName);
        return {
          machine,
          useless: machine.phase === 'Failed' || !node || !conditionIsTrue(node, 'Ready') ? 0 : 1,
          marked: node?.metadata.annotations?.[ANNOTATIONS.scaleInFirst] === 'true' ? 0 : 1,
          // A node that is being drained already goes on being drained, whatever moved meanwhile.
          draining: node?.metadata.annotations?.[DRAINING_ANNOTATION] ? 0 : 1,
          load: (podsByNode.get(machine.nodeName) ?? []).filter(movable).length,
        };
      })
      .sort(
        (a, b) =>
          a.useless - b.useless ||
          a.marked - b.marked ||
          a.draining - b.draining ||
          a.load - b.load ||
          b.machine.createdAt.localeCompare(a.machine.createdAt) ||
          a.machine.name.localeCompare(b.machine.name),
      );
    plans.push({
      pool: pool.name,
      victims: ranked.slice(0, surplus).map((entry) => entry.machine),
      remaining: pool.count,
    });
  }
  return plans;
}

/** Set by us on a node that is cordoned because its machine goes; removed when it may stay after all. */
export const DRAINING_ANNOTATION = 'multi-cluster.demo.io/draining';

/** Nodes that we cordoned for a scale-in that is no longer wanted: they take pods again. */
export function nodesToUncordon(nodes: readonly Node[], victims: readonly Machine[]): Node[] {
  const leaving = new Set(victims.map((machine) => machine.nodeName));
  return nodes.filter((node) => node.metadata.annotations?.[DRAINING_ANNOTATION] && !leaving.has(node.metadata.name));
}

/** Whether a pod must leave before its node goes: finished, mirror and DaemonSet pods go with it. */
export function movable(pod: Pod): boolean {
  if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return false;
  if (pod.metadata.annotations?.['kubernetes.io/config.mirror']) return false;
  return !(pod.metadata.ownerReferences ?? []).some((owner) => owner.kind === 'DaemonSet' && owner.controller);
}
