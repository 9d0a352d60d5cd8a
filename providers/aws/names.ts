import { fitName, shortHash } from '../../operator/api/names.ts';
import type { CloudPool, Owner } from '../cloud.ts';

/**
 * How resources of a type are told apart in the cloud.
 * - an object: by a name of ours, which AWS lets exist once, so that making it a second time fails instead of leaking
 * - `tag`: AWS gives an id; its tag Name and the owner's tags find it again
 * - `parts`: by what it belongs to or connects, which AWS lets exist once
 */
type Naming = { property: string; longest: number; prefix?: string } | 'tag' | 'parts';

/**
 * Every type that our programs declare. Longest names: `max` of the shapes ClusterName, roleNameType, instanceProfileNameType,
 * LaunchTemplateName, AliasNameType and AutoScalingGroupName in botocore 1.43.11's service models; GroupName in the text of its
 * CreateSecurityGroupRequest; load balancers and target groups: 32, text of CreateLoadBalancerInput and CreateTargetGroupInput there; node
 * groups: "can't be longer than 63 characters", EKS user guide, create-managed-node-group.
 */
export const NAMING: Readonly<Record<string, Naming>> = {
  'aws:eks/cluster:Cluster': { property: 'name', longest: 100 },
  'aws:eks/nodeGroup:NodeGroup': { property: 'nodeGroupName', longest: 63 },
  'aws:iam/role:Role': { property: 'name', longest: 64 },
  'aws:iam/instanceProfile:InstanceProfile': { property: 'name', longest: 128 },
  'aws:kms/alias:Alias': { property: 'name', longest: 256, prefix: 'alias/' },
  'aws:ec2/launchTemplate:LaunchTemplate': { property: 'name', longest: 128 },
  'aws:ec2/securityGroup:SecurityGroup': { property: 'name', longest: 255 },
  'aws:autoscaling/group:Group': { property: 'name', longest: 255 },
  'aws:lb/loadBalancer:LoadBalancer': { property: 'name', longest: 32 },
  'aws:lb/targetGroup:TargetGroup': { property: 'name', longest: 32 },
  'aws:lb/listener:Listener': 'parts',
  'aws:ec2/vpc:Vpc': 'tag',
  'aws:ec2/subnet:Subnet': 'tag',
  'aws:ec2/internetGateway:InternetGateway': 'tag',
  'aws:ec2/eip:Eip': 'tag',
  'aws:ec2/natGateway:NatGateway': 'tag',
  'aws:ec2/routeTable:RouteTable': 'tag',
  'aws:ec2/vpcEndpoint:VpcEndpoint': 'tag',
  'aws:ec2/defaultSecurityGroup:DefaultSecurityGroup': 'tag',
  'aws:kms/key:Key': 'tag',
  'aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation': 'parts',
  'aws:ec2/route:Route': 'parts',
  'aws:ec2/routeTableAssociation:RouteTableAssociation': 'parts',
  'aws:iam/rolePolicyAttachment:RolePolicyAttachment': 'parts',
  'aws:eks/accessEntry:AccessEntry': 'parts',
  'aws:eks/accessPolicyAssociation:AccessPolicyAssociation': 'parts',
  'aws:eks/addon:Addon': 'parts',
};

/** The name of a resource of ours, the same at every call: the owner's technicalID and what it is, cut with a hash where AWS wants it shorter. */
export function physicalName(type: string, owner: Pick<Owner, 'technicalID'>, part = ''): string {
  const naming = NAMING[type];
  if (typeof naming !== 'object') throw new TypeError(`${type} has no name of ours: see NAMING`);
  const { prefix = '', longest } = naming;
  return prefix + fitName(part ? `${owner.technicalID}-${part}` : owner.technicalID, longest - prefix.length);
}

/** Tag Name of a resource: what consoles show, and what finds a resource that has only an id. */
export const nameTag = (owner: Pick<Owner, 'technicalID'>, part: string): string =>
  fitName(`${owner.technicalID}-${part}`, 255);

/** EKS' name of the cluster. */
export const clusterName = (owner: Pick<Owner, 'technicalID'>): string =>
  physicalName('aws:eks/cluster:Cluster', owner);

/**
 * EKS' name of a pool's node group, unique within the cluster. What cannot be changed on a node group is part of it: another
 * machine type makes a second group beside the first, which goes when the new nodes are there.
 */
export function nodeGroupName(pool: CloudPool, amiType: string, zones: readonly string[]): string {
  const fixed = [pool.machineType, pool.spot, amiType, [...zones].sort()];
  return fitName(`${pool.name}-${shortHash(JSON.stringify(fixed))}`, 63);
}
