import { z } from 'zod';
import { DECIMAL } from './cost.ts';
import { commonStatus, type KubeObject } from './meta.ts';
import {
  cidr,
  cidrV4,
  count,
  duration,
  free,
  type KindDefinition,
  keyed,
  LIMITS,
  labelName,
  labels,
  list,
  machineTypeName,
  name,
  objectName,
  PATTERNS,
  place,
  quantity,
  rules,
  text,
} from './schema.ts';
import { seedSelectorSchema } from './seed-selector.ts';

const kubernetesVersion = z
  .object({
    version: name(64, 'The version, for example 1.36.3.', /^[0-9]+\.[0-9]+\.[0-9]+([-+.0-9A-Za-z]*)$/),
    classification: z
      .enum(['preview', 'supported', 'deprecated', 'unavailable', 'expired'])
      .describe(
        'How far it may be used. Only supported versions are chosen without being named; expired ones are refused for new clusters.',
      )
      .optional(),
    expirationDate: name(64, 'Expiration date.', PATTERNS.time).optional(),
    lifecycle: list(free('A stage.'), 16, 'Classifications to come.').optional(),
  })
  .describe('A Kubernetes version.');

const decimal = (description: string) => text(32, description, DECIMAL);
const currency = name(3, 'ISO 4217 code.', /^[A-Z]{3}$/);
const fee = (hourly: string, description: string) =>
  z.object({ hourly: decimal(hourly), currency }).describe(description);
const billing = (of: string) =>
  z
    .object({
      step: duration(
        'What has begun of it is paid for as a whole, for example 1h. Absent: every moment counts.',
      ).optional(),
      minimum: duration('Minimum time that is billed, for example 1m. Absent: none.').optional(),
    })
    .describe(`How time of ${of} is billed. Absent: not known; every moment is counted then, and no minimum.`);
const spotPrice = decimal('Price of one hour as a spot machine. Absent: not known.');

const machineType = z
  .object({
    name: machineTypeName("The provider's name of the machine type."),
    cpu: quantity('CPUs.'),
    gpu: quantity('GPUs.'),
    memory: quantity('Memory.'),
    architecture: name(16, 'CPU architecture. Absent: amd64.').optional(),
    usable: z.boolean().describe('false: not available for new pools.').optional(),
    storage: free('Storage that comes with the machine.').optional(),
    capabilities: free('Capabilities of the machine.').optional(),
    machineControllerManager: free('Timeouts of machine creation, drain and health.').optional(),
    pods: count(1, 10000, 'Most pods on a node of this type. Absent: 110 (not a field of Gardener).').optional(),
    price: z
      .object({
        hourly: decimal('Price of one hour, on demand, in the currency, as a decimal number.'),
        spot: spotPrice.optional(),
        currency,
        region: place('Region of hourly and spot. Absent: every region except those below.').optional(),
        regions: keyed(
          z
            .object({
              name: place('Name of the region.'),
              hourly: decimal('Price of one hour there, on demand.'),
              spot: spotPrice.optional(),
            })
            .describe('Price in one region.'),
          256,
          'name',
          'Prices in other regions. A region that is not named has no price: none is guessed.',
        ).optional(),
      })
      .describe('Price of the machine type (not a field of Gardener).')
      .optional(),
  })
  .describe('A machine type.');
/** A machine type of a profile. */
export type MachineType = z.output<typeof machineType>;

const region = z
  .object({
    name: place('Name of the region.'),
    zones: keyed(
      z
        .object({
          name: place('Name of the zone.'),
          unavailableMachineTypes: list(text(63, 'A machine type.'), 2048, 'Machine types that it lacks.').optional(),
          unavailableVolumeTypes: list(text(63, 'A volume type.'), 256, 'Volume types that it lacks.').optional(),
        })
        .describe('A zone.'),
      32,
      'name',
      'Zones of the region.',
    ).optional(),
    labels: labels(64, 'Labels of the region.').optional(),
    accessRestrictions: list(free('A restriction.'), 64, 'Restrictions that the region offers.').optional(),
  })
  .describe('A region.');
/** A region of a profile. */
export type Region = z.output<typeof region>;

