import type { Identity, Member, Place, Wanted } from '../contract.ts';
import { accountName, MANAGE_RULES } from '../rights.ts';
import { type SecretPlace, secretAt, secretWith } from '../secrets.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, type KarmadaCluster } from './cluster.ts';
import { isOurs, worksNamespace } from './seen.ts';
import { clusterNamespace, DAY, type SyncMode } from './sync-mode.ts';

/** Whom Karmada's controllers are in the member, and whom it is when it passes on what people ask. */
const CONTROLLER = 'controller';
const IMPERSONATOR = 'impersonator';

/** Karmada's controllers reach into the member, with two Secrets. */
export const push: SyncMode = {
  dials: 'HubToMember',
  usesWorksNamespace: false,

  identities(member, spec) {
    const account = (suffix = '') => ({ namespace: 'kube-system', name: `${accountName(member)}${suffix}` });
    const life: Identity['life'] = spec.karmada?.renewsTokens ? DAY : 'forever';
    return [
      // It applies whatever people propagate, of any kind.
      { name: CONTROLLER, on: 'member', account: account(), rules: MANAGE_RULES, life },
      {
        name: IMPERSONATOR,
        on: 'member',
        account: account('-impersonator'),
        rules: [{ apiGroups: [''], resources: ['users', 'groups', 'serviceaccounts'], verbs: ['impersonate'] }],
        life,
      },
    ];
  },

  reachedBy(member) {
    const { server, proxyURL } = member.endpoint;
    const ref = (name: string) => ({ namespace: CLUSTER_NAMESPACE, name });
    return {
      syncMode: 'Push',
      apiEndpoint: server,
      ...(proxyURL && { proxyURL }),
      secretRef: ref(member.name),
      impersonatorSecretRef: ref(impersonatorSecret(member)),
    };
  },

  access(member, cluster) {
    const { credentials } = member;
    return credentials[CONTROLLER] && credentials[IMPERSONATOR] ? secrets(member, cluster) : [];
  },

  registered: () => ({ apply: [] }),

  removals(member, { works }) {
    const cluster: Place = { on: 'hub', resource: CLUSTERS, name: member.name };
    return [
      // Karmada takes away the Works first, and then its finalizer; of a Cluster that is gone it takes away no Works any more.
      { places: [cluster], force: [...works, worksNamespace(member)] },
      { places: [secretPlace(member.name), secretPlace(impersonatorSecret(member))] },
    ];
  },
};

const impersonatorSecret = ({ name }: Member): string => `${name}-impersonator`;
const secretPlace = (name: string): SecretPlace => secretAt(CLUSTER_NAMESPACE, name);

function secrets(member: Member, cluster: KarmadaCluster | undefined): Wanted[] {
  const { name, endpoint, credentials } = member;
  const { uid } = cluster?.metadata ?? {};
  // Karmada expects it: who deletes the Cluster by hand leaves no way into the member behind.
  const ownerReferences =
    uid && isOurs(member, cluster)
      ? [
          {
            apiVersion: 'cluster.karmada.io/v1alpha1',
            kind: 'Cluster',
            name,
            uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ]
      : [];
  const secret = (secretName: string, texts: Record<string, string>): Wanted =>
    secretWith(secretPlace(secretName), texts, ownerReferences.length > 0 ? { ownerReferences } : undefined);
  return [
    clusterNamespace(),
    secret(name, {
      token: credentials[CONTROLLER]?.token ?? '',
      ...(endpoint.ca && { caBundle: endpoint.ca }),
    }),
    secret(impersonatorSecret(member), { token: credentials[IMPERSONATOR]?.token ?? '' }),
  ];
}
