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
 * All objects of an embedded garden, in the order to apply: CRDs, admission policies, rights of the operator (user
 * OPERATOR_USER) in the garden and in its own seed, roles of tenants, and flow schemas of the Lease, the operator and
 * tenants. The Lease is in kube-system.
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
