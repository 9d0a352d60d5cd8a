import { z } from 'zod';
import { type ActedFields, findUnacted } from './acted.ts';
import { seedDNSSchema } from './dns.ts';
import { commonStatus, type KubeObject } from './meta.ts';
import {
  cidr,
  count,
  duration,
  fixedOnceSet,
  free,
  intOrString,
  type KindDefinition,
  keyed,
  LIMITS,
  labelName,
  list,
  name,
  objectName,
  PATTERNS,
  place,
  rules,
  text,
} from './schema.ts';

const ranges = {
  pods: cidr('Range of pod addresses.'),
  services: cidr('Range of Service addresses.'),
};

const backup = z
  .object({
    provider: name(LIMITS.label, 'CloudProfile of this name or type: where the bucket is made.', PATTERNS.label),
    region: place("Region of the bucket. Absent: the seed's.").optional(),
    credentialsRef: z
      .object({
        apiVersion: text(LIMITS.name, 'API group and version; kept only.').optional(),
        kind: z
          .enum(['Secret', 'CredentialsBinding', 'WorkloadIdentity'])
          .describe('Object with the credentials, or leading to them.'),
        name: objectName('Name of the object.'),
        namespace: labelName('Namespace of the object.'),
      })
      .describe("Credentials of the bucket's account. Absent: for providers that need none.")
      .optional(),
    providerConfig: free('Provider-specific configuration. Stored only.').optional(),
    fullSnapshotPeriod: duration(
      'How often a snapshot of each etcd is taken, at least a minute. Absent: 24h.',
    ).optional(),
    maxBackupsLimitBasedGC: count(1, 1000, 'Number of snapshots kept for each etcd. Absent: 7.').optional(),
    deletionGracePeriodHours: count(
      0,
      87_600,
      "How long the snapshots of a shoot that was deleted are kept. Absent: 0, they go with it, as in Gardener's configuration.",
    ).optional(),
  })
  .describe('Bucket for backups of the etcd of each shoot. Absent: no backups.');

export const seedSpec = rules(
  z.object({
    provider: z
      .object({
        type: name(LIMITS.label, 'Provider that the seed runs on.', PATTERNS.label),
        region: place('Region that the seed runs in.'),
        zones: list(place('A zone.'), 16, 'Zones that the nodes of the seed are in.').optional(),
        providerConfig: free('Provider-specific configuration.').optional(),
      })
      .describe('Provider and region of the seed.'),
    networks: z
      .object({
        nodes: cidr('Range of node addresses.').optional(),
        ...ranges,
        shootDefaults: z
          .object({ pods: ranges.pods.optional(), services: ranges.services.optional() })
          .describe('Ranges for shoots that specify none.')
          .optional(),
        blockCIDRs: list(
          cidr('A range.'),
          64,
          'Ranges that pods of shoots in the seed must not reach, control planes and machines of provider local alike.',
        ).optional(),
        ipFamilies: list(z.enum(['IPv4', 'IPv6']).describe('An IP family.'), 2, 'IP families.').optional(),
      })
      .describe('Address ranges of the seed. Those of its shoots must not overlap with them.'),
    settings: z
      .object({
        scheduling: z
          .object({ visible: z.boolean().describe('Whether new shoots are placed in this seed.') })
          .describe('Placement of shoots in this seed.')
          .optional(),
        auditLog: z
          .object({
            level: z
              .enum(['None', 'Metadata'])
              .describe('Metadata: user, verb, object, time and source address of each request; never its body.'),
          })
          .describe(
            'Whether API servers of hosted clusters write an audit log, on their standard output (not a field of Gardener). A change rolls all of them. Absent: None.',
          )
          .optional(),
        excessCapacityReservation: free('Room that is kept free.').optional(),
        loadBalancerServices: free('Settings of Services of type LoadBalancer.').optional(),
        verticalPodAutoscaler: free('Vertical pod autoscaler.').optional(),
        dependencyWatchdog: free('Dependency watchdog.').optional(),
        topologyAwareRouting: free('Topology aware routing.').optional(),
        zoneSelection: free('How zones are chosen.').optional(),
        persistentVolumeClaimAutoscaler: free('Growing of volumes.').optional(),
        shootDNS: free('No effect. Kept for older manifests.').optional(),
        ownerChecks: free('No effect. Kept for older manifests.').optional(),
      })
      .describe('Settings of the seed.')
      .optional(),
    taints: keyed(
      z
        .object({ key: name(317, 'Key.', PATTERNS.labelKey), value: text(63, 'Value.').optional() })
        .describe('A taint. Shoots that do not tolerate it are placed in other seeds.'),
      64,
      'key',
      'Taints of the seed.',
    ).optional(),
    accessRestrictions: list(
      z.object({ name: name(LIMITS.name, 'Name of the restriction.') }).describe('A restriction.'),
      64,
      'Restrictions that the seed offers.',
    ).optional(),
    backup: backup.optional(),
    dns: seedDNSSchema.optional(),
    ingress: free('Ingress of the seed.').optional(),
    volume: free('Volumes in the seed.').optional(),
    secretRef: free('Older form of kubeconfigRef.').optional(),
    extensions: list(free('An extension.'), 256, 'Extensions of the seed.').optional(),
    resources: list(free('A reference.'), 256, 'Objects that extensions refer to by name.').optional(),
    kubeconfigRef: z
      .object({
        name: objectName('Name of the Secret; the kubeconfig is under key value, or else kubeconfig.'),
        namespace: labelName('Namespace of the Secret.'),
      })
      .describe(
        'Secret with a kubeconfig of the seed, with keys and certificates in it. A kubeconfig that names files or plugins, or skips verification, is refused. Its proxy-url leads there; without one, HTTPS_PROXY of the operator does. Absent: the garden itself is the seed.',
      )
      .optional(),
    exposure: z
      .object({
        type: z
          .enum(['ClusterIP', 'NodePort', 'LoadBalancer'])
          .describe(
            'ClusterIP where machines can reach Services of the seed directly, otherwise NodePort or LoadBalancer.',
          ),
        address: z
          .ipv4()
          .max(15)
          .describe(
            'Of type NodePort: the address at which node ports are reached. Absent: that of the oldest node that is Ready.',
          )
          .optional(),
      })
      .describe('How machines reach the API servers of shoots. Absent: ClusterIP.')
      .optional(),
    machineImage: name(
      512,
      'Image of machine pods, for provider local. Absent: made from the tools of the garden.',
    ).optional(),
  }),
  {
    rule: 'self.networks.pods == oldSelf.networks.pods && self.networks.services == oldSelf.networks.services',
    message: 'networks.pods and networks.services cannot be changed after creation',
  },
  {
    rule: 'self.provider.type == oldSelf.provider.type && self.provider.region == oldSelf.provider.region',
    message: 'provider.type and provider.region cannot be changed after creation',
  },
  {
    ...fixedOnceSet('dns', 'internal', 'domain'),
    message: 'dns.internal.domain cannot be changed or removed once set: certificates and kubeconfigs have it',
  },
  {
    rule: "!has(oldSelf.backup) || !has(self.backup) || (self.backup.provider == oldSelf.backup.provider && (has(self.backup.region) ? self.backup.region : '') == (has(oldSelf.backup.region) ? oldSelf.backup.region : ''))",
    message: 'backup.provider and backup.region cannot be changed: backups would be left behind in the old bucket',
  },
).describe('Provider, networks and settings of the seed.');
/** Spec of a Seed. */
export type SeedSpec = z.output<typeof seedSpec>;

