import { z } from 'zod';
import { type ActedFields, actedWithoutControlPlane, findUnacted, type MadeOf } from './acted.ts';
import { ACTED_ADDONS, addonsSchema } from './addons.ts';
import { clusterSizeSchema, costSchema, DECIMAL } from './cost.ts';
import { ACTED_DNS, clusterDNSSchema, domainStays } from './dns.ts';
import { driftSchema, hibernationSchema, maintenanceSchema, versionSchema } from './maintenance.ts';
import { commonStatus, type KubeObject, nodeCountsSchema, replicaCountsSchema, resourceSchema, time } from './meta.ts';
import {
  cidr,
  count,
  describe,
  duration,
  fixedAtCreation,
  keyed,
  LIMITS,
  labelName,
  list,
  machineTypeName,
  name,
  objectName,
  PATTERNS,
  place,
  type Rule,
  rules,
  text,
} from './schema.ts';
import { distinctZones, MAX_NODES, workerPoolSchema } from './worker-pool.ts';

/** Reference to cloud credentials, for the cluster and for each fallback. */
const credentials = {
  kind: z
    .enum(['CredentialsBinding', 'Secret'])
    .describe(
      'Kind of the object with the credentials. Absent: the CredentialsBinding of that name if it exists, else the Secret.',
    )
    .optional(),
  name: objectName('Name of the CredentialsBinding or Secret.'),
};

const networking = describe(
  z.object({
    pods: cidr("Range of pod addresses. Absent: the profile's. Cannot be changed.").optional(),
    services: cidr("Range of Service addresses. Absent: the profile's. Cannot be changed.").optional(),
    nodes: cidr('Range of node addresses, where the provider makes the network.').optional(),
    authorizedNetworks: list(
      cidr('A range.'),
      100,
      'Who may reach the API server over the internet, where the cloud manages it. Absent: everybody who can authenticate.',
    ).optional(),
  }),
  'Address ranges of the cluster.',
);

const fallback = describe(
  z.object({
    cloudProvider: name(
      LIMITS.label,
      "The cloud. Absent: the cluster's, in another region.",
      PATTERNS.label,
    ).optional(),
    cloudProfile: labelName('The CloudProfile to use. Absent: the one named as cloudProvider.').optional(),
    region: place("Region of that profile. Absent: the profile's default.").optional(),
    zones: distinctZones('Zones that nodes are spread over. Absent: all zones of the region.').optional(),
    machineTypes: list(
      machineTypeName('A machine type of that profile.'),
      16,
      "Machine types of all pools there, in order of preference. Absent: the profile's default, or, with the same profile, those of the pools.",
    ).optional(),
    credentialsRef: z
      .object({
        ...credentials,
      })
      .describe("That cloud's credentials, in the namespace of the cluster. Absent: the cluster's own.")
      .optional(),
  }),
  'Another place for the cluster.',
);
/** A fallback place of a cluster, as written by a person. */
export type Fallback = z.output<typeof fallback>;

const profileOf = (object: string) =>
  `(has(${object}.cloudProfile) ? ${object}.cloudProfile : has(${object}.cloudProvider) ? ${object}.cloudProvider : '')`;

const attached = rules(
  z.object({
    kubeconfigSecretRef: z
      .object({
        name: objectName('Name of the Secret, for example <cluster>-kubeconfig of Cluster API.'),
        key: text(LIMITS.name, 'Key in the Secret. Absent: value.', /^[-._a-zA-Z0-9]+$/).optional(),
      })
      .describe(
        'Secret with a kubeconfig of the cluster, in the same namespace. One that names files, plugins or a proxy, or skips verification, is refused; so are addresses of the platform.',
      )
      .optional(),
    garden: z.literal(true).describe("The cluster is the garden itself. Only in the operator's namespace.").optional(),
    price: z
      .object({
        hourly: text(32, 'Hourly cost of the cluster, as a decimal number.', DECIMAL),
        currency: name(3, 'ISO 4217 code.', /^[A-Z]{3}$/),
      })
      .describe('Cost of the cluster, if its owner knows it. Absent: the status has no cost.')
      .optional(),
  }),
  {
    rule: 'has(self.kubeconfigSecretRef) != has(self.garden)',
    message: 'say which cluster it is: kubeconfigSecretRef, or garden: true',
  },
).describe(
  'The cluster, which others have made (mode Attached). Nothing of it is changed but what its memberships in hubs need, and nothing else is ever deleted in it.',
);

