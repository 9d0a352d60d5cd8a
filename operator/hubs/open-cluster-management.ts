import { podSecurityLabels } from '../kube/pod-security.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  CSRS,
  DEPLOYMENTS,
  type KubeObject,
  keyOf,
  NAMESPACES,
  RBAC_ROLES,
  type Resource,
  ROLEBINDINGS,
} from '../kube/resources.ts';
import { writeKubeconfigText } from '../pki/kubeconfig.ts';
import { agentRequestsOf, approval, bootstrapOf, requestTrace } from './agent-requests.ts';
import {
  type ApiServerEndpoint,
  type ForeignEntry,
  type HubStep,
  type HubType,
  isForeign,
  type Member,
  type Reader,
  type RemovalStep,
  type Trace,
  takenOver,
  type WantedObject,
} from './contract.ts';
import {
  ADDONS,
  amountsIn,
  CLUSTER_NAME,
  DOMAIN,
  isOurManagedCluster,
  KLUSTERLETS,
  MANAGEDCLUSTERS,
  MANIFESTWORKS,
  type ManagedCluster,
  managedCluster,
  whyNotAvailable,
} from './managed-cluster.ts';
import { memberName } from './member-name.ts';
import { accountName, MANAGE_RULES } from './rights.ts';
import { secretAt, secretWith } from './secrets.ts';

/** Claim of a ManagedCluster with the UID of the cluster's namespace kube-system, reported by its agent. */
const ID = 'id.k8s.io';

/** A ManagedCluster that a foreign agent registered for the same cluster. */
async function foreignEntryIn(hub: Reader, { id }: Member): Promise<ForeignEntry | undefined> {
  const found = (await hub.list(MANAGEDCLUSTERS)).find((one) => {
    const claims = (one.status?.clusterClaims ?? []) as { name?: string; value?: string }[];
    return isForeign(one) && claims.some(({ name, value }) => name === ID && value === id);
  });
  if (!found) return undefined;
  const { name } = found.metadata;
  // The foreign agent has a certificate for its own name, and would continue beside Coppice's.
  const whyNot = `ManagedCluster ${name} of the hub has an agent of somebody else's`;
  return { name, places: [takenOver(MANAGEDCLUSTERS, found)], whyNot };
}

const DAY = 24 * 3600;
/** Longest agent name: namespaces `open-cluster-management-<name>` in members then have at most 57 characters. */
const AGENTS_LIMIT = 33;

interface Seen {
  readonly cluster: ManagedCluster | undefined;
  /** Pending certificate requests of its agent. */
  readonly requests: readonly string[];
  /** Image of the hub's klusterlet operator, which its agents use too. */
  readonly image: string | undefined;
  /** Read only when it leaves or sleeps: its ManifestWorks, and whether the hub recreates each elsewhere. */
  readonly works: readonly { readonly key: string; readonly moves: boolean }[];
}

