import type { Owner } from '../cloud.ts';
import { eachPage } from '../pages.ts';
import { tagsOf } from '../tags.ts';
import { type AwsConnection, awsCodeOf, query } from './api.ts';
import { clusterName, physicalName } from './names.ts';
import { elementAt, itemsAt, textAt } from './xml.ts';

const NETWORK = [
  'ec2:AllocateAddress',
  'ec2:AssociateRouteTable',
  'ec2:AssociateVpcCidrBlock',
  'ec2:AttachInternetGateway',
  'ec2:CreateInternetGateway',
  'ec2:CreateLaunchTemplate',
  'ec2:CreateLaunchTemplateVersion',
  'ec2:CreateNatGateway',
  'ec2:CreateRoute',
  'ec2:CreateRouteTable',
  'ec2:CreateSubnet',
  'ec2:CreateTags',
  'ec2:CreateVpc',
  'ec2:CreateVpcEndpoint',
  'ec2:DeleteInternetGateway',
  'ec2:DeleteLaunchTemplate',
  'ec2:DeleteNatGateway',
  'ec2:DeleteRoute',
  'ec2:DeleteRouteTable',
  'ec2:DeleteSubnet',
  'ec2:DeleteTags',
  'ec2:DeleteVpc',
  'ec2:DeleteVpcEndpoints',
  'ec2:DescribeAddresses',
  'ec2:DescribeAddressesAttribute',
  'ec2:DescribeAvailabilityZones',
  'ec2:DescribeInstances',
  'ec2:DescribeInternetGateways',
  'ec2:DescribeLaunchTemplateVersions',
  'ec2:DescribeLaunchTemplates',
  'ec2:DescribeNatGateways',
  'ec2:DescribeNetworkAcls',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribePrefixLists',
  'ec2:DescribeRouteTables',
  'ec2:DescribeSecurityGroups',
  'ec2:DescribeSubnets',
  'ec2:DescribeVpcAttribute',
  'ec2:DescribeVpcEndpoints',
  'ec2:DescribeVpcs',
  'ec2:DetachInternetGateway',
  'ec2:DisassociateRouteTable',
  'ec2:DisassociateVpcCidrBlock',
  'ec2:ModifyLaunchTemplate',
  'ec2:ModifySubnetAttribute',
  'ec2:ModifyVpcAttribute',
  'ec2:ModifyVpcEndpoint',
  'ec2:ReleaseAddress',
  'ec2:ReplaceRoute',
  'ec2:ReplaceRouteTableAssociation',
  'ec2:RevokeSecurityGroupEgress',
  'ec2:RevokeSecurityGroupIngress',
  'ec2:RunInstances',
  'tag:GetResources',
];
const KEYS = [
  'kms:CreateAlias',
  'kms:CreateGrant',
  'kms:CreateKey',
  'kms:DeleteAlias',
  'kms:DescribeKey',
  'kms:EnableKeyRotation',
  'kms:GetKeyPolicy',
  'kms:GetKeyRotationStatus',
  'kms:ListAliases',
  'kms:ListResourceTags',
  'kms:ScheduleKeyDeletion',
  'kms:TagResource',
  'kms:UntagResource',
  'kms:UpdateAlias',
  'kms:UpdateKeyDescription',
];
const CLUSTER = [
  'eks:CreateAccessEntry',
  'eks:CreateAddon',
  'eks:CreateCluster',
  'eks:CreateNodegroup',
  'eks:CreatePodIdentityAssociation',
  'eks:DeleteCluster',
  'eks:DescribeCluster',
  'eks:DescribeUpdate',
  'eks:ListNodegroups',
  'eks:TagResource',
  'eks:UntagResource',
  'eks:UpdateClusterConfig',
  'eks:UpdateClusterVersion',
];
/** What is in a cluster, by the first word of its ARN: policies may be limited to the names of our clusters. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  nodegroup: [
    'eks:DeleteNodegroup',
    'eks:DescribeNodegroup',
    'eks:UpdateNodegroupConfig',
    'eks:UpdateNodegroupVersion',
  ],
  addon: ['eks:DeleteAddon', 'eks:DescribeAddon', 'eks:UpdateAddon'],
  'access-entry': [
    'eks:AssociateAccessPolicy',
    'eks:DeleteAccessEntry',
    'eks:DescribeAccessEntry',
    'eks:DisassociateAccessPolicy',
    'eks:ListAssociatedAccessPolicies',
    'eks:UpdateAccessEntry',
  ],
  podidentityassociation: [
    'eks:DeletePodIdentityAssociation',
    'eks:DescribePodIdentityAssociation',
    'eks:UpdatePodIdentityAssociation',
  ],
};
/** Nodes of node groups that the operator ends by name. */
const NAMED_NODES = [
  'autoscaling:DescribeAutoScalingGroups',
  'autoscaling:SuspendProcesses',
  'autoscaling:TerminateInstanceInAutoScalingGroup',
];
const ROLES = [
  'iam:AttachRolePolicy',
  'iam:CreateRole',
  'iam:DeleteRole',
  'iam:DetachRolePolicy',
  'iam:GetRole',
  'iam:ListAttachedRolePolicies',
  'iam:ListInstanceProfilesForRole',
  'iam:ListRolePolicies',
  'iam:PassRole',
  'iam:TagRole',
  'iam:UntagRole',
  'iam:UpdateAssumeRolePolicy',
  'iam:UpdateRoleDescription',
];

