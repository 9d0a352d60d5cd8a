import type { Identity, Member, Place, WantedObject } from '../contract.ts';
import { accountName, MANAGE_RULES } from '../rights.ts';
import { type SecretPlace, secretAt, secretWith } from '../secrets.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, type KarmadaCluster } from './cluster.ts';
import { isOurKarmadaCluster, worksNamespace } from './seen.ts';
import { clusterNamespace, DAY, type SyncMode } from './sync-mode.ts';

/** Identities in the member of Karmada's controllers, and of its proxy when it forwards requests of people. */
const CONTROLLER = 'controller';
const IMPERSONATOR = 'impersonator';

/** Karmada's controllers access the member, with two Secrets. */
export const push: SyncMode = {
  dials: 'HubToMember',
  usesWorksNamespace: false,

  identities(member, spec) {
    const account = (suffix = '') => ({ namespace: 'kube-system', name: `${accountName(member)}${suffix}` });
    const life: Identity['life'] = spec.karmada?.renewsTokens ? DAY : 'forever';
    return [
      // Karmada applies propagated objects of any kind.
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
      // Karmada deletes the Works first, then removes its finalizer; after the Cluster is gone it deletes no Works.
      { places: [cluster], force: [...works, worksNamespace(member)] },
      { places: [secretPlace(member.name), secretPlace(impersonatorSecret(member))] },
    ];
  },
};

const impersonatorSecret = ({ name }: Member): string => `${name}-impersonator`;
const secretPlace = (name: string): SecretPlace => secretAt(CLUSTER_NAMESPACE, name);

function secrets(member: Member, cluster: KarmadaCluster | undefined): WantedObject[] {
  const { name, endpoint, credentials } = member;
  const { uid } = cluster?.metadata ?? {};
  // Karmada expects the owner: a Cluster deleted by hand then leaves no access to the member behind.
  const ownerReferences =
    uid && isOurKarmadaCluster(member, cluster)
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
  const secret = (secretName: string, texts: Record<string, string>): WantedObject =>
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