export const cloudProfileSpec = rules(
  z.object({
    type: name(LIMITS.label, 'Type of the provider: aws, gcp, azure, local, simulated, ...', PATTERNS.label),
    provider: name(
      LIMITS.label,
      'The provider that makes the machines, when it is not the one of the type (not a field of Gardener). "simulated" is for trying a cloud without an account: control planes are real, machines are simulated. Mode Managed then becomes Hosted, because there is no cloud to manage anything.',
      PATTERNS.label,
    ).optional(),
    kubernetes: z
      .object({
        versions: keyed(kubernetesVersion, 256, 'version', 'Versions to choose from.').optional(),
      })
      .describe('Kubernetes versions.'),
    machineTypes: keyed(machineType, 2048, 'name', 'Machine types to choose from.'),
    machineImages: list(
      z
        .object({
          name: name(63, 'Name of the image.'),
          versions: list(free('A version.'), 256, 'Versions of the image.').optional(),
          updateStrategy: text(16, 'patch, minor or major.').optional(),
        })
        .describe('A machine image.'),
      64,
      'Machine images to choose from.',
    ).optional(),
    regions: keyed(region, 256, 'name', 'Regions to choose from.'),
    volumeTypes: list(free('A volume type.'), 256, 'Volume types to choose from.').optional(),
    machineCapabilities: list(free('A capability.'), 64, 'Capabilities that machine types may have.').optional(),
    seedSelector: seedSelectorSchema.optional(),
    caBundle: text(65536, 'Certificates that all machines trust, PEM.').optional(),
    bastion: free('Bastions.').optional(),
    limits: z
      .object({ maxNodesTotal: count(0, 100000, 'Most nodes that one cluster may have.').optional() })
      .describe('Limits on clusters of this profile.')
      .optional(),
    controlPlane: free('Settings of control planes.').optional(),
    controlPlaneFee: fee(
      'Price of one hour of one control plane.',
      'What the cloud takes for a control plane that it manages (not a field of Gardener). Absent: not known.',
    ).optional(),
    hostedControlPlaneFee: fee(
      'Share of one control plane in an hour of its seed.',
      'Price of a control plane of mode Hosted: its share of what the seed costs, as an administrator sets it (not a field of Gardener). Absent: nothing.',
    ).optional(),
    billing: z
      .object({
        machines: billing('a machine').optional(),
        controlPlane: billing('a control plane that the cloud manages').optional(),
      })
      .describe('How the cloud bills time (not a field of Gardener).')
      .optional(),
    startupTimes: keyed(
      z
        .object({
          mode: z
            .enum(['Hosted', 'Managed', 'SelfManaged'])
            .describe('Mode of the clusters: where their control plane runs.'),
          cluster: duration(
            'From the order of a cluster until its first nodes are there, half of the times.',
          ).optional(),
          pool: duration(
            'From the order of a pool, in a cluster that is there, until its nodes are there, half of the times.',
          ).optional(),
        })
        .describe('Start-up times of one mode.'),
      3,
      'mode',
      'How long clusters and pools take to come (not a field of Gardener). Absent: not known.',
    ).optional(),
    providerConfig: free('Provider-specific configuration.').optional(),
    stateBackend: z
      .object({
        url: text(
          2048,
          'Where the state of what is made in the cloud is kept: file:///directory, s3://bucket, gs://bucket or azblob://container, with the query that Pulumi takes.',
          /^(file|s3|gs|azblob):\/\/.+$/,
        ),
        secretsProvider: text(
          2048,
          'Key management service that encrypts secrets of the state, as Pulumi names it: awskms://, gcpkms://, azurekeyvault:// or hashivault://. Absent: a passphrase.',
          /^(awskms|gcpkms|azurekeyvault|hashivault):\/\/.+$/,
        ).optional(),
        secretRef: z
          .object({
            name: objectName('Name of the Secret.'),
            namespace: labelName('Namespace of the Secret.'),
          })
          .describe(
            'Secret whose keys become environment of the engine, for example AWS_ACCESS_KEY_ID; key passphrase is the passphrase. Absent: a passphrase is made once and kept in a Secret beside the operator.',
          )
          .optional(),
      })
      .describe("Where Pulumi keeps its state (not a field of Gardener). Absent: a directory of the operator's own.")
      .optional(),
    drift: z
      .object({
        interval: duration(
          'How often a cluster is compared with what was made for it, for example 6h (the default). Not all clusters are in one moment.',
        ).optional(),
      })
      .describe('How often the operator checks the cloud for drift (not a field of Gardener).')
      .optional(),
    defaults: z
      .object({
        mode: z
          .enum(['Hosted', 'Managed', 'SelfManaged'])
          .describe('Mode of the clusters: where their control plane runs.')
          .optional(),
        region: place('Region.').optional(),
        machineType: machineTypeName('Machine type.').optional(),
        pods: cidr('Range of pod addresses.').optional(),
        services: cidr('Range of Service addresses.').optional(),
      })
      .describe('Defaults for clusters that omit these fields (not a field of Gardener).')
      .optional(),
    mesh: z
      .object({
        name: labelName('Name of the mesh. Clusters of several profiles may be in one.'),
        pods: list(
          cidrV4('A range.'),
          16,
          'What pod ranges are taken from, the first one first. Absent: 100.64.0.0/10, then 10.0.0.0/8.',
        ).optional(),
        services: list(
          cidrV4('A range.'),
          16,
          'What Service ranges are taken from, the first one first. Absent: 100.64.0.0/10, then 10.0.0.0/8.',
        ).optional(),
        reserved: list(
          cidr('A range.'),
          64,
          'Ranges that no cluster is given: those of offices, data centres and the networks of clouds. Those of seeds, of nodes, of Services of the garden and of all other clusters need not be named.',
        ).optional(),
        leastNodes: count(
          1,
          8192,
          'For how many nodes each pod range has room at least; a node takes 256 addresses. Absent: 64. A cluster that asks for more than half of it gets room for twice what it asks for. It cannot grow beyond that.',
        ).optional(),
        servicesPrefix: count(12, 24, 'Prefix length of Service ranges. Absent: 20, for 4096 Services.').optional(),
        highestClusterID: count(
          1,
          65535,
          'Highest cluster id. Absent: 255, as Cilium has it unless it is told that it is 511.',
        ).optional(),
      })
      .describe(
        "For clusters that are connected later. Each new cluster of this profile gets an id and a name that no other cluster of the mesh has. It gets address ranges of its own too, unless a cloud manages it or its spec names them. Clusters that are there already stay as they are. Absent: all get the profile's ranges (not a field of Gardener).",
      )
      .optional(),
  }),
  { rule: 'self.type == oldSelf.type', message: 'type cannot be changed after creation: make a new profile instead' },
  {
    rule: '!has(self.defaults) || !has(self.defaults.region) || self.regions.exists(r, r.name == self.defaults.region)',
    message: 'defaults.region is none of the regions',
  },
  {
    rule: '!has(self.defaults) || !has(self.defaults.machineType) || self.machineTypes.exists(m, m.name == self.defaults.machineType)',
    message: 'defaults.machineType is none of the machineTypes',
  },
).describe('Machine types, regions, versions and images that clusters may use.');
/** Spec of a CloudProfile. */
type CloudProfileSpec = z.output<typeof cloudProfileSpec>;