/** For a control plane on machines, in addition to the network's. */
const CONTROL_PLANE = [
  'autoscaling:AttachLoadBalancerTargetGroups',
  'autoscaling:CreateAutoScalingGroup',
  'autoscaling:CreateOrUpdateTags',
  'autoscaling:DeleteAutoScalingGroup',
  'autoscaling:DeleteTags',
  'autoscaling:DescribeAutoScalingGroups',
  'autoscaling:DescribeScalingActivities',
  'autoscaling:DetachLoadBalancerTargetGroups',
  'autoscaling:ResumeProcesses',
  'autoscaling:SetInstanceProtection',
  'autoscaling:SuspendProcesses',
  'autoscaling:TerminateInstanceInAutoScalingGroup',
  'autoscaling:UpdateAutoScalingGroup',
  'ec2:AuthorizeSecurityGroupEgress',
  'ec2:AuthorizeSecurityGroupIngress',
  'ec2:CreateSecurityGroup',
  'ec2:DeleteSecurityGroup',
  'ec2:DescribeImages',
  'elasticloadbalancing:AddTags',
  'elasticloadbalancing:CreateListener',
  'elasticloadbalancing:CreateLoadBalancer',
  'elasticloadbalancing:CreateTargetGroup',
  'elasticloadbalancing:DeleteListener',
  'elasticloadbalancing:DeleteLoadBalancer',
  'elasticloadbalancing:DeleteTargetGroup',
  'elasticloadbalancing:DescribeCapacityReservation',
  'elasticloadbalancing:DescribeListenerAttributes',
  'elasticloadbalancing:DescribeListeners',
  'elasticloadbalancing:DescribeLoadBalancerAttributes',
  'elasticloadbalancing:DescribeLoadBalancers',
  'elasticloadbalancing:DescribeTags',
  'elasticloadbalancing:DescribeTargetGroupAttributes',
  'elasticloadbalancing:DescribeTargetGroups',
  'elasticloadbalancing:DescribeTargetHealth',
  'elasticloadbalancing:ModifyListener',
  'elasticloadbalancing:ModifyListenerAttributes',
  'elasticloadbalancing:ModifyLoadBalancerAttributes',
  'elasticloadbalancing:ModifyTargetGroup',
  'elasticloadbalancing:ModifyTargetGroupAttributes',
  'elasticloadbalancing:RemoveTags',
  'elasticloadbalancing:SetSecurityGroups',
  'elasticloadbalancing:SetSubnets',
  'iam:AddRoleToInstanceProfile',
  'iam:CreateInstanceProfile',
  'iam:DeleteInstanceProfile',
  'iam:GetInstanceProfile',
  'iam:RemoveRoleFromInstanceProfile',
  'iam:TagInstanceProfile',
  'iam:UntagInstanceProfile',
];

/** Permissions on all resources. */
const ANYWHERE = [...NETWORK, ...KEYS, ...NAMED_NODES, 'eks:DescribeAddonVersions'];
const ON_MACHINES = [...NETWORK, ...CONTROL_PLANE];

/** Permissions checked before anything is created, by control plane mode: managed, or on a seed and machines. */
export const PERMISSIONS = {
  managed: [...ANYWHERE, ...CLUSTER, ...Object.values(PARTS).flat(), ...ROLES],
  onMachines: [...ON_MACHINES, ...ROLES],
} as const;

/** Actions of the programs with their resources, so that a policy restricted to Coppice's names suffices. */
const needed = (owner: Owner, arn: (service: string, region: string, resource: string) => string, region: string) => [
  { actions: ANYWHERE, resource: '*' },
  { actions: CLUSTER, resource: arn('eks', region, `cluster/${clusterName(owner)}`) },
  ...Object.entries(PARTS).map(([part, actions]) => ({
    actions,
    resource: arn('eks', region, `${part}/${clusterName(owner)}/*`),
  })),
  { actions: ROLES, resource: arn('iam', '', `role/${physicalName('aws:iam/role:Role', owner, 'cluster')}`) },
];

