import { type HubSpec, SYSTEM_NAMESPACES } from '../../api/hub.ts';
import { hasEnded } from '../../kube/pods.ts';
import type { KubeObject, Pod } from '../../kube/resources.ts';

/** Namespace settings of a hub. */
export type SystemNamespaces = Pick<HubSpec, 'systemNamespaces'>;

/** Whether an object in a member belongs to the cluster's own operation, not to people's work. Pure. */
export const isSystemObject = (
  hub: SystemNamespaces,
  { metadata: { namespace = '' } }: Pick<KubeObject, 'metadata'>,
): boolean => namespace === 'kube-system' || (hub.systemNamespaces ?? SYSTEM_NAMESPACES).includes(namespace);

/** Whether a pod in a member is people's work, also a pending one. Pure. */
export const isWork = (hub: SystemNamespaces, pod: Pod): boolean =>
  !hasEnded(pod) &&
  !pod.metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet' || kind === 'Node') &&
  !isSystemObject(hub, pod);
