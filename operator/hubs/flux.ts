import type { HubSpec } from '../api/hub.ts';
import { kubeconfigSecretName } from '../api/names.ts';
import { decodeSecret, type Resource, SECRETS, type Secret } from '../kube/resources.ts';
import { type HubType, isForeign, type Member, type Reader, takenOver, type WantedObject } from './contract.ts';
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
/** Kinds of Flux that deploy to other clusters. */
const DEPLOYING = [KUSTOMIZATIONS, HELMRELEASES];

const ACCESS = 'access';
const DAY = 24 * 3600;
/** Key of the Secret that Flux reads first. */
const KEY = 'value';

/** A Flux object that refers to the cluster's Secret. */
interface User {
  /** `Kustomization namespace/name`. */
  readonly text: string;
  readonly isGoing: boolean;
}

interface Seen {
  readonly users: readonly User[];
}

/** Flux, which has no cluster objects: only Secrets with kubeconfigs, named by what deploys to the cluster. */
export const fluxHub: HubType<Seen> = {
  type: 'Flux',
  // The Secret's name, with its suffix, has at most 63 characters: it is also a label value.
  nameLimit: 52,
  watches: [],
  dials: () => 'HubToMember',

  async validate(hub) {
    const served = await Promise.all(DEPLOYING.map((resource) => hub.serves(resource)));
    if (served.includes(true)) return [];
    const kinds = DEPLOYING.map(({ plural, group, version }) => `${plural}.${group}/${version}`).join(' nor ');
    return [`the hub serves neither ${kinds}: install Flux`];
  },

  // Flux reads the Secret for each reconciliation, so a short-lived token suffices.
  identities: (member, { flux }) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: rulesOf(flux?.rights),
      life: DAY,
    },
  ],

  // A Secret is matched by its content: a kubeconfig with the cluster's URL.
  async foreignEntry(hub, member, spec) {
    const { namespace, name: wanted } = secretPlace(member, spec);
    for (const name of new Set([wanted, ...(await namedSecrets(hub, namespace))])) {
      const secret = (await hub.get(SECRETS, name, namespace)) as Secret | undefined;
      if (!secret || !isForeign(secret) || serverIn(decodeSecret(secret.data)[KEY]) !== member.endpoint.server)
        continue;
      const isOwnable = name === wanted;
      return {
        name: isOwnable ? member.name : name,
        places: [takenOver(SECRETS, secret)],
        // It may be the kubeconfig that attaches the cluster, or any other Secret.
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
    // A Flux object deleted without the Secret leaves its resources in the cluster; those not being deleted lose
    // their access.
    const waiting =
      going.length > 0 ? `${going.join(', ')} is being deleted, and needs Secret ${place.name} for it` : undefined;
    return [{ places: [place], waiting }];
  },

  // A Kustomization stays on its cluster until it is deleted: Flux places and moves nothing by itself.
  drains: () => 'Waits',
  placements: (_member, { users }) => users.map(({ text }) => text),
};

const secretPlace = (member: Member, { flux }: HubSpec): SecretPlace =>
  secretAt(flux?.namespace ?? member.cluster.namespace, kubeconfigSecretName(member.name));

const accessSecret = (member: Member, spec: HubSpec, token: string): WantedObject =>
  secretWith(secretPlace(member, spec), { [KEY]: kubeconfigOf(member, token) }, { labels: member.labels });

/** Names of kubeconfig Secrets that Flux objects use. */
async function namedSecrets(hub: Reader, namespace: string): Promise<string[]> {
  const lists = await Promise.all(DEPLOYING.map((resource) => hub.list(resource, { namespace })));
  return lists.flat().flatMap(({ spec }) => (spec as Deploying | undefined)?.kubeConfig?.secretRef?.name ?? []);
}

/** Flux objects that use a Secret; they can refer to Secrets of their own namespace only. */
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
