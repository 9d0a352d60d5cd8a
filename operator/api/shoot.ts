import { z } from 'zod';
import { type ActedFields, actedWithoutControlPlane, findUnacted, type MadeOf, saysKept } from './acted.ts';
import { ACTED_ADDONS, shootAddonsSchema } from './addons.ts';
import { ACTED_DNS, clusterDNSSchema, domainStays } from './dns.ts';
import { ANNOTATIONS } from './group.ts';
import { driftSchema, hibernationSchema, maintenanceSchema, versionSchema } from './maintenance.ts';
import {
  commonStatus,
  conditionSchema,
  type KubeObject,
  nodeCountsSchema,
  replicaCountsSchema,
  resourceSchema,
} from './meta.ts';
import {
  cidr,
  count,
  describe,
  fixedOnceSet,
  free,
  keyed,
  LIMITS,
  list,
  map,
  name,
  objectName,
  PATTERNS,
  place,
  rules,
  text,
} from './schema.ts';
import { seedSelectorSchema } from './seed-selector.ts';
import { shootWorkerSchema, type Worker } from './shoot-worker.ts';

const kubernetes = z
  .object({
    version: versionSchema(
      'Version, for example 1.36.3; a minor version alone means its newest supported patch. Cannot go back, nor skip a minor version.',
    ).optional(),
    kubeAPIServer: free('Configuration of the kube-apiserver.').optional(),
    kubeControllerManager: free('Configuration of the kube-controller-manager.').optional(),
    kubeScheduler: free('Configuration of the kube-scheduler.').optional(),
    kubeProxy: free('Configuration of the kube-proxy.').optional(),
    kubelet: free('Configuration of the kubelets.').optional(),
    clusterAutoscaler: free('Configuration of the cluster autoscaler.').optional(),
    verticalPodAutoscaler: free('Configuration of the vertical pod autoscaler.').optional(),
    etcd: free('Configuration of etcd.').optional(),
    enableStaticTokenKubeconfig: z.boolean().describe('No effect. Kept for older manifests.').optional(),
    allowPrivilegedContainers: z.boolean().describe('No effect. Kept for older manifests.').optional(),
  })
  .describe('Kubernetes version, and configuration of its components.');

const controlPlane = describe(
  z.object({
    highAvailability: z
      .object({
        failureTolerance: z
          .object({ type: z.enum(['node', 'zone']).describe('Failure domain that the control plane tolerates.') })
          .describe('Failures that the control plane tolerates.'),
      })
      .describe('A control plane of three members instead of one.')
      .optional(),
    replicas: z
      .literal([1, 3, 5])
      .describe('Members of the control plane, if highAvailability is not specific enough (not a field of Gardener).')
      .optional(),
    zones: list(place('A zone of the seed.'), 16, 'Zones of the seed to use.').optional(),
  }),
  'How the control plane is run.',
);

/** CEL: whether the shoot is self-hosted. */
const SELF_HOSTED = (self: string): string =>
  `(has(${self}.provider.workers) && ${self}.provider.workers.exists(w, has(w.controlPlane)))`;

