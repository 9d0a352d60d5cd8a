import type { Identity, WantedObject } from '../../hubs/contract.ts';
import { CLUSTERROLEBINDINGS, CLUSTERROLES, SECRETS, SERVICEACCOUNTS } from '../../kube/resources.ts';

const RBAC = 'rbac.authorization.k8s.io';

/** Secret for a token that never expires. */
export const tokenSecretName = ({ account }: Identity): string => `${account.name}-token`;

/** ServiceAccount of an identity with exactly its rights. */
export function identityObjects(identity: Identity): WantedObject[] {
  const { on, rules, life, account } = identity;
  const metadata = { name: account.name };
  const wanted: WantedObject[] = [
    {
      on,
      resource: SERVICEACCOUNTS,
      object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account } },
    },
    {
      on,
      resource: CLUSTERROLES,
      object: { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules: structuredClone(rules) },
    },
    {
      on,
      resource: CLUSTERROLEBINDINGS,
      object: {
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRoleBinding',
        metadata,
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: account.name },
        subjects: [{ kind: 'ServiceAccount', ...account }],
      },
    },
  ];
  if (life !== 'forever') return wanted;
  const secret: WantedObject = {
    on,
    resource: SECRETS,
    object: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: tokenSecretName(identity),
        namespace: account.namespace,
        annotations: { 'kubernetes.io/service-account.name': account.name },
      },
      type: 'kubernetes.io/service-account-token',
    },
  };
  return [...wanted, secret];
}
