import type { Machine } from '../../../../providers/contract.ts';
import { LABELS } from '../../../api/group.ts';
import { controlPlaneWorker, type Shoot } from '../../../api/shoot.ts';
import type { Node } from '../../../kube/resources.ts';

/**
 * Names of worker Nodes without a machine, or whose machine is being deleted without replacement. Pure. They are
 * counted as nodes, and pods may be scheduled there. Nodes that people created are ignored.
 */
export function strayNodes(shoot: Shoot, nodes: readonly Node[], machines: readonly Machine[]): string[] {
  const own = controlPlaneWorker(shoot.spec)?.name;
  const kept = new Set(
    machines.filter(({ phase, outdated }) => phase !== 'Terminating' || outdated).map(({ nodeName }) => nodeName),
  );
  return nodes
    .filter(({ metadata: { labels, name } }) => {
      const pool = labels?.[LABELS.pool];
      return pool !== undefined && pool !== own && !kept.has(name);
    })
    .map(({ metadata }) => metadata.name)
    .sort();
}
