import { fitName, shortHash } from '../../operator/api/names.ts';
import type { CloudPool, Owner } from '../cloud.ts';

/**
 * How resources of a type are identified in the cloud.
 * - an object: by a fixed name that must be unique at AWS, so that a second creation fails instead of leaking
 * - `tag`: AWS assigns an id; tag Name and the owner's tags identify the resource
 * - `parts`: by the parent or connected resources, which AWS permits once
 */
type Naming = { property: string; longest: number; prefix?: string } | 'tag' | 'parts';

/**
 * Every resource type of the programs. Longest names: `max` of the shapes ClusterName, roleNameType,
 * instanceProfileNameType, LaunchTemplateName, AliasNameType and AutoScalingGroupName in botocore 1.43.11's service
 * models; GroupName in the text of its CreateSecurityGroupRequest; load balancers and target groups: 32, text of
 * CreateLoadBalancerInput and CreateTargetGroupInput there; node groups: "can't be longer than 63 characters", EKS user
 * guide, create-managed-node-group.
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

/** Deterministic name of a resource: the owner's technicalID and its part, truncated with a hash to AWS' limit. */
export function physicalName(type: string, owner: Pick<Owner, 'technicalID'>, part = ''): string {
  const naming = NAMING[type];
  if (typeof naming !== 'object') throw new TypeError(`${type} has no name of ours: see NAMING`);
  const { prefix = '', longest } = naming;
  return prefix + fitName(part ? `${owner.technicalID}-${part}` : owner.technicalID, longest - prefix.length);
}

/** Tag Name of a resource: shown in consoles, and used to find resources that have only an id. */
export const nameTag = (owner: Pick<Owner, 'technicalID'>, part: string): string =>
  fitName(`${owner.technicalID}-${part}`, 255);

/** Name of the cluster in EKS. */
export const clusterName = (owner: Pick<Owner, 'technicalID'>): string =>
  physicalName('aws:eks/cluster:Cluster', owner);

/**
 * Name of a pool's node group in EKS, unique within the cluster. It includes the immutable properties: another machine
 * type creates a second group, and the first is deleted once the new nodes exist.
 */
export function nodeGroupName(pool: CloudPool, amiType: string, zones: readonly string[]): string {
  const fixed = [pool.machineType, pool.spot, amiType, [...zones].sort()];
  return fitName(`${pool.name}-${shortHash(JSON.stringify(fixed))}`, 63);
}
