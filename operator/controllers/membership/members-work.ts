import { type HubSpec, SYSTEM_NAMESPACES } from '../../api/hub.ts';
import { hasEnded } from '../../kube/pods.ts';
import type { KubeObject, Pod } from '../../kube/resources.ts';

/** What a hub says of namespaces of its members. */
export type SystemNamespaces = Pick<HubSpec, 'systemNamespaces'>;

/** Whether an object in a member of the hub is what that cluster has for itself, and nobody's work. Pure. */
export const isSystem = (
  hub: SystemNamespaces,
  { metadata: { namespace = '' } }: Pick<KubeObject, 'metadata'>,
): boolean => namespace === 'kube-system' || (hub.systemNamespaces ?? SYSTEM_NAMESPACES).includes(namespace);

/** Whether a pod in a member of the hub is somebody's work, also one that waits for a node. Pure. */
export const isWork = (hub: SystemNamespaces, pod: Pod): boolean =>
  !hasEnded(pod) &&
  !pod.metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet' || kind === 'Node') &&
  !isSystem(hub, pod);
