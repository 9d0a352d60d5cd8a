import { decimals, digits } from '../digits.ts';
import { inventCA } from '../invented-ca.ts';
import {
  type CloudResource,
  isMade,
  type Machines,
  type Properties,
  type ResourceType,
  type Testbed,
} from '../model.ts';
import { fill, kindOf } from './kinds.ts';

const DEFAULT_VERSION = '1.36.1';
const LETTERS = ['a', 'b', 'c'] as const;

/** A region of a region or zone. */
export const regionOf = (location: unknown): string | undefined =>
  typeof location === 'string' ? location.replace(/-[a-z]$/, '') : undefined;

const zonesOf = (location: string): string[] =>
  location === regionOf(location) ? LETTERS.map((letter) => `${location}-${letter}`) : [location];

const address = (...words: string[]): string =>
  [
    34,
    ...digits(6, ...words)
      .match(/../g)!
      .map((pair) => Number.parseInt(pair, 16)),
  ].join('.');

const list = (value: unknown): any[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);

const emailOf = (inputs: Properties, account: string): string =>
  `${inputs.accountId}@${inputs.project ?? account}.iam.gserviceaccount.com`;

type More = Partial<Omit<ResourceType, 'type'>>;

/** A type whose id and self link follow from KINDS. */
export const typeLikeKind = (type: string, more: More = {}): ResourceType => {
  const { id, service } = kindOf(type);
  const link = (resource: CloudResource) =>
    `https://${service === 'compute' ? 'www' : service}.googleapis.com/${service === 'compute' ? 'compute/' : ''}v1/${resource.id}`;
  const named = id.includes('{name}');
  const idOf = ({ inputs, account, region, name }: Omit<CloudResource, 'id' | 'facts'>): string =>
    fill(id, { project: account, region, location: region, email: emailOf(inputs, account), ...inputs, name });
  return {
    type,
    ...(named && { nameInput: 'name' }),
    global: !/\{(region|location|zone)\}/.test(id),
    immutable: ['name', 'project', 'region', 'location', 'zone'],
    ...more,
    id: idOf,
    region: (inputs) => regionOf(inputs.region ?? inputs.location ?? inputs.zone),
    // Where ids are made of what is unique, equal ids are the conflict.
    uniqueBy: (inputs, region) => fill(id, { region, location: region, email: inputs.accountId, ...inputs }),
    outputs: (resource, testbed) => ({ selfLink: link(resource), ...more.outputs?.(resource, testbed) }),
  };
};

const networkOf = (inputs: Properties) =>
  inputs.network === undefined ? [] : [{ type: 'gcp:compute:Network', handle: inputs.network }];

