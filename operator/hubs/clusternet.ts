import { createHash } from 'node:crypto';
import { GROUP, LABELS } from '../api/group.ts';
import type { Condition } from '../api/meta.ts';
import type { Reason } from '../api/reasons.ts';
import { podSecurityLabels } from '../kube/pod-security.ts';
import { type KubeObject, keyOf, NAMESPACES, type Resource } from '../kube/resources.ts';
import {
  type HubAmounts,
  type HubType,
  isForeign,
  type Member,
  type Trace,
  takenOver,
  type WantedObject,
} from './contract.ts';
import { accountName, rulesOf } from './rights.ts';
import { secretAt, secretWith } from './secrets.ts';

const resource = (group: string, version: string, kind: string): Resource => ({
  group: `${group}.clusternet.io`,
  version,
  plural: `${kind.toLowerCase()}s`,
  kind,
  namespaced: true,
});
export const CLUSTERNET_CLUSTERS = resource('clusters', 'v1beta1', 'ManagedCluster');
export const SUBSCRIPTIONS = resource('apps', 'v1alpha1', 'Subscription');
export const BASES = resource('apps', 'v1alpha1', 'Base');
export const DESCRIPTIONS = resource('apps', 'v1alpha1', 'Description');
/** Objects that Clusternet creates from Subscriptions in a cluster's namespace; the last to be deleted come last. */
const MADE = [resource('apps', 'v1alpha1', 'HelmRelease'), DESCRIPTIONS, BASES];

export const CLUSTER_ID = 'clusters.clusternet.io/cluster-id';
const CLUSTER_NAME = 'clusters.clusternet.io/cluster-name';
export const SUBSCRIPTION_UID = 'apps.clusternet.io/subs.uid';
/** Label by which Clusternet finds a cluster's objects. */
const CREATED_BY = { 'clusternet.io/created-by': 'clusternet-agent' };
/** Secret with which Clusternet deploys to a cluster. */
export const DEPLOYER = 'child-cluster-deployer';
const ACCESS = 'access';
/** Clusternet declares a cluster lost after three heartbeat periods. Ten years, because no agent sends a heartbeat. */
const HEARTBEAT_SECONDS = 10 * 365 * 24 * 3600;

interface Taint {
  key: string;
  effect: string;
  [field: string]: unknown;
}
type ManagedCluster = KubeObject & {
  spec?: { taints?: Taint[] };
  status?: {
    apiserverURL?: string;
    allocatable?: Record<string, string>;
    lastObservedTime?: string;
    conditions?: Condition[];
  };
};

type Subscription = KubeObject & { spec?: { schedulingStrategy?: string }; status?: { bindingClusters?: string[] } };

interface Seen {
  readonly namespace: KubeObject | undefined;
  readonly cluster: ManagedCluster | undefined;
  /** Read only when it leaves: Subscriptions bound to it. */
  readonly bound: readonly Subscription[];
  /** Read only when it leaves: objects that Clusternet created from them in its namespace. */
  readonly made: readonly KubeObject[];
}

/**
 * Clusternet, which deploys to members itself: a namespace with a ManagedCluster and a deployer Secret, without an
 * agent.
 */