/**
 * Error codes when AWS cannot simulate: the caller lacks the right or has no policies. Missing permissions then appear
 * at the creation.
 */
const CANNOT_TELL = ['AccessDenied', 'AccessDeniedException', 'NoSuchEntity', 'InvalidInput', 'ValidationError'];

/**
 * Permissions that the programs need and the identity lacks, by IAM's simulation (iam:SimulatePrincipalPolicy). Empty
 * when none is missing, or IAM cannot simulate: for root, federated users, and callers without the right.
 */
export async function missingPermissions(aws: AwsConnection, identity: string, owner: Owner): Promise<string[]> {
  const [, partition, , , account] = policySource(identity)?.split(':') ?? [];
  const arn = (service: string, region: string, resource: string) =>
    `arn:${partition}:${service}:${region}:${account}:${resource}`;
  return missingAmong(aws, identity, owner, needed(owner, arn, aws.region));
}

/** The same for a control plane on machines, with its network and roles. */
export async function missingForControlPlane(aws: AwsConnection, identity: string, owner: Owner): Promise<string[]> {
  const [, partition, , , account] = policySource(identity)?.split(':') ?? [];
  const roles = ['control-plane', 'machine'].map((kind) => ({
    actions: ROLES,
    resource: `arn:${partition}:iam::${account}:role/${physicalName('aws:iam/role:Role', owner, kind)}`,
  }));
  return missingAmong(aws, identity, owner, [{ actions: ON_MACHINES, resource: '*' }, ...roles]);
}

async function missingAmong(
  aws: AwsConnection,
  identity: string,
  owner: Owner,
  wanted: readonly { actions: readonly string[]; resource: string }[],
): Promise<string[]> {
  const source = policySource(identity);
  if (!source) return [];
  try {
    const groups = wanted.map((group) => denied(aws, source, owner, group));
    return [...new Set((await Promise.all(groups)).flat())].sort();
  } catch (error) {
    if (CANNOT_TELL.includes(awsCodeOf(error) ?? '')) return [];
    throw error;
  }
}

/** ARN whose policies decide: the user's, or that of a session's role. */
export function policySource(identity: string): string | undefined {
  if (/:user\//.test(identity)) return identity;
  const session = /^arn:([\w-]+):sts::(\d+):assumed-role\/([^/]+)\//.exec(identity);
  return session ? `arn:${session[1]}:iam::${session[2]}:role/${session[3]}` : undefined;
}

async function denied(
  aws: AwsConnection,
  source: string,
  owner: Owner,
  { actions, resource }: { actions: readonly string[]; resource: string },
): Promise<string[]> {
  const parameters: Record<string, string> = {
    PolicySourceArn: source,
    'ResourceArns.member.1': resource,
    MaxItems: '1000',
  };
  actions.forEach((action, index) => {
    parameters[`ActionNames.member.${index + 1}`] = action;
  });
  Object.entries(requestContext(aws.region, owner)).forEach(([name, value], index) => {
    const entry = `ContextEntries.member.${index + 1}`;
    parameters[`${entry}.ContextKeyName`] = name;
    parameters[`${entry}.ContextKeyType`] = 'string';
    parameters[`${entry}.ContextKeyValues.member.1`] = value;
  });
  const found: string[] = [];
  // "IAM might return fewer than the MaxItems number of results, even when there are more" (IAM API Reference).
  await eachPage(`permissions of ${source}`, async (marker) => {
    const page = { ...parameters, ...(marker && { Marker: marker }) };
    const answer = await query(aws, 'iam', 'SimulatePrincipalPolicy', page);
    const result = elementAt(answer, 'SimulatePrincipalPolicyResult');
    for (const one of itemsAt(result, 'EvaluationResults'))
      if (textAt(one, 'EvalDecision') !== 'allowed') found.push(textAt(one, 'EvalActionName'));
    return textAt(result, 'IsTruncated') === 'true' ? textAt(result, 'Marker') : undefined;
  });
  return found;
}

/** Request attributes that policies often test: the region and the owner's tags. */
function requestContext(region: string, owner: Owner): Record<string, string> {
  const request = Object.entries(tagsOf(owner)).map(([key, value]) => [`aws:RequestTag/${key}`, value]);
  return { 'aws:RequestedRegion': region, ...Object.fromEntries(request) };
}
