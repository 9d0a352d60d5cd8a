import { COMPONENTS } from '../../../api/names.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from '../tasks/apply-inside.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';

/** kubeadm's static pods on each control plane machine: `<component>-<node>` in kube-system. */
const STATIC_PODS = ['etcd', COMPONENTS.apiServer, COMPONENTS.controllerManager, COMPONENTS.scheduler];

/** Missing or unready parts of the control plane, as text. */
export function notReady(op: Operation, infrastructure: Pick<ControlPlaneInfrastructure, 'isUp' | 'names'>): string[] {
  const nodes = shootConnection(op).nodes.list();
  const pods = shootConnection(op).pods.list();
  const names = infrastructure.names(nodes, op.values.replicas);
  const missing = op.values.replicas - names.length;
  return [
    ...(missing > 0 ? [`${missing} machines`] : []),
    ...names.flatMap((name) => missingParts(name, infrastructure.isUp(op), nodes, pods)),
  ];
}

/** Missing or unready parts of one control plane machine, as text. */
export function missingParts(
  name: string,
  isUp: (machine: string) => boolean,
  nodes: readonly Node[],
  pods: readonly Pod[],
): string[] {
  if (!isUp(name)) return [`machine ${name}`];
  const node = nodes.find(({ metadata }) => metadata.name === name);
  if (!node || !conditionIsTrue(node, 'Ready')) return [`node ${name}`];
  const isReady = (pod: string) =>
    pods.some(
      (found) =>
        found.metadata.name === pod && found.metadata.namespace === 'kube-system' && conditionIsTrue(found, 'Ready'),
    );
  return STATIC_PODS.map((component) => `${component}-${name}`).filter((pod) => !isReady(pod));
}
