import type { KubeObject } from '../../kube/resources.ts';
import { issue, type KeyPair } from '../../pki/certificates.ts';
import type { StateDirectory } from '../state/state.ts';
import { GARDEN_ADMINISTRATORS, KUBELET_CLIENT, readPair, USERS } from './certificates.ts';

/** What makes the group administrators of the garden, and what lets its API server call its kubelet, for logs and exec. */
export const gardenBindings = (): KubeObject[] => [
  binding(GARDEN_ADMINISTRATORS, 'cluster-admin', 'Group'),
  binding(KUBELET_CLIENT, 'system:kubelet-api-admin', 'User'),
];

/** A certificate for a person who administers the garden, kept nowhere; undefined: the garden has no authority here. */
export async function issueAdministrator(
  directory: StateDirectory,
  { seconds, now }: { seconds: number; now: Date },
): Promise<KeyPair | undefined> {
  const ca = await readPair(directory, 'ca');
  if (!ca) return undefined;
  const { commonName, organizations } = USERS.admin;
  return issue(ca, {
    commonName,
    organizations: [...organizations],
    usages: ['client'],
    days: seconds / 86_400,
    now,
  });
}

/**
 * A certificate for a day with rights that no binding gives, and kept nowhere: in a new garden the daemon makes the bindings with it, and makes
 * them again where somebody has deleted them.
 */
export async function issueDaemon(directory: StateDirectory, now: Date): Promise<KeyPair> {
  const ca = await readPair(directory, 'ca');
  if (!ca) throw new Error("the garden's authority is missing or is being replaced");
  return issue(ca, {
    commonName: 'coppice:garden',
    organizations: ['system:masters'],
    usages: ['client'],
    days: 1,
    now,
  });
}

/** A ClusterRoleBinding that has the name of its one subject. */
const binding = (name: string, role: string, kind: 'Group' | 'User'): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind, name }],
});
