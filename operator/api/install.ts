import { admissionPolicies } from './admission-policies.ts';
import { crds } from './crd.ts';
import { operatorFlow, tenantsFlow } from './flows.ts';
import type { KubeObject } from './meta.ts';
import {
  authenticatedBindings,
  bindToUser,
  clusterRole,
  gardenRules,
  leaseFirst,
  OPERATOR_USER,
  ownNamespaceRules,
  roleFor,
  seedRules,
  tenantRoles,
} from './roles.ts';

/**
 * Everything that an API server needs to be an embedded garden, in the order to apply it: CRDs, admission policies, the
 * rights of the operator (user OPERATOR_USER) in the garden and, because it is its own seed, in the seed, roles of tenants, and the
 * priority of its Lease, its other requests, and those of tenants. The Lease is in kube-system.
 */
export function installManifests(): KubeObject[] {
  const seedRole = `${OPERATOR_USER}:seed`;
  const user = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: OPERATOR_USER };
  return [
    ...crds(),
    ...[...admissionPolicies().values()].flat(),
    clusterRole(OPERATOR_USER, gardenRules()),
    bindToUser(OPERATOR_USER, OPERATOR_USER),
    ...roleFor(OPERATOR_USER, 'kube-system', ownNamespaceRules(), user),
    clusterRole(seedRole, seedRules()),
    bindToUser(seedRole, OPERATOR_USER),
    ...tenantRoles(),
    ...authenticatedBindings(),
    leaseFirst(OPERATOR_USER),
    ...operatorFlow({ kind: 'User', user: { name: OPERATOR_USER } }),
    ...tenantsFlow(),
  ];
}