/** Fields of made or adopted clusters that attached clusters must not have. */
const OF_MADE = [
  'cloudProvider',
  'cloudProfile',
  'dataPlaneNodes',
  'zones',
  'kubernetes',
  'machineType',
  'machineTypes',
  'fallback',
  'pools',
  'networking',
  'dns',
  'credentialsRef',
  'drift',
  'hibernation',
  'maintenance',
  'addons',
  'adopt',
];
const isAttachedIn = (object: string) => `(has(${object}.mode) && ${object}.mode == 'Attached')`;

export const workerClusterSpec = rules(
  z.object({
    cloudProvider: name(
      LIMITS.label,
      'Where the cluster runs: aws, gcp, azure, local, or the type of any other CloudProfile. Required, but for mode Attached, which has none. Cannot be changed.',
      PATTERNS.label,
    ).optional(),
    controlPlaneNodes: z
      .literal([1, 3, 5])
      .default(1)
      .describe(
        'How many members the control plane has: 1, 3 or 5 (etcd needs an odd number). Hosted: replicas of etcd and kube-apiserver in the seed. SelfManaged: machines. Managed: the cloud decides, and a condition says so.',
      ),
    dataPlaneNodes: count(
      0,
      MAX_NODES,
      'How many nodes run workloads. With pools, how many they have together. kubectl scale and autoscalers write this field. Absent, with pools: the operator fills in what they have, for the scale subresource; see status.defaultedNodes.',
    ).optional(),
    cloudProfile: labelName(
      'The CloudProfile to use. Absent: the one named as cloudProvider. Cannot be changed.',
    ).optional(),
    mode: z
      .enum(['Hosted', 'Managed', 'SelfManaged', 'Attached'])
      .describe(
        "Who runs the control plane. Hosted: Coppice, as pods in a seed cluster. Managed: the cloud's own service (EKS, GKE, AKS). SelfManaged: machines of the cluster itself. Attached: others; the cluster is only looked at, and joins hubs. Absent: the profile's default. Cannot be changed.",
      )
      .optional(),
    region: place("Region of the profile. Absent: the profile's default. Cannot be changed.").optional(),
    zones: distinctZones('Zones that nodes are spread over. Absent: all zones of the region.').optional(),
    kubernetes: z
      .object({
        version: versionSchema(
          'Version, for example 1.36.3; a minor version alone (1.36) means its newest supported patch. Absent: the newest supported. Cannot go back, nor skip a minor version.',
        ).optional(),
      })
      .describe('Kubernetes version of the cluster.')
      .optional(),
    machineType: machineTypeName("Machine type of the nodes. Absent: the profile's default.").optional(),
    machineTypes: list(
      machineTypeName('A machine type of the profile.'),
      16,
      'Machine types in order of preference, after machineType if that is named too. When one is sold out in all zones, new nodes are of the next. Nodes that run stay as they are. Coppice asks for the preferred one again when more nodes are needed.',
    ).optional(),
    fallback: list(
      fallback,
      8,
      'Places where the cluster is made instead, tried in order, when none of its machine types is left in its own place and those before. Mode Managed only, and only until the cluster was made once. What is half made is deleted first; a cluster that people may have put something into never moves. Condition CapacityAvailable says what was tried.',
    ).optional(),
    pools: keyed(
      workerPoolSchema,
      50,
      'name',
      'Groups of nodes that differ. Nodes are given to pools in the order written: first each one its minimum, then each one up to its maximum.',
    ).optional(),
    networking: networking.optional(),
    dns: clusterDNSSchema
      .describe("DNS of the cluster, in mode Hosted: a cloud's own service names its API servers itself.")
      .optional(),
    credentialsRef: z
      .object({
        ...credentials,
        namespace: labelName(
          "Its namespace. Only the cluster's own: nobody uses the credentials of others.",
        ).optional(),
      })
      .describe("The cloud's credentials.")
      .optional(),
    drift: driftSchema.optional(),
    hibernation: hibernationSchema
      .describe(
        "Sleep: at once, or by the clock; what was said last holds, be it by a schedule or by a change of enabled. Mode Hosted: no nodes and no pods of the control plane; its data stays. Mode Managed: pools have no nodes; the cloud's control plane stays, and costs what it costs.",
      )
      .optional(),
    maintenance: maintenanceSchema.optional(),
    addons: addonsSchema.optional(),
    ttl: duration(
      'How long the cluster lives from its creation, for example 8h; then it is deleted. Condition Expiring says so beforehand; a longer ttl, or none, prolongs it.',
    ).optional(),
    adopt: z
      .object({
        id: name(
          512,
          "The provider's name of the cluster. EKS: name or ARN. GKE: name or projects/<project>/locations/<location>/clusters/<name>. AKS: resource id or <resource group>/<name>. Cannot be changed.",
        ),
        deletionPolicy: z
          .enum(['Release', 'Delete'])
          .describe(
            'What becomes of the cluster when this object is deleted. Release: it stays as it is, and only what was made in it for this object goes. Delete: it is deleted. Absent: Release.',
          )
          .optional(),
      })
      .describe(
        'Take over a cluster that exists already, instead of making one (mode Managed). It is never replaced: what others chose stays; pools are node groups (node pools, agent pools) of ours beside those that it has.',
      )
      .optional(),
    attached: attached.optional(),
    deletionProtection: z.boolean().describe('Whether the API server refuses to delete this object.').optional(),
  }),
  {
    rule: `has(self.cloudProvider) || ${isAttachedIn('self')}`,
    message: 'say where the cluster runs: only one of mode Attached has no cloudProvider',
    reason: 'FieldValueRequired',
    fieldPath: '.cloudProvider',
  },
  {
    rule: `${isAttachedIn('self')} == has(self.attached)`,
    message: 'mode Attached and attached go together',
  },
  {
    rule: `!${isAttachedIn('self')} || (self.controlPlaneNodes == 1 && !(${OF_MADE.map((field) => `has(self.${field})`).join(' || ')}))`,
    message:
      'an attached cluster is as others made it: of its spec only mode, attached, region, ttl and deletionProtection can be said',
    reason: 'FieldValueForbidden',
  },
  {
    rule: `${isAttachedIn('self')} == ${isAttachedIn('oldSelf')}`,
    message: 'mode cannot be changed, added or removed between Attached and others: make a new cluster instead',
  },
  {
    rule: 'has(self.dataPlaneNodes) || has(self.pools) || has(self.adopt) || has(self.attached)',
    message: 'say how many nodes: dataPlaneNodes, or pools with a minimum each',
  },
  {
    rule: `!has(self.pools) || self.pools.map(p, has(p.minimum) ? p.minimum : 0).sum() <= ${MAX_NODES}`,
    message: `a cluster has at most ${MAX_NODES} nodes`,
  },
).describe('Desired state of the cluster.');
/** Fields that never change once something was made. */
export const FIXED_ONCE_MADE: readonly Rule[] = [
  {
    rule: 'has(self.cloudProvider) == has(oldSelf.cloudProvider) && (!has(self.cloudProvider) || self.cloudProvider == oldSelf.cloudProvider)',
    message: 'cloudProvider cannot be changed after creation: make a new cluster instead',
  },
  {
    rule: `${profileOf('self')} == ${profileOf('oldSelf')}`,
    message: 'cloudProfile cannot be changed after creation: make a new cluster instead',
  },
  fixedAtCreation('region'),
  fixedAtCreation('mode'),
  fixedAtCreation('adopt', 'id'),
  fixedAtCreation('networking', 'pods'),
  fixedAtCreation('networking', 'services'),
  domainStays,
];

