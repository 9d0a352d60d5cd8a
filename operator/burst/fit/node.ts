import { readCount } from '../../api/quantity.ts';
import type { Node } from '../../kube/resources.ts';
import type { FitNode, NodeTemplate } from './model.ts';
import { amountsOf } from './requests.ts';

export const HOSTNAME = 'kubernetes.io/hostname';

/** A driver entry of a CSINode. */
export interface CSINode {
  metadata: { name: string };
  spec: { drivers?: readonly { name: string; allocatable?: { count?: number } }[] | null };
}

/**
 * Everything that decides which pods fit on a Node. `csi`: its CSINode; without it volumes are not limited. A Node with
 * invalid quantities has no room.
 */
export function fitNode(node: Node, csi?: CSINode): FitNode {
  return {
    name: node.metadata.name,
    labels: node.metadata.labels ?? {},
    taints: node.spec?.taints ?? [],
    unschedulable: node.spec?.unschedulable ?? false,
    allocatable: allocatableOf(node.status?.allocatable),
    attachLimits: attachLimitsOf(csi),
  };
}

/** Allocatable amounts from Kubernetes quantities; zero when invalid. */
export function allocatableOf(quantities: Record<string, string> | undefined): FitNode['allocatable'] {
  try {
    return { ...amountsOf(quantities), pods: readCount(quantities?.pods ?? 0) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { cpu: 0, memory: 0, storage: 0, others: new Map(), pods: 0 };
  }
}

/** Attach limits by driver, from a CSINode. */
export const attachLimitsOf = (csi: CSINode | undefined): FitNode['attachLimits'] =>
  new Map(
    (csi?.spec.drivers ?? []).flatMap(({ name, allocatable }) =>
      allocatable?.count === undefined ? [] : [[name, allocatable.count] as const],
    ),
  );

/** A ready node of a template. */
export const nodeOf = (template: NodeTemplate, name: string): FitNode => ({
  name,
  labels: { ...template.labels, [HOSTNAME]: name },
  taints: template.taints,
  unschedulable: false,
  allocatable: template.allocatable,
  attachLimits: template.attachLimits,
});