const cloudProfileStatus = z
  .object({
    ...commonStatus,
    machineTypes: keyed(
      machineType,
      2048,
      'name',
      'Machine types that clusters use, or used, as the spec had them last (not a field of Gardener). Clusters keep a machine type that is removed from the spec.',
    ).optional(),
  })
  .describe('State of the profile.');
/** Status of a CloudProfile. */
export type CloudProfileStatus = z.output<typeof cloudProfileStatus>;

/** Offer of a provider: versions, machine types, regions, and defaults for clusters. */
export interface CloudProfile extends KubeObject {
  kind: 'CloudProfile';
  spec: CloudProfileSpec;
  status?: CloudProfileStatus;
}

/** Ranges for clusters when neither cluster nor profile names any. `nodes` is that of Gardener's examples. */
export const DEFAULT_RANGES = { pods: '100.96.0.0/11', services: '100.64.0.0/13', nodes: '10.250.0.0/16' };

/** Provider that makes the machines of the profile's clusters. */
export const providerOf = (profile: CloudProfile): string => profile.spec.provider ?? profile.spec.type;

export const cloudProfileDefinition: KindDefinition = {
  kind: 'CloudProfile',
  plural: 'cloudprofiles',
  singular: 'cloudprofile',
  shortNames: [],
  scope: 'Cluster',
  categories: ['coppice'],
  description:
    "What a provider offers: Kubernetes versions, machine types, regions, and defaults for clusters that do not say. Fields and their meanings are those of Gardener's core.gardener.cloud/v1beta1.",
  spec: cloudProfileSpec,
  status: cloudProfileStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type', description: 'Type of the provider.' },
    {
      name: 'Provider',
      type: 'string',
      jsonPath: '.spec.provider',
      description: 'Provider that makes the machines, when it differs.',
    },
    { name: 'Mode', type: 'string', jsonPath: '.spec.defaults.mode', description: 'Default mode.' },
    { name: 'Region', type: 'string', jsonPath: '.spec.defaults.region', description: 'Default region.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether it can be used.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is known.' },
  ],
};
