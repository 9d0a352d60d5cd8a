import type { Machine } from '../../../../providers/contract.ts';
import { LABELS } from '../../../api/group.ts';
import { controlPlaneWorker, type Shoot } from '../../../api/shoot.ts';
import type { Node } from '../../../kube/resources.ts';

/**
 * Names of Nodes for workloads that are there without a machine, or with one that is on its way out though nobody replaces it, pure. Such a
 * Node is counted by everybody who asks the cluster how many it has, and may be given pods. Those that people made themselves are not ours
 * to judge.
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