/** Spec of a WorkerCluster, with the API server's defaults. */
export type WorkerClusterSpec = z.output<typeof workerClusterSpec>;
export const workerClusterStatus = z
  .object({
    ...commonStatus,
    phase: text(
      64,
      'One word for people: Pending, Creating, Ready, Updating, Hibernated, Deleting, Failed.',
    ).optional(),
    mode: z
      .enum(['Hosted', 'Managed', 'SelfManaged', 'Attached'])
      .describe('Mode of the cluster: where its control plane runs.')
      .optional(),
    provider: text(63, 'The provider that makes the nodes.').optional(),
    simulated: z
      .boolean()
      .describe('True: the nodes are simulated. Nothing runs in a cloud, and nothing is billed.')
      .optional(),
    region: text(63, 'Region that the cluster is in.').optional(),
    kubernetesVersion: text(64, 'Version that the control plane runs.').optional(),
    endpoint: text(2048, 'URL of the API server.').optional(),
    clusterIdentity: text(
      256,
      'Of an attached cluster: UID of its namespace kube-system, as it was first seen. A kubeconfig that points to another cluster is not used before somebody approves it.',
    ).optional(),
    shootRef: z
      .object({
        name: text(LIMITS.name, 'Name of the Shoot.'),
        namespace: text(63, 'Namespace of the Shoot.').optional(),
      })
      .describe('Shoot of a hosted cluster.')
      .optional(),
    kubeconfigRef: z
      .object({
        name: text(LIMITS.name, 'Name of the Secret.'),
        key: text(LIMITS.name, 'Key in the Secret.').optional(),
      })
      .describe('Secret with the kubeconfig of the cluster, in the same namespace.')
      .optional(),
    controlPlane: replicaCountsSchema.optional(),
    nodes: nodeCountsSchema
      .extend({
        asked: count(
          0,
          undefined,
          'How many nodes the spec asks for: more or less than desired while the spec is refused.',
        ).optional(),
      })
      .describe('Nodes of the cluster.')
      .optional(),
    dataPlaneNodes: count(0, undefined, 'How many nodes there are; for the scale subresource.').optional(),
    defaultedNodes: list(
      count(0, undefined, 'Nodes.'),
      2,
      "The number that the operator fills into spec.dataPlaneNodes where nobody says one, so that the scale subresource answers; two while it changes. It fixes nothing: what pools have is theirs to say, until somebody writes another number. Absent: a person's number holds.",
    ).optional(),
    selector: text(4096, 'Label selector of the nodes; for the scale subresource.').optional(),
    resource: resourceSchema.optional(),
    cost: costSchema.optional(),
    expiresAt: time('Time at which the cluster is deleted by its ttl.').optional(),
    hibernation: z
      .object({
        asleep: z.boolean().describe('Whether the cluster should hibernate.'),
        since: time('Time of that decision: of the schedule, or of the change of the spec.'),
        enabled: z.boolean().describe('Value of spec.hibernation.enabled at that time.').optional(),
        enabledAt: time('Time at which the operator saw a change of it. Absent: none.').optional(),
        order: z
          .object({
            by: text(512, 'Owner of the order, for example BurstPolicy shop/peak.'),
            why: text(2048, 'Why.'),
            otherwise: z.boolean().describe('Whether the cluster would hibernate without the policy.'),
            otherwiseSince: time('Time of the order.'),
          })
          .describe(
            'What a policy has decided. It holds, whatever schedules say, until the policy takes it back or somebody changes enabled. Absent: the spec alone decides.',
          )
          .optional(),
      })
      .describe('Hibernation that results from schedules, spec.hibernation.enabled and policies.')
      .optional(),
    networking: z
      .object({
        pods: text(64, 'Range of pod addresses.').optional(),
        services: text(64, 'Range of Service addresses.').optional(),
        mesh: text(63, 'Clusters of one mesh have ids, names and ranges of their own.').optional(),
        clusterID: count(1, undefined, 'Id in the mesh, for example cluster.id of Cilium ClusterMesh.').optional(),
        clusterName: text(
          32,
          'Name in the mesh: cluster.name of Cilium, clusterID of Submariner, cluster and network of Istio.',
        ).optional(),
      })
      .describe('Address ranges in use, and identity of the cluster in its mesh.')
      .optional(),
    nothingMade: z
      .boolean()
      .describe(
        'True: the operator has refused the spec and has never made anything of it, so that every field may still be changed. Absent: something may have been made.',
      )
      .optional(),
    admitted: clusterSizeSchema
      .describe('Size granted to the cluster and not given back: what quotas count.')
      .optional(),
  })
  .describe('Observed state of the cluster.');