/** Open Cluster Management with its members' agents in the hub (mode SingletonHosted): members pull no image. */
export const openClusterManagementHub: HubType<Seen> = {
  type: 'OpenClusterManagement',
  // The name is a namespace of the hub and a label value.
  nameLimit: 63,
  watches: [MANAGEDCLUSTERS],
  writes: [
    { on: 'hub', resource: KLUSTERLETS },
    { on: 'hub', resource: NAMESPACES },
  ],
  dials: () => 'HubToMember',
  foreignEntry: foreignEntryIn,

  async validate(hub) {
    const needed = [MANAGEDCLUSTERS, KLUSTERLETS];
    const served = await Promise.all(needed.map((resource) => hub.serves(resource)));
    return needed
      .filter((_, at) => !served[at])
      .map(
        ({ plural, group }) =>
          `the hub serves no ${plural}.${group}: install its cluster-manager and its klusterlet operator`,
      );
  },

  identities: (member) => [
    {
      name: 'access',
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      // The agent creates accounts with rights of their own there, and objects of ManifestWorks.
      rules: MANAGE_RULES,
      life: DAY,
    },
    {
      name: 'bootstrap',
      on: 'hub',
      // One account per member: its name tells whose certificate request is approved.
      account: bootstrapOf(member),
      rules: [
        { apiGroups: ['certificates.k8s.io'], resources: [CSRS.plural], verbs: ['create', 'get', 'list', 'watch'] },
        { apiGroups: [MANAGEDCLUSTERS.group], resources: [MANAGEDCLUSTERS.plural], verbs: ['get'] },
      ],
      life: DAY,
    },
  ],

  async observe(hub, _cluster, member, spec) {
    const leaves = member.closed === 'Leaving';
    const [cluster, requests, image, works] = await Promise.all([
      hub.get(MANAGEDCLUSTERS, member.name) as Promise<ManagedCluster | undefined>,
      leaves ? [] : agentRequestsOf(hub, member),
      leaves || spec.member?.agentImage ? undefined : operatorImage(hub),
      leaves || member.closed === 'Asleep' ? worksOf(hub, member) : [],
    ]);
    return { cluster, requests, image, works };
  },

  join(member, spec, { cluster, requests, image: ofHub }): readonly HubStep[] {
    const { access, bootstrap } = member.credentials;
    const image = spec.member?.agentImage ?? ofHub;
    const shown = amountsIn(cluster);
    const hidden = Object.keys(member.capacity).filter((resource) => !(resource in shown));
    const noImage =
      'the hub has no Deployment open-cluster-management/klusterlet to take the image of its agents from: set member.agentImage of the Hub';
    return [
      { type: 'IdentityReady' },
      {
        type: 'CredentialsReady',
        apply: [
          agentNamespace(member),
          ...(access ? [secret(member, 'external-managed-kubeconfig', member.endpoint, access.token)] : []),
          ...(bootstrap ? [secret(member, 'bootstrap-hub-kubeconfig', member.hub, bootstrap.token)] : []),
        ],
      },
      {
        type: 'Registered',
        apply: [
          managedCluster(member, spec, cluster),
          ...(image ? [klusterlet(member, image)] : []),
          ...requests.map(approval),
        ],
        traces: [
          ...requests.map((name) => requestTrace(member, name)),
          ...(isOurManagedCluster(member, cluster) ? traces(member) : []),
        ],
        waiting: image ? whyNotAvailable(member.name, cluster) : noImage,
      },
      {
        type: 'CapacityVisible',
        waiting: hidden.length > 0 ? `ManagedCluster ${member.name} does not show ${hidden.join(', ')} yet` : undefined,
      },
    ];
  },

  // The agents delete the objects of ManifestWorks, and the operator uses their Secrets to remove them from the
  // member: hence the order.
  leave: (member): readonly RemovalStep[] => [
    { places: [{ on: 'hub', resource: MANAGEDCLUSTERS, name: member.name }] },
    {
      // The hub creates the namespace and keeps it: a later cluster of the same name would find its contents.
      places: [clusterNamespace(member)],
      // Only agents remove these finalizers, and those of a dead member never do. The binding's finalizers wait for
      // the works.
      force: [ADDONS, MANIFESTWORKS, ROLEBINDINGS].map((resource) => ({ on: 'hub', resource, within: member.name })),
    },
    { places: [{ on: 'hub', resource: KLUSTERLETS, name: agentsOf(member) }] },
  ],

  // Removed from PlacementDecisions, it loses the works of a ManifestWorkReplicaSet, which move; a ManifestWork
  // written by hand has no other place.
  drains: (_spec, { works }) => (works.every(({ moves }) => moves) ? 'Moves' : 'Deletes'),
  cordon: (member, spec, { cluster }) => (cluster ? [managedCluster(member, spec, cluster)] : []),
  drain: (member, spec, { cluster }) => (cluster ? [managedCluster(member, spec, cluster, true)] : []),
  placements: (_member, { works }) => works.map(({ key }) => `ManifestWork ${key}`),
  capacity: (_member, { cluster }) => amountsIn(cluster),
};

