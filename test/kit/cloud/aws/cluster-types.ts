import { digits } from '../digits.ts';
import { inventCA } from '../invented-ca.ts';
import {
  type CloudResource,
  isMade,
  type Machines,
  type Properties,
  type Refusal,
  type ResourceType,
  type Testbed,
} from '../model.ts';
import { arn, joined, list, numbered, simple, uuid } from './naming.ts';

const DEFAULT_VERSION = '1.36';

const inCluster = (inputs: Properties) => ({
  type: 'aws:eks:Cluster',
  handle: inputs.clusterName,
  onDelete: 'cascade' as const,
});
const minor = (version: unknown): number => Number(String(version).split('.')[1]);

/** Zones of the subnets, as far as they are known. */
const zonesOfSubnets = (ids: unknown, testbed: Testbed): string[] =>
  list(ids).flatMap((id) => {
    const subnet = testbed.find('aws:ec2:Subnet', id);
    return subnet ? [String(testbed.outputs(subnet).availabilityZone)] : [];
  });

/**
 * EKS' own rules: zones by its user guide's network requirements, versions by rancher/rancher 26908, names by its comments in
 * terraform-provider-aws.
 */
function refuseCluster(
  { before, after }: { before?: CloudResource; after?: Properties },
  testbed: Testbed,
): Refusal | undefined {
  const zones = new Set(zonesOfSubnets(after?.vpcConfig?.subnetIds, testbed));
  if (zones.size === 1) {
    return {
      code: 'InvalidParameterException',
      message: 'Subnets specified must be in at least two different AZs',
    };
  }
  const [from, to] = [before?.inputs.version, after?.version];
  if (!before || to === undefined || from === to || minor(to) === minor(from ?? DEFAULT_VERSION) + 1) return undefined;
  return {
    code: 'InvalidParameterException',
    message: `Unsupported Kubernetes minor version update from ${from ?? DEFAULT_VERSION} to ${to}`,
  };
}

const status = (resource: CloudResource, testbed: Testbed): string => {
  if (resource.goneAt !== undefined) return 'DELETING';
  if (resource.failure !== undefined) return 'CREATE_FAILED';
  if (!isMade(resource, testbed)) return 'CREATING';
  return testbed.now < resource.readyAt ? 'UPDATING' : 'ACTIVE';
};

function clusterOutputs(cluster: CloudResource, testbed: Testbed): Properties {
  const number = digits(32, cluster.uid).toUpperCase();
  const real = testbed.endpoint(cluster);
  const subnet = testbed.find('aws:ec2:Subnet', list(cluster.inputs.vpcConfig?.subnetIds)[0]);
  const common = {
    arn: arn(cluster, 'eks', `cluster/${cluster.name}`),
    status: status(cluster, testbed),
    version: cluster.inputs.version ?? DEFAULT_VERSION,
    platformVersion: 'eks.1',
    createdAt: new Date(cluster.createdAt).toISOString(),
    identities: [{ oidcs: [{ issuer: `https://oidc.eks.${cluster.region}.amazonaws.com/id/${number}` }] }],
    vpcConfig: {
      ...cluster.inputs.vpcConfig,
      clusterSecurityGroupId: numbered('sg')(cluster),
      vpcId: subnet?.inputs.vpcId ?? '',
    },
  };
  // Describing a cluster that is being made gives neither address nor certificate.
  if (!isMade(cluster, testbed)) return { ...common, endpoint: '', certificateAuthority: { data: '' } };
  const ca = real?.certificateAuthority ?? String(cluster.facts.certificateAuthority);
  return {
    ...common,
    endpoint: real?.endpoint ?? `https://${number}.gr7.${cluster.region}.eks.amazonaws.com`,
    certificateAuthority: { data: Buffer.from(ca).toString('base64') },
  };
}

const nodeGroupMachines = (inputs: Properties, testbed: Testbed): Machines => ({
  count: Number(inputs.scalingConfig?.desiredSize ?? 0),
  spot: inputs.capacityType === 'SPOT',
  types: list(inputs.instanceTypes ?? 't3.medium'),
  zones: zonesOfSubnets(inputs.subnetIds, testbed),
});

const NODE_GROUP_FIXED = [
  'clusterName',
  'nodeGroupName',
  'nodeRoleArn',
  'subnetIds',
  'instanceTypes',
  'amiType',
  'capacityType',
];

