import type { KubeObject } from '../../kube/resources.ts';
import { issue, type KeyPair } from '../../pki/certificates.ts';
import type { StateDirectory } from '../state/state.ts';
import { GARDEN_ADMINISTRATORS, KUBELET_CLIENT, readPair, USERS } from './certificates.ts';

/**
 * Bindings that make the group administrators of the garden, and let its API server call its kubelet for logs and exec.
 */
export const gardenBindings = (): KubeObject[] => [
  binding(GARDEN_ADMINISTRATORS, 'cluster-admin', 'Group'),
  binding(KUBELET_CLIENT, 'system:kubelet-api-admin', 'User'),
];

/** A certificate for an administrator of the garden, not stored; undefined: the garden has no CA here. */
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
 * A certificate valid for a day, with rights independent of bindings, not stored: in a new garden the daemon creates
 * the bindings with it, and recreates deleted ones.
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

/** A ClusterRoleBinding named after its only subject. */
const binding = (name: string, role: string, kind: 'Group' | 'User'): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind, name }],
});
