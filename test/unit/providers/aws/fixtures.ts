import type { CloudPool, ManagedClusterInputs, NetworkInputs, Owner } from '../../../../providers/cloud.ts';
import { type Answers, type Graph, graphOf } from '../../../kit/pulumi-graph.ts';

export const owner: Owner = { technicalID: 'shoot--shop--one', uid: '0b3c', name: 'one', namespace: 'shop' };

export const ownerTags = {
  'coppice-technical-id': 'shoot--shop--one',
  'coppice-uid': '0b3c',
  'coppice-cluster': 'one',
  'coppice-namespace': 'shop',
};

export const cloudPool = (changes: Partial<CloudPool> = {}): CloudPool => ({
  name: 'default',
  machineType: 'm5.large',
  minimum: 1,
  maximum: 3,
  desired: 2,
  spot: false,
  gpu: 0,
  architecture: 'amd64',
  labels: {},
  taints: [],
  zones: [],
  ...changes,
});

export const networkInputs = (changes: Partial<NetworkInputs> = {}): NetworkInputs => ({
  owner,
  region: 'eu-central-1',
  zones: ['eu-central-1a', 'eu-central-1b', 'eu-central-1c'],
  cidrs: { nodes: '10.0.0.0/16', pods: '100.96.0.0/11', services: '172.20.0.0/16' },
  ...changes,
});

export const clusterInputs = (changes: Partial<ManagedClusterInputs> = {}): ManagedClusterInputs => ({
  ...networkInputs(),
  kubernetesVersion: '1.36.3',
  network: {
    network: 'vpc-1',
    subnets: [
      { id: 'subnet-a', zone: 'eu-central-1a' },
      { id: 'subnet-b', zone: 'eu-central-1b' },
      { id: 'subnet-c', zone: 'eu-central-1c' },
    ],
  },
  pools: [cloudPool()],
  authorizedNetworks: [],
  ...changes,
});

/** What AWS would answer. */
export const answers: Answers = {
  outputs: ({ type, name }) => ({
    arn: `<${name}.arn>`,
    ...(type === 'aws:eks/cluster:Cluster' && {
      endpoint: 'https://one.eks.example',
      certificateAuthority: { data: Buffer.from('CA\n').toString('base64') },
      identities: [{ oidcs: [{ issuer: 'https://oidc.example/one' }] }],
      vpcConfig: { clusterSecurityGroupId: 'sg-cluster' },
    }),
    ...(type === 'aws:ec2/launchTemplate:LaunchTemplate' && { latestVersion: 7 }),
    ...(type === 'aws:ec2/natGateway:NatGateway' && { publicIp: `198.51.100.${name.charCodeAt(name.length - 1)}` }),
  }),
  call: (token, inputs) => {
    switch (token) {
      case 'aws:index/getCallerIdentity:getCallerIdentity':
        return { arn: 'arn:aws:sts::123456789012:assumed-role/coppice/session', accountId: '123456789012' };
      case 'aws:iam/getSessionContext:getSessionContext':
        return { issuerArn: 'arn:aws:iam::123456789012:role/teams/coppice' };
      case 'aws:eks/getAddonVersion:getAddonVersion':
        return { version: `${inputs.addonName} for ${inputs.kubernetesVersion}` };
      case 'aws:index/getAvailabilityZones:getAvailabilityZones':
        return { names: ['us-east-1a', 'us-east-1b', 'us-east-1c'].filter(() => inputs.excludeZoneIds.length > 0) };
      default:
        throw new Error(`nobody answers ${token}`);
    }
  },
};

/** Types without tags in AWS: each goes with what it belongs to. */
const UNTAGGED =
  /^aws:(kms\/alias|ec2\/route|ec2\/routeTableAssociation|ec2\/vpcIpv4CidrBlockAssociation|iam\/rolePolicyAttachment|eks\/accessPolicyAssociation):/;

/** Resources of the graph that do not say whose they are, in the way their type does. Written without our tables, so as to judge them. */
export function untagged(graph: Graph): string[] {
  const missing = (tags: Record<string, string> | undefined) =>
    Object.entries(ownerTags).some(([key, value]) => tags?.[key] !== value);
  return graph.resources
    .filter(({ type, inputs }) => {
      if (UNTAGGED.test(type)) return false;
      if (type !== 'aws:autoscaling/group:Group') return missing(inputs.tags);
      const tags = (inputs.tags as { key: string; value: string }[]).map(({ key, value }) => [key, value]);
      return missing(Object.fromEntries(tags));
    })
    .map(({ type, name }) => `${type} ${name}`);
}

export { graphOf };
