import { LABELS } from '../api/group.ts';
import { type KubeObject, NAMESPACES, type Resource, SECRETS } from '../kube/resources.ts';
import type { HubType, Identity, Member, Place, Placement, Reader, Trace, Wanted } from './contract.ts';
import {
  CLUSTER_NAMESPACE,
  CLUSTERS,
  clusterObject,
  countsNodes,
  type Draining,
  freeOn,
  type KarmadaCluster,
  strangerIn,
  whyNotReady,
} from './karmada-cluster.ts';

const WORK_GROUP = 'work.karmada.io';
export const RESOURCEBINDINGS: Resource = {
  group: WORK_GROUP,
  version: 'v1alpha2',
  plural: 'resourcebindings',
  kind: 'ResourceBinding',
  namespaced: true,
};
export const CLUSTERRESOURCEBINDINGS: Resource = {
  ...RESOURCEBINDINGS,
  plural: 'clusterresourcebindings',
  kind: 'ClusterResourceBinding',
  namespaced: false,
};

export const WORKS: Resource = { ...RESOURCEBINDINGS, version: 'v1alpha1', plural: 'works', kind: 'Work' };

/** Whom Karmada's controllers are in the member, and whom it is when it passes on what people ask. */
const CONTROLLER = 'controller';
const IMPERSONATOR = 'impersonator';
const DAY = 24 * 3600;

interface Binding {
  /** "ResourceBinding shop/web". */
  readonly text: Placement;
  readonly isEvicted: boolean;
}

interface Seen {
  readonly cluster: KarmadaCluster | undefined;
  /** Name of another Cluster of the hub that is the same cluster. */
  readonly twin: string | undefined;
  /** What is placed on the member, or still on its way off it; read only when it leaves. */
  readonly bindings: readonly Binding[];
  /** What Karmada wants in the member; read only when it leaves. */
  readonly works: readonly Trace[];
}

