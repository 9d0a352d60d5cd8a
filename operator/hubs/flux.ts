import type { HubSpec } from '../api/hub.ts';
import { kubeconfigSecretName } from '../api/names.ts';
import { decoded, type Resource, SECRETS, type Secret } from '../kube/resources.ts';
import { type HubType, isForeign, type Member, type Reader, takenOver, type Wanted } from './contract.ts';
import { accountName, rulesOf } from './rights.ts';
import { kubeconfigOf, type SecretPlace, secretAt, secretWith, serverIn } from './secrets.ts';

export const KUSTOMIZATIONS: Resource = {
  group: 'kustomize.toolkit.fluxcd.io',
  version: 'v1',
  plural: 'kustomizations',
  kind: 'Kustomization',
  namespaced: true,
};
const HELMRELEASES: Resource = {
  group: 'helm.toolkit.fluxcd.io',
  version: 'v2',
  plural: 'helmreleases',
  kind: 'HelmRelease',
  namespaced: true,
};
/** What deploys to other clusters. */
const DEPLOYING = [KUSTOMIZATIONS, HELMRELEASES];

const ACCESS = 'access';
const DAY = 24 * 3600;
/** Where Flux looks first. */
const KEY = 'value';

/** Something of Flux that names the cluster. */
interface User {
  /** `Kustomization namespace/name`. */
  readonly text: string;
  readonly isGoing: boolean;
}

interface Seen {
  readonly users: readonly User[];
}

/** Flux: it knows no clusters, only Secrets with kubeconfigs that are named where something is deployed. */
export const fluxHub: HubType<Seen> = {
  type: 'Flux',
  // The Secret's name, with its suffix, is at most 63 characters: it is written into labels as well.
  nameLimit: 52,
  watches: [],
  dials: () => 'HubToMember',

  async validate(hub) {
    const served = await Promise.all(DEPLOYING.map((resource) => hub.serves(resource)));
    if (served.includes(true)) return [];
    const kinds = DEPLOYING.map(({ plural, group, version }) => `${plural}.${group}/${version}`).join(' nor ');
    return [`the hub serves neither ${kinds}: install Flux`];
  },

  // The Secret is read anew for each reconciliation, so a short-lived token will do.
  identities: (member, { flux }) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: rulesOf(flux?.rights),
      life: DAY,
    },
  ],

  // Its Secrets are known by what is in them: a kubeconfig with the URL of the cluster.
  async foreignEntry(hub, member, spec) {
    const { namespace, name: wanted } = secretPlace(member, spec);
    for (const name of new Set([wanted, ...(await namedSecrets(hub, namespace))])) {
      const secret = (await hub.get(SECRETS, name, namespace)) as Secret | undefined;
      if (!secret || !isForeign(secret) || serverIn(decoded(secret.data)[KEY]) !== member.endpoint.server) continue;
      const isOwnable = name === wanted;
      return {
        name: isOwnable ? member.name : name,
        places: [takenOver(SECRETS, secret)],
        // It may be what its cluster is attached by, or anything else.
        ...(!isOwnable && { whyNot: `Secret ${namespace}/${name} of the hub is not called ${wanted}` }),
      };
    }
    return undefined;
  },

  observe: async (hub, _cluster, member, spec) => ({
    users: member.closed === 'Leaving' ? await usersOf(hub, secretPlace(member, spec)) : [],
  }),

  join(member, spec) {
    const token = member.credentials[ACCESS]?.token;
    return [
      { type: 'IdentityReady' },
      { type: 'CredentialsReady' },
      {
        type: 'Registered',
        apply: token ? [accessSecret(member, spec, token)] : [],
      },
      { type: 'CapacityVisible' },
    ];
  },

  leave(member, spec, { users }) {
    const place = secretPlace(member, spec);
    const going = users.filter(({ isGoing }) => isGoing).map(({ text }) => text);
    // Who is being deleted without the Secret leaves all that it deployed in the cluster; who is not has to live without it.
    const waiting =
      going.length > 0 ? `${going.join(', ')} is being deleted, and needs Secret ${place.name} for it` : undefined;
    return [{ places: [place], waiting }];
  },

  // A Kustomization stays on its cluster until somebody deletes it: Flux places nothing by itself, and moves nothing.
  drains: () => 'Waits',
  placements: (_member, { users }) => users.map(({ text }) => text),
};

const secretPlace = (member: Member, { flux }: HubSpec): SecretPlace =>
  secretAt(flux?.namespace ?? member.cluster.namespace, kubeconfigSecretName(member.name));

const accessSecret = (member: Member, spec: HubSpec, token: string): Wanted =>
  secretWith(secretPlace(member, spec), { [KEY]: kubeconfigOf(member, token) }, { labels: member.labels });

/** Of those that deploy to other clusters. */
async function namedSecrets(hub: Reader, namespace: string): Promise<string[]> {
  const lists = await Promise.all(DEPLOYING.map((resource) => hub.list(resource, { namespace })));
  return lists.flat().flatMap(({ spec }) => (spec as Deploying | undefined)?.kubeConfig?.secretRef?.name ?? []);
}

/** They can name Secrets of their own namespace only. */
async function usersOf(hub: Reader, { namespace, name }: { namespace: string; name: string }): Promise<User[]> {
  const found = await Promise.all(
    DEPLOYING.map(async (resource) => {
      const all = await hub.list(resource, { namespace });
      return all
        .filter(({ spec }) => (spec as Deploying | undefined)?.kubeConfig?.secretRef?.name === name)
        .map(({ metadata }) => ({
          text: `${resource.kind} ${metadata.namespace}/${metadata.name}`,
          isGoing: metadata.deletionTimestamp !== undefined,
        }));
    }),
  );
  return found.flat();
}

interface Deploying {
  readonly kubeConfig?: { readonly secretRef?: { readonly name?: string } };
}
