import { createHash } from 'node:crypto';
import { GROUP, LABELS } from '../api/group.ts';
import type { Condition } from '../api/meta.ts';
import type { Reason } from '../api/reasons.ts';
import { podSecurityLabels } from '../kube/pod-security.ts';
import { type KubeObject, keyOf, NAMESPACES, type Resource } from '../kube/resources.ts';
import { type Amounts, type HubType, isForeign, type Member, type Trace, takenOver, type Wanted } from './contract.ts';
import { accountName, rulesOf } from './rights.ts';
import { secretAt, secretWith } from './secrets.ts';

const resource = (group: string, version: string, kind: string): Resource => ({
  group: `${group}.clusternet.io`,
  version,
  plural: `${kind.toLowerCase()}s`,
  kind,
  namespaced: true,
});
export const MANAGEDCLUSTERS = resource('clusters', 'v1beta1', 'ManagedCluster');
export const SUBSCRIPTIONS = resource('apps', 'v1alpha1', 'Subscription');
export const BASES = resource('apps', 'v1alpha1', 'Base');
export const DESCRIPTIONS = resource('apps', 'v1alpha1', 'Description');
/** What it makes of Subscriptions in the namespace of a cluster; who ends later comes later. */
const MADE = [resource('apps', 'v1alpha1', 'HelmRelease'), DESCRIPTIONS, BASES];

export const CLUSTER_ID = 'clusters.clusternet.io/cluster-id';
const CLUSTER_NAME = 'clusters.clusternet.io/cluster-name';
export const SUBSCRIPTION_UID = 'apps.clusternet.io/subs.uid';
/** How Clusternet finds what is a cluster's. */
const CREATED_BY = { 'clusternet.io/created-by': 'clusternet-agent' };
/** The Secret by which Clusternet deploys to a cluster. */
export const DEPLOYER = 'child-cluster-deployer';
const ACCESS = 'access';
/** Clusternet takes a cluster for lost after three times this: ten years. There is no agent to report every three minutes. */
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
  /** Only when it leaves: Subscriptions that are bound to it. */
  readonly bound: readonly Subscription[];
  /** Only when it leaves: what Clusternet has made of them in its namespace. */
  readonly made: readonly KubeObject[];
}

/** Clusternet, which deploys to its members itself: a namespace with a ManagedCluster and the Secret of a deployer, and no agent. */
export const clusternetHub: HubType<Seen> = {
  type: 'Clusternet',
  // The namespace, with what is before it, has 63 characters.
  nameLimit: 52,
  watches: [MANAGEDCLUSTERS],
  writes: [{ on: 'hub', resource: NAMESPACES }],
  dials: () => 'HubToMember',

  async validate(hub, { member }) {
    if (member?.proxyURL) return ['Clusternet reaches clusters by no proxy: leave member.proxyURL of the Hub out'];
    const missing: string[] = [];
    for (const kind of [MANAGEDCLUSTERS, SUBSCRIPTIONS])
      if (!(await hub.serves(kind))) missing.push(`${kind.plural}.${kind.group}/${kind.version}`);
    return missing.length > 0 ? [`the hub serves no ${missing.join(', ')}: install Clusternet`] : [];
  },

  // It reads the token once, and never again until it is started anew.
  identities: (member, { clusternet }) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: rulesOf(clusternet?.rights),
      life: 'forever',
    },
  ],

  // A cluster that an agent registered is known by the URL that the agent reports.
  async foreignEntry(hub, { endpoint }) {
    const all = (await hub.list(MANAGEDCLUSTERS)) as ManagedCluster[];
    const found = all.find((one) => isForeign(one) && one.status?.apiserverURL === endpoint.server);
    if (!found) return undefined;
    const whyNot = `ManagedCluster ${keyOf(found)} of the hub has an agent of somebody else's`;
    return { name: found.metadata.name, places: [takenOver(MANAGEDCLUSTERS, found)], whyNot };
  },

  async observe(hub, _inside, member) {
    const name = namespaceName(member);
    const [namespace, cluster] = await Promise.all([
      hub.get(NAMESPACES, name),
      hub.get(MANAGEDCLUSTERS, member.name, name) as Promise<ManagedCluster | undefined>,
    ]);
    // In a namespace that is not ours nothing is looked for, as what is found may be deleted.
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
        // Without it Clusternet takes the cluster for lost, and leaves in it what it has deployed.
        places: [{ on: 'hub', resource: MANAGEDCLUSTERS, namespace: namespaceName(member), name: member.name }],
        waiting: left.length > 0 ? `Clusternet takes Description ${left.join(', ')} out of the cluster` : undefined,
      },
      { places: [secretAt(namespaceName(member), DEPLOYER)] },
      {
        places: [{ on: 'hub', resource: NAMESPACES, name: namespaceName(member) }],
        force: made.map((one) => traceOf(one, id)),
      },
    ];
  },

  // A Subscription that replicates is unbound; one that divides is not divided anew before somebody changes it.
  drains: () => 'Deletes',
  // A taint deletes what Subscriptions have placed there already: it is not set before there is nothing, or that is wanted.
  cordon: (member, { drain }, { namespace, cluster, bound }) =>
    cluster && (bound.length === 0 || drain?.allowDelete)
      ? [clusterWanted(member, idOf(member, namespace), cluster)]
      : [],
  placements: (_member, { bound }) => bound.map((one) => `Subscription ${keyOf(one)}`),
  capacity: (_member, { cluster }) => cluster?.status?.allocatable,
};