/** Status of a WorkerCluster. */
export type WorkerClusterStatus = z.output<typeof workerClusterStatus>;

/** A cluster as its user asks for it. */
export interface WorkerCluster extends KubeObject {
  kind: 'WorkerCluster';
  spec: WorkerClusterSpec;
  status?: WorkerClusterStatus;
  /** Operator's cache only: a defaulted spec.dataPlaneNodes, which is removed from `spec` here. */
  defaulted?: {
    readonly nodes: number;
    /** Whether the operator's field manager still owns it. */
    readonly owned: boolean;
    /** Whether the annotation marks it as the operator's. */
    readonly marked: boolean;
  };
  /** Operator's cache only: an obsolete annotation of the operator beside a person's number. Absent: none. */
  hasOldMark?: true;
  /** Operator's cache only: field managers that wrote spec.dataPlaneNodes. Absent: unknown. */
  statedBy?: string;
}

/** Whether the cluster was made by others and is only observed. */
export const isAttached = ({ spec }: Pick<WorkerCluster, 'spec'>): boolean => spec.mode === 'Attached';

/** Requested mode of a cluster that is made; undefined: unspecified or attached. */
export const madeModeOf = ({ mode }: Pick<WorkerClusterSpec, 'mode'>) => (mode === 'Attached' ? undefined : mode);

