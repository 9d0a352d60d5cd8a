import type { KubeObject } from '../kube/resources.ts';
import { issue, type KeyPair } from '../pki/certificates.ts';
import { readPair, USERS } from './certificates.ts';
import type { StateDirectory } from './state.ts';

/**
 * Members of this group administer an embedded garden, because it is bound to `cluster-admin` there: who deletes the binding takes it from all of
 * them at once, as nobody can from `system:masters`.
 */
const GROUP = 'coppice:garden-admins';

/** Makes the group administrators of the garden. */
export const administratorsBinding = (): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: GROUP },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: GROUP }],
});

/** A certificate for a person who administers the garden, kept nowhere; undefined: the garden has no authority here. */
export async function issueAdministrator(
  directory: StateDirectory,
  { seconds, now }: { seconds: number; now: Date },
): Promise<KeyPair | undefined> {
  const ca = await readPair(directory, 'ca');
  if (!ca) return undefined;
  const { commonName } = USERS.admin;
  return issue(ca, { commonName, organizations: [GROUP], usages: ['client'], days: seconds / 86_400, now });
}