const namespaceName = ({ name }: Member): string => `clusternet-${name}`;

/**
 * A cluster that comes again gets another id: Clusternet keeps its connection by the id, and with it the token that it had. As long as the
 * namespace is there it stays the same.
 */
function idOf(member: Member, namespace: KubeObject | undefined): string {
  const known = namespace?.metadata.labels?.[CLUSTER_ID];
  if (known) return known;
  const hash = createHash('sha256').update(`${member.id}/${member.credentials[ACCESS]?.token}`).digest('hex');
  return hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

const labelsOf = ({ name }: Member, id: string) => ({ ...CREATED_BY, [CLUSTER_ID]: id, [CLUSTER_NAME]: name });

function namespaceWanted(member: Member, id: string): Wanted {
  const labels = { ...labelsOf(member, id), ...podSecurityLabels('restricted') };
  const metadata = { name: namespaceName(member), labels };
  return { on: 'hub', resource: NAMESPACES, object: { apiVersion: 'v1', kind: 'Namespace', metadata } };
}

function deployerSecret(member: Member, id: string, token: string): Wanted {
  const { server, ca = '' } = member.endpoint;
  const texts = { 'apiserver-advertise-url': server, 'ca.crt': ca, token };
  return secretWith(secretAt(namespaceName(member), DEPLOYER), texts, { labels: labelsOf(member, id) });
}

function clusterWanted(member: Member, id: string, live: ManagedCluster | undefined): Wanted {
  const { name, closed, labels } = member;
  const leaves = closed === 'Leaving';
  const wanted: Wanted = {
    on: 'hub',
    resource: MANAGEDCLUSTERS,
    basedOn: live?.metadata.resourceVersion,
    object: {
      apiVersion: 'clusters.clusternet.io/v1beta1',
      kind: 'ManagedCluster',
      metadata: {
        name,
        namespace: namespaceName(member),
        // Subscriptions select by them: that the cluster has others by now must not delete what runs there.
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

/** Clusternet and people have taints of their own in the list. */
function taints(live: readonly Taint[], closed: Member['closed']): Taint[] {
  const others = live.filter(({ key }) => !Object.values(OUR_TAINTS).includes(key));
  // What runs on a cluster that sleeps stays there: that it is not Ready keeps new work away, and deletes nothing in it.
  if (!closed || closed === 'Asleep') return others;
  return [...others, { key: OUR_TAINTS[closed], effect: 'NoSchedule' }];
}

/** What an agent would report. */
function statusOf({ answers, closed, version, capacity, endpoint }: Member, live: ManagedCluster | undefined) {
  const why = closed === 'Asleep' ? closed : answers ? undefined : 'Silent';
  const isReady = why === undefined;
  const message = isReady ? 'the API server answers' : 'the API server does not answer';
  const reason: Reason<'ManagedCluster', 'Ready'> = why ?? 'ManagedClusterReady';
  const ready = { type: 'Ready', status: isReady ? 'True' : 'False', reason, message };
  // The list has one owner: those of Clusternet are repeated as they stand.
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

const amounts = ({ gpu, ...rest }: Amounts): Record<string, string> => ({
  ...rest,
  ...(gpu && { 'nvidia.com/gpu': gpu }),
});

/** Descriptions that Clusternet is to take out of the cluster: one of a Subscription that divides replicas stays bound, and is not. */
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