export const shootSpec = rules(
  z.object({
    cloudProfile: z
      .object({
        kind: text(63, 'CloudProfile or NamespacedCloudProfile.').default('CloudProfile'),
        name: objectName('Name of the profile.'),
      })
      .describe('CloudProfile of the cluster.')
      .optional(),
    cloudProfileName: text(LIMITS.name, 'Older form of cloudProfile.name.', PATTERNS.objectName).optional(),
    region: place('Region of the profile. Cannot be changed.'),
    seedName: objectName('The seed that hosts the control plane. Absent: one is chosen.').optional(),
    seedSelector: seedSelectorSchema.optional(),
    tolerations: list(
      z
        .object({
          key: name(317, 'Key of the taint.', PATTERNS.labelKey),
          value: text(63, 'Value of the taint. Absent: any.').optional(),
        })
        .describe('A taint of seeds that the cluster tolerates.'),
      64,
      'Taints of seeds that do not matter for this cluster.',
    ).optional(),
    purpose: z
      .enum(['evaluation', 'testing', 'development', 'production', 'infrastructure'])
      .describe('Purpose of the cluster.')
      .optional(),
    credentialsBindingName: text(
      LIMITS.name,
      'CredentialsBinding with the credentials of the cloud.',
      PATTERNS.objectName,
    ).optional(),
    secretBindingName: text(
      LIMITS.name,
      'SecretBinding with the credentials of the cloud.',
      PATTERNS.objectName,
    ).optional(),
    kubernetes: kubernetes.prefault({}),
    networking: z
      .object({
        type: text(63, 'Type of the pod network.').optional(),
        pods: cidr('Range of pod addresses. Cannot be changed once set.').optional(),
        services: cidr('Range of Service addresses. Cannot be changed once set.').optional(),
        nodes: cidr('Range of node addresses.').optional(),
        ipFamilies: list(z.enum(['IPv4', 'IPv6']).describe('An IP family.'), 2, 'IP families.').optional(),
        providerConfig: free('Configuration of the network extension.').optional(),
      })
      .describe('Address ranges and type of the pod network.')
      .optional(),
    provider: z
      .object({
        type: name(LIMITS.label, 'Provider of the machines. Cannot be changed.', PATTERNS.label),
        workers: keyed(shootWorkerSchema, 50, 'name', 'Pools of machines. Absent: a control plane only.').optional(),
        infrastructureConfig: free('Provider-specific configuration of networks.').optional(),
        controlPlaneConfig: free('Provider-specific configuration of the control plane.').optional(),
        workersSettings: free('Settings for all workers.').optional(),
      })
      .describe('Provider and worker pools.'),
    controlPlane: controlPlane.optional(),
    hibernation: hibernationSchema.optional(),
    maintenance: maintenanceSchema.optional(),
    dns: clusterDNSSchema.optional(),
    drift: driftSchema
      .describe('Drift: changes in the account of a cloud that the operator did not make (not a field of Gardener).')
      .optional(),
    addons: shootAddonsSchema.optional(),
    systemComponents: free('Settings of system components.').optional(),
    resources: list(free('A reference.'), 256, 'Objects that extensions refer to by name.').optional(),
    extensions: list(free('An extension.'), 256, 'Extensions of the cluster.').optional(),
    monitoring: free('Monitoring of the cluster.').optional(),
    exposureClassName: text(LIMITS.name, 'How the control plane is exposed.').optional(),
    schedulerName: text(LIMITS.name, 'Who chooses the seed.').optional(),
    accessRestrictions: list(
      z
        .object({ name: name(LIMITS.name, 'Name of the restriction.'), options: map(64, 'Options.').optional() })
        .describe('A restriction.'),
      64,
      'Restrictions that the seed must offer.',
    ).optional(),
  }),
  {
    rule: 'self.region == oldSelf.region',
    message: 'region cannot be changed after creation: make a new cluster instead',
  },
  {
    rule: 'self.provider.type == oldSelf.provider.type',
    message: 'provider.type cannot be changed after creation: make a new cluster instead',
  },
  fixedOnceSet('networking', 'pods'),
  fixedOnceSet('networking', 'services'),
  domainStays,
  {
    rule: `${SELF_HOSTED('self')} == ${SELF_HOSTED('oldSelf')}`,
    message: 'a control plane cannot move between a seed and machines of its cluster: make a new cluster instead',
  },
  { rule: 'has(self.cloudProfile) || has(self.cloudProfileName)', message: 'name the cloudProfile' },
  {
    rule: '!has(self.cloudProfile) || !has(self.cloudProfileName) || self.cloudProfile.name == self.cloudProfileName',
    message: 'cloudProfile.name and cloudProfileName differ',
  },
  {
    rule: `(has(self.cloudProfile) ? self.cloudProfile.name : self.cloudProfileName) == (has(oldSelf.cloudProfile) ? oldSelf.cloudProfile.name : oldSelf.cloudProfileName)`,
    message: 'cloudProfile cannot be changed after creation: make a new cluster instead',
  },
).describe('Desired state of the cluster.');
/** Spec of a Shoot, with the API server's defaults. */
export type ShootSpec = z.output<typeof shootSpec>;