const quantities = (description: string) =>
  z.record(z.string(), intOrString('An amount.')).meta({ description, maxProperties: 64 });

const seedStatus = z
  .object({
    ...commonStatus,
    kubernetesVersion: text(64, 'Kubernetes version of the seed.').optional(),
    capacity: quantities('Capacity of the seed; "shoots" is the number of shoots.').optional(),
    allocatable: quantities('Part of the capacity that may be used; "shoots" is the number of shoots.').optional(),
    gardener: free('The operator that last acted on it.').optional(),
    clusterIdentity: text(
      256,
      'UID of the namespace kube-system of the cluster that the seed was first seen to be. With a kubeconfig of another cluster nothing is done.',
    ).optional(),
    networkTriedAt: text(
      64,
      'RFC 3339: when it was last tried whether the network of the seed enforces NetworkPolicies.',
    ).optional(),
    clientCertificateExpirationTimestamp: text(64, 'End of the access to the seed.').optional(),
  })
  .describe('State of the seed.');
/** Status of a Seed. */
export type SeedStatus = z.output<typeof seedStatus>;

/** A cluster that hosts control planes of shoots. */
export interface Seed extends KubeObject {
  kind: 'Seed';
  spec: SeedSpec;
  status?: SeedStatus;
}

/** Fields of a Seed's spec that the operator acts on. */
const ACTED: ActedFields = {
  provider: { type: true, region: true, zones: true, providerConfig: { imageMirror: true, imageMirrorCA: true } },
  networks: { nodes: true, pods: true, services: true, shootDefaults: true, blockCIDRs: true },
  settings: { scheduling: true, auditLog: true },
  taints: true,
  accessRestrictions: true,
  backup: {
    provider: true,
    region: true,
    credentialsRef: true,
    fullSnapshotPeriod: true,
    maxBackupsLimitBasedGC: true,
    deletionGracePeriodHours: true,
  },
  dns: { internal: true },
  kubeconfigRef: true,
  exposure: true,
  machineImage: true,
};

/** Acted fields of Seeds for the reference page. */
export const ACTED_BY_SEEDS: Readonly<Record<string, ActedFields>> = { Seed: ACTED };

/** Paths of fields in a Seed's spec that have no effect, for example `secretRef`. */
export const unactedSeedFields = ({ spec }: Pick<Seed, 'spec'>): string[] => findUnacted(spec, ACTED);

export const seedDefinition: KindDefinition = {
  kind: 'Seed',
  plural: 'seeds',
  singular: 'seed',
  shortNames: [],
  scope: 'Cluster',
  categories: ['coppice'],
  description:
    "A Kubernetes cluster that hosts control planes of shoots as pods. Fields and their meanings are those of Gardener's core.gardener.cloud/v1beta1.",
  spec: seedSpec,
  status: seedStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'Provider', type: 'string', jsonPath: '.spec.provider.type', description: 'Where it runs.' },
    { name: 'Region', type: 'string', jsonPath: '.spec.provider.region', description: 'Region.' },
    { name: 'Version', type: 'string', jsonPath: '.status.kubernetesVersion', description: 'Kubernetes version.' },
    {
      name: 'Shoots',
      type: 'string',
      jsonPath: '.status.allocatable.shoots',
      description: 'How many shoots it may host.',
    },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether it can host shoots.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is known.' },
    {
      name: 'Message',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why it is (not) ready.',
      priority: 1,
    },
  ],
};

/** Secret with the kubeconfig of a seed; undefined: the garden is its own seed. */
export const seedKubeconfigRef = ({ spec }: Seed): { namespace: string; name: string } | undefined =>
  spec.kubeconfigRef && { namespace: spec.kubeconfigRef.namespace ?? 'default', name: spec.kubeconfigRef.name };