/** Karmada, which pushes to its members: a Cluster with two Secrets. */
export const karmadaHub: HubType<Seen> = {
  type: 'Karmada',
  // The namespace of a cluster's Works, `karmada-es-<name>`, has to fit into a label.
  nameLimit: 48,
  watches: [CLUSTERS],
  dials: () => 'HubToMember',

  async validate(hub) {
    const missing: string[] = [];
    for (const kind of [CLUSTERS, RESOURCEBINDINGS])
      if (!(await hub.serves(kind))) missing.push(`${kind.plural}.${kind.group}/${kind.version}`);
    if (missing.length === 0) return [];
    return [`the hub serves no ${missing.join(', ')}: the kubeconfig has to be that of Karmada's own API server`];
  },

  identities: (member, spec) => {
    const account = (name: string) => ({ namespace: 'kube-system', name: `coppice-hub-${member.hubName}${name}` });
    const life: Identity['life'] = spec.karmada?.renewsTokens ? DAY : 'forever';
    return [
      {
        name: CONTROLLER,
        on: 'member',
        account: account(''),
        // It applies whatever people propagate, of any kind.
        rules: [
          { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
          { nonResourceURLs: ['*'], verbs: ['get'] },
        ],
        life,
      },
      {
        name: IMPERSONATOR,
        on: 'member',
        account: account('-impersonator'),
        rules: [{ apiGroups: [''], resources: ['users', 'groups', 'serviceaccounts'], verbs: ['impersonate'] }],
        life,
      },
    ];
  },

  stranger: strangerIn,

  async observe(hub, _cluster, { name, id, closed }) {
    const cluster = (await hub.get(CLUSTERS, name)) as KarmadaCluster | undefined;
    const others = cluster ? [] : ((await hub.list(CLUSTERS)) as KarmadaCluster[]);
    const twin = others.find(({ spec }) => spec?.id === id)?.metadata.name;
    if (closed !== 'Leaving') return { cluster, twin, bindings: [], works: [] };
    const [bindings, works] = await Promise.all([bindingsOn(hub, name), worksOf(hub, name)]);
    return { cluster, twin, bindings, works };
  },

  join(member, _spec, { cluster, twin }) {
    const { name, credentials } = member;
    const hasTokens = credentials[CONTROLLER] && credentials[IMPERSONATOR];
    const taken = twin && `Cluster ${twin} of the hub is the same cluster (id ${member.id}): let it leave there first`;
    return [
      { type: 'IdentityReady' },
      { type: 'CredentialsReady', apply: hasTokens ? secrets(member, cluster) : [] },
      {
        type: 'Registered',
        apply: taken ? [] : [clusterWanted(member, cluster)],
        traces: isOurs(member, cluster) ? [worksNamespace(member)] : [],
        waiting: taken ?? whyNotReady(name, cluster),
      },
      {
        type: 'CapacityVisible',
        waiting: countsNodes(cluster)
          ? undefined
          : `Karmada counts what nodes offer, and sees none of Cluster ${name} yet`,
      },
    ];
  },

  leave(member, _spec, { works }) {
    const cluster: Place = { on: 'hub', resource: CLUSTERS, name: member.name };
    return [
      // Karmada takes away the Works first, and then its finalizer; of a Cluster that is gone it takes away no Works any more.
      { places: [cluster], force: [...works, worksNamespace(member)] },
      { places: [secretPlace(member.name), secretPlace(impersonatorSecret(member))] },
    ];
  },

  drains: (spec, { bindings }) =>
    spec.karmada?.evicts || bindings.some(({ isEvicted }) => isEvicted) ? 'Moves' : 'None',
  cordon: (member, _spec, { cluster }) => (cluster ? [clusterWanted(member, cluster)] : []),
  drain: (member, _spec, { cluster }) => (cluster ? [clusterWanted(member, cluster, 'begin')] : []),
  placements: (_member, { bindings }) => bindings.map(({ text }) => text),
  capacity: (_member, { cluster }) => freeOn(cluster),
};

const impersonatorSecret = ({ name }: Member): string => `${name}-impersonator`;
const secretPlace = (name: string): Place => ({ on: 'hub', resource: SECRETS, namespace: CLUSTER_NAMESPACE, name });

const worksNamespaceName = (cluster: string): string => `karmada-es-${cluster}`;

/** Where Karmada keeps the Works of a cluster. */
const worksNamespace = ({ name }: Member): Trace => ({
  on: 'hub',
  resource: NAMESPACES,
  name: worksNamespaceName(name),
  labels: { 'karmada.io/system': 'true' },
});

/** Its namespace would be taken for a trace of ours, where somebody else has a Cluster of this name. */
const isOurs = (member: Member, cluster: KarmadaCluster | undefined): boolean =>
  cluster?.metadata.labels?.[LABELS.membership] !== undefined && cluster.spec?.id === member.id;

function clusterWanted(member: Member, live: KarmadaCluster | undefined, draining?: Draining): Wanted {
  const { server, proxyURL } = member.endpoint;
  const ref = (name: string) => ({ namespace: CLUSTER_NAMESPACE, name });
  const push = {
    syncMode: 'Push',
    apiEndpoint: server,
    ...(proxyURL && { proxyURL }),
    secretRef: ref(member.name),
    impersonatorSecretRef: ref(impersonatorSecret(member)),
  };
  return { on: 'hub', resource: CLUSTERS, object: clusterObject(member, live, push, draining) };
}

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
  const secret = (secretName: string, data: Record<string, string>): Wanted => ({
    on: 'hub',
    resource: SECRETS,
    object: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: secretName,
        namespace: CLUSTER_NAMESPACE,
        ...(ownerReferences.length > 0 && { ownerReferences }),
      },
      type: 'Opaque',
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    },
  });
  const namespace: KubeObject = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: CLUSTER_NAMESPACE, labels: { 'karmada.io/system': 'true' } },
  };
  return [
    { on: 'hub', resource: NAMESPACES, object: namespace, shared: true },
    secret(name, {
      token: credentials[CONTROLLER]?.token ?? '',
      ...(endpoint.ca && { caBundle: endpoint.ca }),
    }),
    secret(impersonatorSecret(member), { token: credentials[IMPERSONATOR]?.token ?? '' }),
  ];
}

type BindingObject = KubeObject & {
  spec?: { clusters?: { name: string }[]; gracefulEvictionTasks?: { fromCluster: string }[] };
};

async function bindingsOn(hub: Reader, cluster: string): Promise<Binding[]> {
  const lists = await Promise.all(
    [RESOURCEBINDINGS, CLUSTERRESOURCEBINDINGS].map(async (resource) => ({
      resource,
      items: await hub.list(resource),
    })),
  );
  return lists.flatMap(({ resource, items }) =>
    (items as BindingObject[]).flatMap(({ metadata: { namespace, name }, spec }) => {
      const isEvicted = (spec?.gracefulEvictionTasks ?? []).some(({ fromCluster }) => fromCluster === cluster);
      if (!isEvicted && !(spec?.clusters ?? []).some((one) => one.name === cluster)) return [];
      return [{ text: `${resource.kind} ${namespace ? `${namespace}/` : ''}${name}`, isEvicted }];
    }),
  );
}

const WORK_ID = 'work.karmada.io/permanent-id';

async function worksOf(hub: Reader, cluster: string): Promise<Trace[]> {
  const namespace = worksNamespaceName(cluster);
  const works = await hub.list(WORKS, { namespace });
  return works.map(({ metadata: { name, labels } }) => ({
    on: 'hub',
    resource: WORKS,
    namespace,
    name,
    labels: { [WORK_ID]: labels?.[WORK_ID] ?? '' },
  }));
}
