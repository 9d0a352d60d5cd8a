import { LABELS } from '../../../api/group.ts';
import { KUBECONFIG_REQUESTERS, PROFILE_READERS } from '../../../api/roles.ts';
import { KubeClient } from '../../../kube/client.ts';
import { CLUSTERROLEBINDINGS, type KubeObject, keyOf, ROLEBINDINGS } from '../../../kube/resources.ts';

interface Binding extends KubeObject {
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[];
}

/** Label of Kubernetes' own default bindings. */
const DEFAULTS = 'kubernetes.io/bootstrapping';
const EVERYBODY = /^system:(?:authenticated|unauthenticated|serviceaccounts(?::.*)?)$/;
/** Coppice's roles for all users in every garden: they alone give no access to pods. */
const FOR_EVERYBODY: ReadonlySet<string> = new Set([KUBECONFIG_REQUESTERS, PROFILE_READERS]);
const PLATFORM = /^(?:system|coppice):/;

/**
 * A user with a role, other than the garden's programs and administrator: `RoleBinding shop/dev gives jane access`.
 * ServiceAccounts count, since people get their tokens. Pure.
 */
export function otherUser(bindings: readonly Binding[]): string | undefined {
  for (const { kind, metadata, roleRef, subjects = [] } of bindings) {
    // Bindings of memberships: the operator keeps the token, and a person who could write the label has a role by
    // another binding.
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
 * Queries a garden's API server for other users with roles. @returns undefined when there are none
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
