import { type HubSpec, SYSTEM_NAMESPACES } from '../../api/hub.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** What a hub says of namespaces of its members. */
export type SystemNamespaces = Pick<HubSpec, 'systemNamespaces'>;

/** Whether an object in a member of the hub is what that cluster has for itself, and nobody's work. Pure. */
export const isSystem = (
  hub: SystemNamespaces,
  { metadata: { namespace = '' } }: Pick<KubeObject, 'metadata'>,
): boolean => namespace === 'kube-system' || (hub.systemNamespaces ?? SYSTEM_NAMESPACES).includes(namespace);
