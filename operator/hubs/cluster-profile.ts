import { ANNOTATIONS, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import type { SaidAs } from '../api/reasons.ts';
import { type KubeObject, type Resource, SECRETS } from '../kube/resources.ts';
import { writeKubeconfigText } from '../pki/kubeconfig.ts';
import {
  type HubAmounts,
  type HubType,
  type Identity,
  isForeign,
  type Member,
  type Place,
  takenOver,
  type WantedObject,
} from './contract.ts';
import { decisionsFor, demandIn, PLACEMENTDECISIONS, placedIn } from './placement-decisions.ts';
import { rangeNotes } from './range-notes.ts';
import { accountName, MANAGE_RULES } from './rights.ts';
import { secretAt, secretWith } from './secrets.ts';

const GROUP = 'multicluster.x-k8s.io';
export const CLUSTERPROFILES: Resource = {
  group: GROUP,
  version: 'v1alpha1',
  plural: 'clusterprofiles',
  kind: 'ClusterProfile',
  namespaced: true,
};

/** `spec.clusterManager.name` of Coppice's profiles; immutable. */
const MANAGER = 'coppice';
/** Label by which consumers exclude a profile. */
const CLOSED = `${LABELS.membership}-closed`;
/** Property with the UID of the cluster's namespace kube-system, named as in the about API. */
const ID = 'id.k8s.io';
const ACCESS = 'access';
const DAY = 24 * 3600;

const READ = ['get', 'list', 'watch'];
/** Read access to everything that people look at, without Secrets. */
const READ_RULES: Identity['rules'] = [
  {
    apiGroups: [''],
    resources: [
      'configmaps',
      'endpoints',
      'events',
      'limitranges',
      'namespaces',
      'nodes',
      'persistentvolumeclaims',
      'persistentvolumes',
      'pods',
      'pods/log',
      'replicationcontrollers',
      'resourcequotas',
      'serviceaccounts',
      'services',
    ],
    verbs: READ,
  },
  {
    apiGroups: [
      'apps',
      'autoscaling',
      'batch',
      'discovery.k8s.io',
      'metrics.k8s.io',
      'networking.k8s.io',
      'policy',
      'scheduling.k8s.io',
      'storage.k8s.io',
      GROUP,
    ],
    resources: ['*'],
    verbs: READ,
  },
];

interface Seen {
  readonly profile: KubeObject | undefined;
  /** PlacementDecisions that name the profile, as `namespace/name`. */
  readonly decisions: readonly string[];
}

/**
 * The cluster inventory of SIG-Multicluster, which Kueue, Argo CD, OCM and others read: one ClusterProfile per cluster,
 * with an access provider.
 */
export const clusterProfileHub: HubType<Seen> = {
  type: 'ClusterProfile',
  // A label value, for example of `x-k8s.io/cluster-manager`.
  nameLimit: 63,
  watches: [CLUSTERPROFILES],
  dials: () => 'Neither',

  async validate(hub) {
    if (await hub.serves(CLUSTERPROFILES)) return [];
    return [
      `the hub serves no ${CLUSTERPROFILES.plural}.${GROUP}/${CLUSTERPROFILES.version}: install its CustomResourceDefinition`,
    ];
  },

  identities: (member, spec) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: spec.clusterProfile?.rights === 'Manage' ? MANAGE_RULES : READ_RULES,
      life: DAY,
    },
  ],

  async foreignEntry(hub, member, spec) {
    const wanted = profilePlace(member, spec);
    const profiles = await hub.list(CLUSTERPROFILES);
    const found = profiles.find((one) => isForeign(one) && propertiesOf(one).get(ID) === member.id);
    if (!found) return undefined;
    const { name, namespace } = found.metadata;
    const { clusterManager } = (found.spec ?? {}) as { clusterManager?: { name?: string } };
    const what = `ClusterProfile ${namespace}/${name} of the hub`;
    const whyNot =
      clusterManager?.name !== MANAGER
        ? `${what} is of cluster manager ${clusterManager?.name}, which cannot be changed`
        : namespace !== wanted.namespace
          ? `${what} is not in namespace ${wanted.namespace}`
          : undefined;
    return { name, places: [takenOver(CLUSTERPROFILES, found)], ...(whyNot && { whyNot }) };
  },

  async observe(hub, _cluster, member, spec) {
    const { namespace, name } = profilePlace(member, spec);
    const [profile, decisions] = await Promise.all([
      hub.get(CLUSTERPROFILES, name, namespace),
      member.closed === 'Leaving' ? hub.list(PLACEMENTDECISIONS) : [],
    ]);
    return { profile, decisions: decisionsFor(decisions, namespace, name) };
  },

  join(member, spec) {
    const token = member.credentials[ACCESS]?.token;
    return [
      { type: 'IdentityReady' },
      { type: 'CredentialsReady', apply: token ? [accessSecret(member, spec, token)] : [] },
      { type: 'Registered', apply: [profileObject(member, spec)] },
      // Coppice itself reports the capacity in the profile, so there is nothing to wait for.
      { type: 'CapacityVisible' },
    ];
  },

  leave: (member, spec) => [
    { places: [profilePlace(member, spec)] },
    { places: [{ ...profilePlace(member, spec), resource: SECRETS }] },
  ],

  // Schedulers see the label; moving existing placements is up to them.
  drains: () => 'Waits',
  cordon: (member, spec) => [profileObject(member, spec)],
  placements: (_member, { decisions }) => decisions.map((decision) => `PlacementDecision ${decision}`),
  capacity: (_member, { profile }) => amountsIn(profile),
  demand: async (hub, spec) => demandIn(await hub.list(PLACEMENTDECISIONS), spec),
  placed: async (hub, spec) => placedIn(await hub.list(PLACEMENTDECISIONS), spec),
  demandWatch: {
    resources: [PLACEMENTDECISIONS],
    says: ({ metadata }) => metadata.annotations?.[ANNOTATIONS.unplaced],
  },
};