/** Name of its Klusterlet and of the Klusterlet's objects in the member, which may be in several hubs. */
const agentsName = ({ hubName, name }: Member): string => memberName(hubName, name, AGENTS_LIMIT);

/** Name of the Klusterlet, and of its agents' namespace. */
const agentsOf = (member: Member): string => `klusterlet-${agentsName(member)}`;

/**
 * The agents' namespace. Agents set no seccomp profile (manifests/klusterlet of OCM), which level `restricted` would
 * reject.
 */
const agentNamespace = (member: Member): WantedObject => ({
  on: 'hub',
  resource: NAMESPACES,
  object: {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: agentsOf(member), labels: podSecurityLabels('baseline') },
  },
});

const clusterNamespace = ({ name }: Member): Trace => ({
  on: 'hub',
  resource: NAMESPACES,
  name,
  labels: { [CLUSTER_NAME]: name },
});

/**
 * Objects that the hub creates for the cluster and its agents. Unless the leave is forced, the hub deletes all but the
 * namespace itself.
 */
function traces(member: Member): Trace[] {
  const agents = agentsOf(member);
  const ofAgents = (resource: Resource, name: string): Trace => ({
    on: 'hub',
    resource,
    ...(resource.namespaced && { namespace: 'kube-system' }),
    name: `open-cluster-management:management:${agents}${name}`,
    labels: { [`${DOMAIN}/created-by-klusterlet`]: agents },
  });
  const ofCluster = (resource: Resource): Trace => ({
    ...clusterNamespace(member),
    resource,
    name: `open-cluster-management:managedcluster:${member.name}`,
  });
  return [
    clusterNamespace(member),
    ofCluster(CLUSTERROLES),
    ofCluster(CLUSTERROLEBINDINGS),
    ofAgents(CLUSTERROLES, '-registration:addon-management'),
    ofAgents(CLUSTERROLEBINDINGS, '-registration:addon-management'),
    ofAgents(RBAC_ROLES, ':extension-apiserver'),
    ofAgents(ROLEBINDINGS, '-registration:agent'),
    ofAgents(ROLEBINDINGS, '-work:agent'),
  ];
}

function secret(
  member: Member,
  name: string,
  { server, ca = '', proxyURL }: ApiServerEndpoint,
  token: string,
): WantedObject {
  const text = writeKubeconfigText({ server, ca, token, proxyURL, name: 'cluster', user: 'coppice' });
  return secretWith(secretAt(agentsOf(member), name), { kubeconfig: text });
}

const klusterlet = (member: Member, image: string): WantedObject => ({
  on: 'hub',
  resource: KLUSTERLETS,
  object: {
    apiVersion: `${KLUSTERLETS.group}/v1`,
    kind: 'Klusterlet',
    metadata: { name: agentsOf(member) },
    spec: {
      clusterName: member.name,
      // In the member: the default namespace is shared by all Klusterlets, and deleted with the first one.
      namespace: `open-cluster-management-${agentsName(member)}`,
      deployOption: { mode: 'SingletonHosted' },
      imagePullSpec: image,
    },
  },
});

async function operatorImage(hub: Reader): Promise<string | undefined> {
  type Container = { name: string; image?: string };
  type Deployment = KubeObject & { spec?: { template?: { spec?: { containers?: Container[] } } } };
  const deployment = (await hub.get(DEPLOYMENTS, 'klusterlet', 'open-cluster-management')) as Deployment | undefined;
  return deployment?.spec?.template?.spec?.containers?.find(({ name }) => name === 'klusterlet')?.image;
}

async function worksOf(hub: Reader, { name }: Member): Promise<Seen['works']> {
  const works = await hub.list(MANIFESTWORKS, { namespace: name });
  return works
    .filter(({ metadata }) => !metadata.labels?.[`${DOMAIN}/addon-name`])
    .map(({ metadata }) => ({
      key: keyOf({ metadata }),
      moves: `work.${DOMAIN}/manifestworkreplicaset` in (metadata.labels ?? {}),
    }));
}