export const clusternetHub: HubType<Seen> = {
  type: 'Clusternet',
  // The namespace, with its prefix, has at most 63 characters.
  nameLimit: 52,
  watches: [CLUSTERNET_CLUSTERS],
  writes: [{ on: 'hub', resource: NAMESPACES }],
  dials: () => 'HubToMember',

  async validate(hub, { member }) {
    if (member?.proxyURL) return ['Clusternet reaches clusters by no proxy: leave member.proxyURL of the Hub out'];
    const missing: string[] = [];
    for (const kind of [CLUSTERNET_CLUSTERS, SUBSCRIPTIONS])
      if (!(await hub.serves(kind))) missing.push(`${kind.plural}.${kind.group}/${kind.version}`);
    return missing.length > 0 ? [`the hub serves no ${missing.join(', ')}: install Clusternet`] : [];
  },

  // Clusternet reads the token once, and never again until it is restarted.
  identities: (member, { clusternet }) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: rulesOf(clusternet?.rights),
      life: 'forever',
    },
  ],

  // A cluster registered by an agent has the URL that the agent reports.
  async foreignEntry(hub, { endpoint }) {
    const all = (await hub.list(CLUSTERNET_CLUSTERS)) as ManagedCluster[];
    const found = all.find((one) => isForeign(one) && one.status?.apiserverURL === endpoint.server);
    if (!found) return undefined;
    const whyNot = `ManagedCluster ${keyOf(found)} of the hub has an agent of somebody else's`;
    return { name: found.metadata.name, places: [takenOver(CLUSTERNET_CLUSTERS, found)], whyNot };
  },

  async observe(hub, _inside, member) {
    const name = namespaceName(member);
    const [namespace, cluster] = await Promise.all([
      hub.get(NAMESPACES, name),
      hub.get(CLUSTERNET_CLUSTERS, member.name, name) as Promise<ManagedCluster | undefined>,
    ]);
    // Nothing is read in a foreign namespace, since what is found may be deleted.
    if (member.closed !== 'Leaving' || namespace?.metadata.labels?.[LABELS.membership] === undefined)
      return { namespace, cluster, bound: [], made: [] };
    const labelSelector = `${CLUSTER_ID}=${idOf(member, namespace)}`;
    const [subscriptions, ...made] = await Promise.all([
      hub.list(SUBSCRIPTIONS) as Promise<Subscription[]>,
      ...MADE.map((kind) => hub.list(kind, { namespace: name, labelSelector })),
    ]);
    const key = `${name}/${member.name}`;
    const bound = subscriptions.filter(({ status }) => status?.bindingClusters?.includes(key));
    return { namespace, cluster, bound, made: made.flat() };
  },

  join(member, _spec, { namespace, cluster }) {
    const token = member.credentials[ACCESS]?.token;
    const id = idOf(member, namespace);
    const shown = cluster?.status?.allocatable ?? {};
    const isShown = Object.keys(amounts(member.capacity)).every((resource) => resource in shown);
    return [
      { type: 'IdentityReady' },
      {
        type: 'CredentialsReady',
        apply: token ? [namespaceWanted(member, id), deployerSecret(member, id, token)] : [],
      },
      {
        type: 'Registered',
        apply: [clusterWanted(member, id, cluster)],
        waiting: cluster?.status?.lastObservedTime ? undefined : `ManagedCluster ${member.name} has no status yet`,
      },
      {
        type: 'CapacityVisible',
        waiting: isShown ? undefined : `ManagedCluster ${member.name} does not show the capacity of the cluster yet`,
      },
    ];
  },

  leave(member, _spec, { namespace, cluster, bound, made }) {
    const id = idOf(member, namespace);
    const left = member.answers ? deployed(made, bound) : [];
    return [
      { apply: cluster ? [clusterWanted(member, id, cluster)] : [], places: [] },
      {
        // Without the Secret Clusternet declares the cluster lost, and leaves its deployments there.
        places: [{ on: 'hub', resource: CLUSTERNET_CLUSTERS, namespace: namespaceName(member), name: member.name }],
        waiting: left.length > 0 ? `Clusternet takes Description ${left.join(', ')} out of the cluster` : undefined,
      },
      { places: [secretAt(namespaceName(member), DEPLOYER)] },
      {
        places: [{ on: 'hub', resource: NAMESPACES, name: namespaceName(member) }],
        force: made.map((one) => traceOf(one, id)),
      },
    ];
  },

  // A replicating Subscription is unbound; a dividing one is not divided again before it is changed.
  drains: () => 'Deletes',
  // A taint also deletes existing deployments of Subscriptions: it is set only when there are none, or when deletion
  // is allowed.
  cordon: (member, { drain }, { namespace, cluster, bound }) =>
    cluster && (bound.length === 0 || drain?.allowDelete)
      ? [clusterWanted(member, idOf(member, namespace), cluster)]
      : [],
  placements: (_member, { bound }) => bound.map((one) => `Subscription ${keyOf(one)}`),
  capacity: (_member, { cluster }) => cluster?.status?.allocatable,
};

const namespaceName = ({ name }: Member): string => `clusternet-${name}`;

/**
 * Clusternet's id of a cluster. A cluster that joins again gets another id, since Clusternet caches its connection and
 * token by id. The id stays while the namespace exists.
 */