export const shootStatus = z
  .object({
    ...commonStatus,
    constraints: list(conditionSchema, 64, 'Constraints on some operations.').optional(),
    technicalID: text(63, 'Name of the cluster outside its namespace, and of its namespace in the seed.').optional(),
    uid: text(64, 'Identity of the cluster.').optional(),
    clusterIdentity: text(256, 'Identity of the cluster, unique over all gardens.').optional(),
    seedName: text(LIMITS.name, 'The seed that hosts the control plane.').optional(),
    hibernated: z.boolean().describe('Whether the cluster hibernates.').optional(),
    gardener: free('The operator that last acted on it.').optional(),
    retryCycleStartTime: text(64, 'When the current series of tries began.').optional(),
    advertisedAddresses: keyed(
      z
        .object({
          name: text(LIMITS.name, 'Purpose of the address: internal or external.'),
          url: text(2048, 'The URL.'),
          application: text(LIMITS.name, 'Component that answers there.').optional(),
        })
        .describe('An address.'),
      32,
      'name',
      'Where the cluster can be reached.',
    ).optional(),
    kubernetesVersion: text(64, 'Version that the control plane runs (not a field of Gardener).').optional(),
    controlPlane: replicaCountsSchema.optional(),
    nodes: nodeCountsSchema.optional(),
    workers: keyed(
      z
        .object({
          name: text(63, 'Name of the pool.'),
          desired: count(0, undefined, 'Desired nodes.'),
          current: count(0, undefined, 'Existing machines.'),
          ready: count(0, undefined, 'Nodes that are Ready.'),
        })
        .describe('A pool.'),
      50,
      'name',
      'Nodes of each pool.',
    ).optional(),
    resource: resourceSchema.optional(),
    networking: z
      .object({
        pods: list(text(64, 'A range.'), 8, 'Pod addresses.').optional(),
        services: list(text(64, 'A range.'), 8, 'Service addresses.').optional(),
        nodes: list(text(64, 'A range.'), 8, 'Node addresses.').optional(),
        egressCIDRs: list(text(64, 'A range.'), 64, 'Addresses that traffic to outside comes from.').optional(),
      })
      .describe('Address ranges in use.')
      .optional(),
    credentials: free('State of the rotation of credentials.').optional(),
    lastHibernationTriggerTime: text(64, 'When a schedule last changed hibernation.').optional(),
    lastMaintenance: free('The last maintenance.').optional(),
    migrationStartTime: text(64, 'When the move to another seed began.').optional(),
  })
  .describe('Observed state of the cluster.');
/** Status of a Shoot. */
export type ShootStatus = z.output<typeof shootStatus>;

/** A cluster whose control plane is hosted in a seed, or runs on its own machines (self-hosted). */
export interface Shoot extends KubeObject {
  kind: 'Shoot';
  spec: ShootSpec;
  status?: ShootStatus;
}

/** CloudProfile name of a shoot, from either field. Admission ensures that one is set. */
export const shootProfileName = (spec: ShootSpec): string => spec.cloudProfile?.name ?? spec.cloudProfileName ?? '';

/** The pool that runs the control plane; undefined: a seed hosts it. */
export const controlPlaneWorker = (spec: ShootSpec): Worker | undefined =>
  spec.provider.workers?.find((worker) => worker.controlPlane !== undefined);

/** Whether the shoot was completed once, so that people may use it. */
export const hasServed = ({ status }: Shoot): boolean =>
  status?.lastOperation !== undefined &&
  (status.lastOperation.type !== 'Create' || status.lastOperation.state === 'Succeeded');

/** Whether somebody works on the cluster by hand: the operator leaves it alone. */
export const isIgnored = ({ metadata }: Shoot): boolean => metadata.annotations?.[ANNOTATIONS.ignore] === 'true';