/** CloudProfile of a cluster; '' for an attached cluster. */
export const profileNameOf = ({ spec }: Pick<WorkerCluster, 'spec'>): string =>
  spec.cloudProfile ?? spec.cloudProvider ?? '';

// Fields that the operator acts on. Others are kept, and reported in a condition.
const ACTED: ActedFields = {
  cloudProvider: true,
  controlPlaneNodes: true,
  dataPlaneNodes: true,
  cloudProfile: true,
  mode: true,
  region: true,
  zones: true,
  kubernetes: { version: true },
  machineType: true,
  machineTypes: true,
  ttl: true,
  pools: {
    name: true,
    machineType: true,
    machineTypes: true,
    minimum: true,
    maximum: true,
    autoscale: true,
    scaleInAfter: true,
    disruption: true,
    gpu: true,
    labels: true,
    taints: true,
    startupTaints: true,
    zones: true,
  },
  networking: { pods: true, services: true },
  dns: ACTED_DNS,
  addons: ACTED_ADDONS,
  deletionProtection: true,
};

const ACTED_IN_CLOUD: ActedFields = {
  ...ACTED,
  pools: { ...(ACTED.pools as ActedFields), spot: true },
  networking: { pods: true, services: true, nodes: true },
  credentialsRef: true,
  drift: true,
};

const ACTED_MANAGED: ActedFields = {
  ...ACTED_IN_CLOUD,
  networking: true,
  // Clouds name their API servers themselves.
  dns: {},
  addons: {},
  adopt: true,
  hibernation: true,
  fallback: true,
};

const sleeping = (acted: ActedFields): ActedFields => ({ ...acted, hibernation: true });

/** Acted fields by mode, and by location of the machines. */
export const ACTED_BY_MODES: Readonly<Record<string, ActedFields>> = {
  Hosted: sleeping(ACTED),
  'Hosted in a cloud': sleeping(ACTED_IN_CLOUD),
  SelfManaged: ACTED,
  'SelfManaged in a cloud': ACTED_IN_CLOUD,
  Managed: ACTED_MANAGED,
  Attached: { mode: true, attached: true, region: true, ttl: true, deletionProtection: true },
};

/** Paths of fields in a WorkerCluster's spec that have no effect yet, for example `pools[0].spot`. */
export function unactedClusterFields(
  spec: WorkerClusterSpec,
  mode: WorkerClusterSpec['mode'] = 'Hosted',
  { inCloud, lacksControlPlane }: MadeOf = {},
): string[] {
  const acted = mode === 'Managed' ? ACTED_MANAGED : inCloud ? ACTED_IN_CLOUD : ACTED;
  if (lacksControlPlane) return findUnacted(spec, actedWithoutControlPlane(acted));
  return findUnacted(spec, mode === 'Hosted' ? sleeping(acted) : acted);
}