function clusterOutputs(cluster: CloudResource, testbed: Testbed): Properties {
  const real = testbed.endpoint(cluster);
  const ca = real?.certificateAuthority ?? String(cluster.facts.certificateAuthority);
  const made = isMade(cluster, testbed);
  const wanted = String(cluster.inputs.minMasterVersion ?? DEFAULT_VERSION);
  const version = wanted.includes('-gke.')
    ? wanted
    : `${/^\d+\.\d+$/.test(wanted) ? `${wanted}.1` : wanted}-gke.1000000`;
  return {
    // An address without a scheme, or host:port of a real API server.
    endpoint: made ? (real?.endpoint.replace(/^https:\/\//, '') ?? address(cluster.uid)) : '',
    masterAuth: {
      ...cluster.inputs.masterAuth,
      clusterCaCertificate: made ? Buffer.from(ca).toString('base64') : '',
      clientCertificate: '',
      clientKey: '',
    },
    masterVersion: version,
    nodeVersion: version,
    location: cluster.inputs.location ?? cluster.region,
    nodeLocations: cluster.inputs.nodeLocations ?? zonesOf(cluster.inputs.location ?? cluster.region),
    clusterIpv4Cidr: '10.52.0.0/14',
    servicesIpv4Cidr: '34.118.224.0/20',
    labelFingerprint: digits(8, JSON.stringify(cluster.inputs.resourceLabels ?? {})),
    operation: null,
  };
}

const poolMachines = (inputs: Properties, testbed: Testbed): Machines => {
  const zones = list(inputs.nodeLocations ?? zonesOf(inputs.location ?? testbed.region));
  const scaling = inputs.autoscaling;
  const perZone = inputs.nodeCount ?? inputs.initialNodeCount ?? scaling?.minNodeCount ?? 0;
  return {
    count: scaling?.totalMinNodeCount ?? perZone * zones.length,
    spot: inputs.nodeConfig?.spot === true || inputs.nodeConfig?.preemptible === true,
    types: [inputs.nodeConfig?.machineType ?? 'e2-medium'],
    zones,
  };
};

const groupMachines = (inputs: Properties, testbed: Testbed): Machines => {
  const named = list(inputs.versions)[0]?.instanceTemplate;
  const template =
    testbed.find('gcp:compute:InstanceTemplate', named) ?? testbed.find('gcp:compute:RegionInstanceTemplate', named);
  return {
    count: Number(inputs.targetSize ?? 0),
    spot: template?.inputs.scheduling?.provisioningModel === 'SPOT',
    types: list(template?.inputs.machineType),
    zones: list(inputs.distributionPolicyZones ?? zonesOf(inputs.zone ?? inputs.region ?? testbed.region)),
  };
};

const groupOf = {
  outputs: (group: CloudResource) => ({
    instanceGroup: `https://www.googleapis.com/compute/v1/${group.id.replace('instanceGroupManagers', 'instanceGroups')}`,
  }),
  references: (inputs: Properties) =>
    list(inputs.versions).map(({ instanceTemplate: handle }) => ({
      type: inputs.zone ? 'gcp:compute:InstanceTemplate' : 'gcp:compute:RegionInstanceTemplate',
      handle,
      required: false,
    })),
  machines: groupMachines,
} satisfies More;

/** Google Cloud's types. What cannot change is "Changing this forces a new resource" in @pulumi/gcp's own texts. */
export const types: ResourceType[] = [
  typeLikeKind('gcp:compute:Network', {
    immutable: ['name', 'project', 'autoCreateSubnetworks', 'description'],
    outputs: ({ uid }) => ({ networkId: decimals(19, uid), numericId: decimals(19, uid), gatewayIpv4: '' }),
  }),
  typeLikeKind('gcp:compute:Subnetwork', {
    immutable: ['name', 'project', 'region', 'network', 'description'],
    outputs: ({ inputs, uid }) => ({
      gatewayAddress: String(inputs.ipCidrRange).replace(/\.\d+\/\d+$/, '.1'),
      subnetworkId: Number(decimals(10, uid)),
    }),
    references: networkOf,
  }),
  typeLikeKind('gcp:compute:Router', { references: networkOf }),
  typeLikeKind('gcp:compute:RouterNat', {
    immutable: ['name', 'project', 'region', 'router'],
    references: (inputs) => [{ type: 'gcp:compute:Router', handle: inputs.router, onDelete: 'cascade' }],
  }),
  typeLikeKind('gcp:compute:Firewall', { references: networkOf }),
  typeLikeKind('gcp:compute:Address', {
    outputs: ({ uid, inputs }) => ({ address: inputs.address ?? address(uid) }),
  }),
  typeLikeKind('gcp:compute:GlobalAddress', {
    // What a test has put behind it is where it says.
    outputs: (one, testbed) => ({
      address: one.inputs.address ?? URL.parse(testbed.endpoint(one)?.endpoint ?? '')?.hostname ?? address(one.uid),
    }),
  }),
  typeLikeKind('gcp:compute:HealthCheck'),
  typeLikeKind('gcp:compute:BackendService', {
    immutable: ['name', 'project', 'loadBalancingScheme'],
    references: (inputs) => [{ type: 'gcp:compute:HealthCheck', handle: inputs.healthChecks }],
  }),
  typeLikeKind('gcp:compute:TargetTCPProxy', {
    immutable: ['name', 'project', 'description'],
    references: (inputs) => [{ type: 'gcp:compute:BackendService', handle: inputs.backendService }],
  }),
  typeLikeKind('gcp:compute:GlobalForwardingRule', {
    immutable: ['name', 'project', 'description', 'ipAddress', 'portRange', 'loadBalancingScheme'],
    references: (inputs) => [{ type: 'gcp:compute:TargetTCPProxy', handle: inputs.target }],
  }),
  // Templates cannot change at all.
  ...['gcp:compute:InstanceTemplate', 'gcp:compute:RegionInstanceTemplate'].map((type) =>
    typeLikeKind(type, {
      immutable: ['*'],
      outputs: ({ id, uid }) => ({
        selfLinkUnique: `https://www.googleapis.com/compute/v1/${id}?uniqueId=${decimals(19, uid)}`,
      }),
    }),
  ),
  typeLikeKind('gcp:compute:InstanceGroupManager', groupOf),
  typeLikeKind('gcp:compute:RegionInstanceGroupManager', groupOf),
  typeLikeKind('gcp:compute:RegionAutoscaler', {
    references: (inputs) => [
      {
        type: 'gcp:compute:RegionInstanceGroupManager',
        handle: inputs.target,
        onDelete: 'cascade',
        required: false,
      },
    ],
  }),
  typeLikeKind('gcp:container:Cluster', {
    cluster: true,
    immutable: ['name', 'project', 'location', 'network', 'subnetwork', 'ipAllocationPolicy', 'enableAutopilot'],
    secrets: ['masterAuth'],
    facts: async ({ name }) => ({ certificateAuthority: await inventCA(`GKE ${name}`) }),
    outputs: clusterOutputs,
    references: (inputs) => [
      ...networkOf(inputs),
      ...(inputs.subnetwork ? [{ type: 'gcp:compute:Subnetwork', handle: inputs.subnetwork }] : []),
    ],
    refuse({ before, after }) {
      if (!before || after || before.inputs.deletionProtection === false) return undefined;
      // The provider's own, on unless it is said: pulumi/pulumi-gcp 1394.
      const message =
        'Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with cluster deletion.';
      return { code: '', message };
    },
  }),
  typeLikeKind('gcp:container:NodePool', {
    immutable: ['name', 'project', 'location', 'cluster', 'nodeConfig.spot', 'nodeConfig.guestAccelerators'],
    outputs: ({ inputs, name, uid }, testbed) => {
      const cluster = testbed.find('gcp:container:Cluster', inputs.cluster);
      return {
        version: inputs.version ?? (cluster && testbed.outputs(cluster).masterVersion),
        nodeCount: inputs.nodeCount ?? inputs.initialNodeCount ?? 0,
        instanceGroupUrls: poolMachines(inputs, testbed).zones.map(
          (zone) =>
            `https://www.googleapis.com/compute/v1/projects/${testbed.caller.account}/zones/${zone}/instanceGroupManagers/gke-${inputs.cluster}-${name}-${digits(8, uid)}-grp`,
        ),
      };
    },
    references: (inputs) => [{ type: 'gcp:container:Cluster', handle: inputs.cluster, onDelete: 'cascade' }],
    machines: poolMachines,
    refuse({ after }, testbed) {
      const cluster = testbed.find('gcp:container:Cluster', after?.cluster);
      const [nodes, master] = [after?.version, cluster && String(testbed.outputs(cluster).masterVersion)];
      if (!nodes || !master || minor(nodes) <= minor(master)) return undefined;
      // hashicorp/terraform-provider-google 1682.
      const message = `desired node version "${nodes}" cannot be greater than current master version "${master}".`;
      return { code: 'badRequest', message };
    },
  }),
  typeLikeKind('gcp:serviceaccount:Account', {
    nameInput: 'accountId',
    immutable: ['accountId', 'project'],
    outputs: ({ inputs, account, uid, id }) => ({
      email: emailOf(inputs, account),
      member: `serviceAccount:${emailOf(inputs, account)}`,
      name: id,
      uniqueId: decimals(21, uid),
    }),
  }),
  typeLikeKind('gcp:projects:IAMMember', {
    idempotent: true,
    immutable: ['*'],
    aliases: ({ account, inputs: { role, member } }) => [`${account} ${role} ${member}`],
    outputs: ({ uid }) => ({ etag: digits(12, uid) }),
  }),
  // Google deletes neither rings nor keys.
  typeLikeKind('gcp:kms:KeyRing', { permanent: true }),
  typeLikeKind('gcp:kms:CryptoKey', {
    permanent: true,
    immutable: ['name', 'keyRing', 'purpose'],
    references: (inputs) => [{ type: 'gcp:kms:KeyRing', handle: inputs.keyRing, onDelete: 'ignore' }],
  }),
  typeLikeKind('gcp:kms:CryptoKeyIAMMember', {
    idempotent: true,
    immutable: ['*'],
    aliases: ({ inputs: { cryptoKeyId, role, member } }) => {
      const names = String(cryptoKeyId).split('/');
      return [`${names.filter((_, index) => index % 2 === 1).join('/')} ${role} ${member}`];
    },
  }),
  typeLikeKind('gcp:storage:Bucket', { outputs: ({ name }) => ({ url: `gs://${name}` }) }),
];

const minor = (version: unknown): number => Number(String(version).split('.')[1]);