/** EKS. What cannot change is ForceNew in terraform-provider-aws internal/service/eks/{cluster,node_group}.go. */
export const clusterTypes: ResourceType[] = [
  simple('aws:eks:Cluster', {
    nameInput: 'name',
    cluster: true,
    immutable: [
      'name',
      'roleArn',
      'accessConfig.bootstrapClusterCreatorAdminPermissions',
      'bootstrapSelfManagedAddons',
      'kubernetesNetworkConfig.ipFamily',
      'kubernetesNetworkConfig.serviceIpv4Cidr',
    ],
    id: ({ name }) => name,
    uniqueBy: (inputs) => inputs.name,
    facts: async ({ name }) => ({ certificateAuthority: await inventCA(`kubernetes of ${name}`) }),
    outputs: clusterOutputs,
    references: (inputs) => [
      { type: 'aws:iam:Role', handle: inputs.roleArn, onDelete: 'ignore' },
      ...list(inputs.vpcConfig?.subnetIds).map((handle) => ({ type: 'aws:ec2:Subnet', handle })),
      ...list(inputs.vpcConfig?.securityGroupIds).map((handle) => ({ type: 'aws:ec2:SecurityGroup', handle })),
    ],
    refuse: refuseCluster,
  }),
  simple('aws:eks:NodeGroup', {
    nameInput: 'nodeGroupName',
    immutable: [...NODE_GROUP_FIXED, 'diskSize', 'remoteAccess', 'launchTemplate.id', 'launchTemplate.name'],
    id: ({ inputs, name }) => `${inputs.clusterName}:${name}`,
    uniqueBy: (inputs) => joined(inputs, 'clusterName', 'nodeGroupName'),
    outputs: (group, testbed) => ({
      arn: arn(group, 'eks', `nodegroup/${group.inputs.clusterName}/${group.name}/${uuid(group.uid)}`),
      status: status(group, testbed),
      version: group.inputs.version ?? DEFAULT_VERSION,
      resources: [{ autoscalingGroups: [{ name: `eks-${group.name}-${uuid(group.uid)}` }] }],
    }),
    references: (inputs) => [
      // Unlike all else in a cluster it does not go with it.
      { ...inCluster(inputs), onDelete: 'refuse' },
      ...list(inputs.subnetIds).map((handle) => ({ type: 'aws:ec2:Subnet', handle })),
      ...(inputs.launchTemplate?.id
        ? [{ type: 'aws:ec2:LaunchTemplate', handle: inputs.launchTemplate.id, onDelete: 'ignore' as const }]
        : []),
    ],
    machines: nodeGroupMachines,
  }),
  simple('aws:eks:Addon', {
    immutable: ['clusterName', 'addonName'],
    id: ({ inputs }) => `${inputs.clusterName}:${inputs.addonName}`,
    uniqueBy: (inputs) => joined(inputs, 'clusterName', 'addonName'),
    outputs: (addon) => ({ arn: arn(addon, 'eks', `addon/${addon.id.replace(':', '/')}/${uuid(addon.uid)}`) }),
    references: (inputs) => [inCluster(inputs)],
  }),
  simple('aws:eks:AccessEntry', {
    immutable: ['clusterName', 'principalArn', 'type'],
    id: ({ inputs }) => `${inputs.clusterName}:${inputs.principalArn}`,
    uniqueBy: (inputs) => joined(inputs, 'clusterName', 'principalArn'),
    outputs: (entry) => ({
      accessEntryArn: arn(entry, 'eks', `access-entry/${entry.inputs.clusterName}/${uuid(entry.uid)}`),
      userName: entry.inputs.userName ?? entry.inputs.principalArn,
    }),
    references: (inputs) => [inCluster(inputs)],
  }),
  simple('aws:eks:AccessPolicyAssociation', {
    immutable: ['clusterName', 'principalArn', 'policyArn', 'accessScope'],
    idempotent: true,
    id: ({ inputs }) => `${inputs.clusterName}#${inputs.principalArn}#${inputs.policyArn}`,
    uniqueBy: (inputs) => joined(inputs, 'clusterName', 'principalArn', 'policyArn'),
    references: (inputs) => [
      inCluster(inputs),
      {
        type: 'aws:eks:AccessEntry',
        handle: `${inputs.clusterName}:${inputs.principalArn}`,
        onDelete: 'cascade',
      },
    ],
  }),
  simple('aws:eks:PodIdentityAssociation', {
    immutable: ['clusterName', 'namespace', 'serviceAccount'],
    id: ({ uid }) => `a-${digits(17, uid)}`,
    aliases: ({ inputs, id }) => [`${inputs.clusterName},${id}`],
    uniqueBy: (inputs) => joined(inputs, 'clusterName', 'namespace', 'serviceAccount'),
    outputs: ({ id }) => ({ associationId: id }),
    references: (inputs) => [inCluster(inputs)],
  }),
];