const profilePlace = (member: Member, spec: HubSpec): Place & { namespace: string } => ({
  on: 'hub',
  resource: CLUSTERPROFILES,
  namespace: spec.clusterProfile?.namespace ?? member.cluster.namespace,
  name: member.name,
});

function profileObject(member: Member, spec: HubSpec): WantedObject {
  const { namespace, name } = profilePlace(member, spec);
  const { cluster, closed, labels } = member;
  return {
    on: 'hub',
    resource: CLUSTERPROFILES,
    object: {
      apiVersion: `${GROUP}/v1alpha1`,
      kind: 'ClusterProfile',
      metadata: {
        name,
        namespace,
        labels: { ...labels, 'x-k8s.io/cluster-manager': MANAGER, ...(closed && { [CLOSED]: closed }) },
      },
      spec: { displayName: `${cluster.namespace}/${cluster.name}`, clusterManager: { name: MANAGER } },
    },
    status: profileStatus(member, namespace),
  };
}

function profileStatus(member: Member, namespace: string): Record<string, unknown> {
  const { id, zones, ranges, capacity, endpoint, version, labels, closed, answers } = member;
  const { server, ca, proxyURL } = endpoint;
  const properties: Record<string, string> = {
    // KEP-2149's name for a cluster's identity.
    'cluster.clusterset.k8s.io': member.name,
    [ID]: id,
    ...(zones.length > 0 && { zones: zones.join(',') }),
    ...rangeNotes(ranges),
    ...labels,
    ...Object.fromEntries(Object.entries(capacity).map(([resource, amount]) => [`${resource}.allocatable`, amount])),
  };
  const cluster = {
    server,
    ...(ca && { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(proxyURL && { 'proxy-url': proxyURL }),
  };
  // Configuration of the cluster inventory's two access plugins: each gets the Secret of accessSecret.
  const provider = (name: string, extension: Record<string, string>) => ({
    name,
    cluster: { ...cluster, extensions: [{ name: 'client.authentication.k8s.io/exec', extension }] },
  });
  return {
    ...(version && { version: { kubernetes: `v${version}` } }),
    conditions: conditionsOf(answers, closed),
    properties: Object.entries(properties)
      .filter(([, value]) => value !== '')
      .map(([name, value]) => ({ name, value })),
    accessProviders: [
      provider('secretreader', { clusterName: member.name }),
      provider('kubeconfig-secretreader', { name: member.name, namespace, key: 'value' }),
    ],
  };
}

function accessSecret(member: Member, spec: HubSpec, token: string): WantedObject {
  const { namespace, name } = profilePlace(member, spec);
  const { server, ca = '' } = member.endpoint;
  const text = writeKubeconfigText({ server, ca, token, name: member.name, user: accountName(member) });
  return secretWith(secretAt(namespace, name), { token, value: text });
}

const propertiesOf = (profile: KubeObject | undefined): Map<string, string> =>
  new Map(
    ((profile?.status?.properties ?? []) as { name: string; value: string }[]).map((one) => [one.name, one.value]),
  );

function amountsIn(profile: KubeObject | undefined): HubAmounts {
  const suffix = '.allocatable';
  return Object.fromEntries(
    [...propertiesOf(profile)]
      .filter(([name]) => name.endsWith(suffix))
      .map(([name, value]) => [name.slice(0, -suffix.length), value]),
  );
}

function conditionsOf(answers: boolean, closed: Member['closed']) {
  const healthy: SaidAs<'ClusterProfile', 'ControlPlaneHealthy'> = answers
    ? { type: 'ControlPlaneHealthy', status: 'True', reason: 'Answers', message: 'the API server answers' }
    : { type: 'ControlPlaneHealthy', status: 'False', reason: 'Silent', message: 'the API server does not answer' };
  const joined: SaidAs<'ClusterProfile', 'Joined'> = closed
    ? { type: 'Joined', status: 'False', reason: closed, message: 'nothing new is to be placed on the cluster' }
    : { type: 'Joined', status: 'True', reason: 'Joined', message: 'the cluster takes work' };
  return [healthy, joined];
}
