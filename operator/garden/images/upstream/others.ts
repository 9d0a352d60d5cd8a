import { LABELS } from '../../../api/group.ts';
import { KUBECONFIG_REQUESTERS, PROFILE_READERS } from '../../../api/roles.ts';
import { KubeClient } from '../../../kube/client.ts';
import { CLUSTERROLEBINDINGS, type KubeObject, keyOf, ROLEBINDINGS } from '../../../kube/resources.ts';

interface Binding extends KubeObject {
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[];
}

/** Made by Kubernetes itself, for everybody. */
const DEFAULTS = 'kubernetes.io/bootstrapping';
const EVERYBODY = /^system:(?:authenticated|unauthenticated|serviceaccounts(?::.*)?)$/;
/** Of ours, in every garden: nobody gets a pod, or a way to one, by these alone. */
const FOR_EVERYBODY: ReadonlySet<string> = new Set([KUBECONFIG_REQUESTERS, PROFILE_READERS]);
const PLATFORM = /^(?:system|coppice):/;

/**
 * Who, besides the garden's own programs and its administrator, has a role in it: `RoleBinding shop/dev gives jane access`. ServiceAccounts
 * count: many a person is given the token of one. Pure.
 */
export function otherUser(bindings: readonly Binding[]): string | undefined {
  for (const { kind, metadata, roleRef, subjects = [] } of bindings) {
    // Of a membership: the operator keeps the token, and whoever could write that label has a role by another binding.
    if (metadata.labels?.[DEFAULTS] || metadata.labels?.[LABELS.membership]) continue;
    if (roleRef?.kind === 'ClusterRole' && FOR_EVERYBODY.has(roleRef.name)) continue;
    const other = subjects.find(
      (one) => one.kind === 'ServiceAccount' || EVERYBODY.test(one.name) || !PLATFORM.test(one.name),
    );
    if (!other) continue;
    const who = other.kind === 'ServiceAccount' ? `ServiceAccount ${keyOf({ metadata: other })}` : other.name;
    return `${kind} ${keyOf({ metadata })} gives ${who} access`;
  }
  return undefined;
}

/**
 * Asks a garden's API server who else has a role there. @returns undefined when nobody has
 * @param kubeconfig of its administrator
 */
export async function othersIn(kubeconfig: string): Promise<string | undefined> {
  const client = KubeClient.fromOwnKubeconfig(kubeconfig, {}, { userAgent: 'coppice-mirror' });
  try {
    const [roles, clusterRoles] = await Promise.all([
      client.list<Binding>(ROLEBINDINGS),
      client.list<Binding>(CLUSTERROLEBINDINGS),
    ]);
    return otherUser([...roles.items, ...clusterRoles.items]);
  } catch {
    return 'the garden does not tell who has access';
  } finally {
    await client.close();
  }
}