/**
 * Whether a shoot with hosted control plane should sleep now. A new shoot is completed first. A shoot that ran under an
 * older operator, which ignored the field, stays awake until the field changes.
 */
export const isToSleep = (shoot: Shoot): boolean =>
  shoot.spec.hibernation?.enabled === true &&
  !controlPlaneWorker(shoot.spec) &&
  hasServed(shoot) &&
  !keepsHibernation(shoot);

/**
 * Whether an older operator reported `hibernation.enabled` as kept without effect and the field is unchanged since:
 * changing it activates it.
 */
export const keepsHibernation = ({ spec, status }: Shoot): boolean =>
  spec.hibernation?.enabled === true && saysKept(status?.conditions, 'AllFieldsActedOn', 'hibernation.enabled');

/** Number of control plane members: its own machines, else `replicas`, else 3 when highly available, else 1. */
export const controlPlaneMembers = (spec: ShootSpec): 1 | 3 | 5 => {
  const machines = controlPlaneWorker(spec)?.minimum;
  if (machines === 1 || machines === 3 || machines === 5) return machines;
  return spec.controlPlane?.replicas ?? (spec.controlPlane?.highAvailability ? 3 : 1);
};

// Fields that the operator acts on. Others are kept, and reported in a condition.
const ACTED: ActedFields = {
  cloudProfile: true,
  cloudProfileName: true,
  region: true,
  seedName: true,
  seedSelector: true,
  tolerations: true,
  accessRestrictions: true,
  kubernetes: { version: true },
  networking: { pods: true, services: true },
  provider: {
    type: true,
    workers: {
      name: true,
      machine: { type: true },
      minimum: true,
      maximum: true,
      maxSurge: true,
      maxUnavailable: true,
      controlPlane: true,
      zones: true,
      labels: true,
      annotations: true,
      taints: true,
      startupTaints: true,
      machineControllerManager: { machineDrainTimeout: true, machineHealthTimeout: true },
    },
  },
  controlPlane: { highAvailability: true, replicas: true },
  dns: ACTED_DNS,
  addons: ACTED_ADDONS,
};

/** Acted fields of shoots whose machines are in a cloud account. */
const ACTED_IN_CLOUD: ActedFields = {
  ...ACTED,
  credentialsBindingName: true,
  drift: true,
  networking: { pods: true, services: true, nodes: true },
  provider: {
    type: true,
    workers: { ...((ACTED.provider as ActedFields).workers as ActedFields), providerConfig: { spot: true } },
  },
};

const sleeping = (acted: ActedFields): ActedFields => ({ ...acted, hibernation: { enabled: true } });

/** Acted fields by location of control plane and machines. */
export const ACTED_BY_SHOOTS: Readonly<Record<string, ActedFields>> = {
  Hosted: sleeping(ACTED),
  'Hosted in a cloud': sleeping(ACTED_IN_CLOUD),
  SelfManaged: ACTED,
  'SelfManaged in a cloud': ACTED_IN_CLOUD,
};

/**
 * Paths of fields in a Shoot's spec that have no effect yet, for example `maintenance` or `provider.workers[0].volume`.
 * A maximum above the minimum counts as a request for an autoscaler.
 */
export function unactedFields(spec: ShootSpec, { inCloud, lacksControlPlane }: MadeOf = {}): string[] {
  const autoscaled = (spec.provider.workers ?? []).flatMap((pool, index) =>
    pool.maximum > pool.minimum ? [`provider.workers[${index}].maximum`] : [],
  );
  const acted = inCloud ? ACTED_IN_CLOUD : ACTED;
  if (lacksControlPlane) return [...findUnacted(spec, actedWithoutControlPlane(acted)), ...autoscaled];
  // A self-hosted control plane would stop with its nodes, and nothing could wake it.
  const all: ActedFields = controlPlaneWorker(spec) ? acted : sleeping(acted);
  return [...findUnacted(spec, all), ...autoscaled];
}