function idOf(member: Member, namespace: KubeObject | undefined): string {
  const known = namespace?.metadata.labels?.[CLUSTER_ID];
  if (known) return known;
  const hash = createHash('sha256').update(`${member.id}/${member.credentials[ACCESS]?.token}`).digest('hex');
  return hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

const labelsOf = ({ name }: Member, id: string) => ({ ...CREATED_BY, [CLUSTER_ID]: id, [CLUSTER_NAME]: name });

function namespaceWanted(member: Member, id: string): WantedObject {
  const labels = { ...labelsOf(member, id), ...podSecurityLabels('restricted') };
  const metadata = { name: namespaceName(member), labels };
  return { on: 'hub', resource: NAMESPACES, object: { apiVersion: 'v1', kind: 'Namespace', metadata } };
}

function deployerSecret(member: Member, id: string, token: string): WantedObject {
  const { server, ca = '' } = member.endpoint;
  const texts = { 'apiserver-advertise-url': server, 'ca.crt': ca, token };
  return secretWith(secretAt(namespaceName(member), DEPLOYER), texts, { labels: labelsOf(member, id) });
}

function clusterWanted(member: Member, id: string, live: ManagedCluster | undefined): WantedObject {
  const { name, closed, labels } = member;
  const leaves = closed === 'Leaving';
  const wanted: WantedObject = {
    on: 'hub',
    resource: CLUSTERNET_CLUSTERS,
    basedOn: live?.metadata.resourceVersion,
    object: {
      apiVersion: 'clusters.clusternet.io/v1beta1',
      kind: 'ManagedCluster',
      metadata: {
        name,
        namespace: namespaceName(member),
        // Subscriptions select by these labels: a change of the cluster must not delete its deployments.
        labels: { ...(leaves ? live?.metadata.labels : labels), ...labelsOf(member, id) },
      },
      spec: {
        clusterId: id,
        clusterType: 'StandardCluster',
        syncMode: 'Push',
        taints: taints(live?.spec?.taints ?? [], closed),
      },
    },
  };
  return leaves ? wanted : { ...wanted, status: statusOf(member, live) };
}

const OUR_TAINTS = { Initializing: `${GROUP}/initializing`, Leaving: `${GROUP}/leaving` };

/** The ManagedCluster's taints: foreign ones stay, Coppice's own is set or removed. */
function taints(live: readonly Taint[], closed: Member['closed']): Taint[] {
  const others = live.filter(({ key }) => !Object.values(OUR_TAINTS).includes(key));
  // Deployments on a sleeping cluster stay: condition Ready=False keeps new ones away and deletes nothing.
  if (!closed || closed === 'Asleep') return others;
  return [...others, { key: OUR_TAINTS[closed], effect: 'NoSchedule' }];
}

/** Status that an agent would report. */
function statusOf({ answers, closed, version, capacity, endpoint }: Member, live: ManagedCluster | undefined) {
  const why = closed === 'Asleep' ? closed : answers ? undefined : 'Silent';
  const isReady = why === undefined;
  const message = isReady ? 'the API server answers' : 'the API server does not answer';
  const reason: Reason<'ManagedCluster', 'Ready'> = why ?? 'ManagedClusterReady';
  const ready = { type: 'Ready', status: isReady ? 'True' : 'False', reason, message };
  // The list is atomic: Clusternet's conditions are repeated unchanged.
  const others = (live?.status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
  return {
    ...(version && { k8sVersion: `v${version}` }),
    apiserverURL: endpoint.server,
    healthz: isReady,
    livez: isReady,
    readyz: isReady,
    appPusher: true,
    heartbeatFrequencySeconds: HEARTBEAT_SECONDS,
    ...(live?.metadata.creationTimestamp && { lastObservedTime: live.metadata.creationTimestamp }),
    allocatable: amounts(capacity),
    capacity: amounts(capacity),
    conditions: [...others, ready],
  };
}

const amounts = ({ gpu, ...rest }: HubAmounts): Record<string, string> => ({
  ...rest,
  ...(gpu && { 'nvidia.com/gpu': gpu }),
});

/**
 * Descriptions that Clusternet must remove from the cluster. Those of a Subscription that divides replicas stay bound
 * and are left out.
 */
function deployed(made: readonly KubeObject[], bound: readonly Subscription[]): string[] {
  const stay = bound.flatMap(({ spec, metadata }) => (spec?.schedulingStrategy === 'Dividing' ? [metadata.uid] : []));
  return made.flatMap(({ kind, metadata: { name, labels } }) =>
    kind === DESCRIPTIONS.kind && !stay.includes(labels?.[SUBSCRIPTION_UID]) ? [name] : [],
  );
}

function traceOf({ kind, metadata: { namespace = '', name } }: KubeObject, id: string): Trace {
  const known = MADE.find((one) => one.kind === kind) ?? BASES;
  return { on: 'hub', resource: known, namespace, name, labels: { [CLUSTER_ID]: id } };
}
