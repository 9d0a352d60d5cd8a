import { type Needs, needsOf } from './needs.ts';

const ec2 = needsOf('ec2');
const eks = needsOf('eks');
const iam = needsOf('iam');
const kms = needsOf('kms');
const autoscaling = needsOf('autoscaling');
const balancing = needsOf('elasticloadbalancing');
const TAG = 'CreateTags';
const RETAG = 'CreateTags DeleteTags';

/**
 * What AWS and its Pulumi provider call for each type. Sources: handlers of AWS' resource schemas and the mapping of Terraform's resources in
 * github.com/JamesWoolfenden/pike at 085701b0 (2026-08-21, src/schema and src/mapping/aws); hashicorp/terraform-provider-aws pull request 42685
 * and floci-io/floci 1020 (reads of balancers and listeners). Left out is what our programs do not ask for: policies of a role, pools of
 * addresses, certificates.
 */
export const AWS_NEEDS: Needs = {
  'aws:ec2:Vpc': ec2({
    create: `CreateVpc ${TAG} ModifyVpcAttribute`,
    read: 'DescribeVpcs DescribeVpcAttribute DescribeRouteTables DescribeSecurityGroups DescribeNetworkAcls',
    update: `ModifyVpcAttribute ${RETAG}`,
    delete: 'DeleteVpc',
  }),
  'aws:ec2:VpcIpv4CidrBlockAssociation': ec2({
    create: 'AssociateVpcCidrBlock',
    read: 'DescribeVpcs',
    delete: 'DisassociateVpcCidrBlock',
  }),
  'aws:ec2:DefaultSecurityGroup': ec2({
    create: `RevokeSecurityGroupEgress RevokeSecurityGroupIngress ${TAG}`,
    read: 'DescribeSecurityGroups',
    update: `RevokeSecurityGroupEgress RevokeSecurityGroupIngress ${RETAG}`,
  }),
  'aws:ec2:SecurityGroup': ec2({
    create: `CreateSecurityGroup AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress RevokeSecurityGroupEgress ${TAG}`,
    read: 'DescribeSecurityGroups',
    update: `AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress RevokeSecurityGroupEgress RevokeSecurityGroupIngress ${RETAG}`,
    delete: 'DeleteSecurityGroup DescribeNetworkInterfaces',
  }),
  'aws:ec2:Subnet': ec2({
    create: `CreateSubnet ${TAG}`,
    read: 'DescribeSubnets',
    update: `ModifySubnetAttribute ${RETAG}`,
    delete: 'DeleteSubnet DescribeNetworkInterfaces',
  }),
  'aws:ec2:InternetGateway': ec2({
    create: `CreateInternetGateway AttachInternetGateway ${TAG}`,
    read: 'DescribeInternetGateways',
    update: RETAG,
    delete: 'DetachInternetGateway DeleteInternetGateway',
  }),
  'aws:ec2:Eip': ec2({
    create: `AllocateAddress ${TAG}`,
    read: 'DescribeAddresses DescribeAddressesAttribute',
    update: RETAG,
    delete: 'ReleaseAddress',
  }),
  'aws:ec2:NatGateway': ec2({
    create: `CreateNatGateway ${TAG}`,
    read: 'DescribeNatGateways',
    update: RETAG,
    delete: 'DeleteNatGateway',
  }),
  'aws:ec2:RouteTable': ec2({
    create: `CreateRouteTable ${TAG}`,
    read: 'DescribeRouteTables',
    update: RETAG,
    delete: 'DeleteRouteTable DisassociateRouteTable',
  }),
  'aws:ec2:Route': ec2({
    create: 'CreateRoute',
    read: 'DescribeRouteTables',
    update: 'ReplaceRoute',
    delete: 'DeleteRoute',
  }),
  'aws:ec2:RouteTableAssociation': ec2({
    create: 'AssociateRouteTable',
    read: 'DescribeRouteTables',
    update: 'ReplaceRouteTableAssociation',
    delete: 'DisassociateRouteTable',
  }),
  'aws:ec2:VpcEndpoint': ec2({
    create: `CreateVpcEndpoint ${TAG}`,
    read: 'DescribeVpcEndpoints DescribePrefixLists',
    update: `ModifyVpcEndpoint ${RETAG}`,
    delete: 'DeleteVpcEndpoints',
  }),
  'aws:ec2:LaunchTemplate': ec2({
    create: `CreateLaunchTemplate ${TAG}`,
    read: 'DescribeLaunchTemplates DescribeLaunchTemplateVersions',
    update: `CreateLaunchTemplateVersion ModifyLaunchTemplate ${RETAG}`,
    delete: 'DeleteLaunchTemplate',
  }),
  'aws:eks:Cluster': eks({
    create:
      'CreateCluster TagResource iam:PassRole kms:CreateGrant kms:DescribeKey ec2:DescribeSubnets ec2:DescribeVpcs',
    read: 'DescribeCluster',
    update: 'UpdateClusterConfig UpdateClusterVersion DescribeUpdate TagResource UntagResource',
    delete: 'DeleteCluster',
  }),
  'aws:eks:NodeGroup': eks({
    create:
      'CreateNodegroup TagResource iam:PassRole iam:GetRole iam:ListAttachedRolePolicies ec2:RunInstances ec2:CreateTags ec2:DescribeSubnets ec2:DescribeLaunchTemplates ec2:DescribeLaunchTemplateVersions',
    read: 'DescribeNodegroup',
    update: 'UpdateNodegroupConfig UpdateNodegroupVersion DescribeUpdate TagResource UntagResource',
    delete: 'DeleteNodegroup',
  }),
  'aws:eks:Addon': eks({
    create: 'CreateAddon TagResource CreatePodIdentityAssociation iam:PassRole iam:GetRole',
    read: 'DescribeAddon DescribePodIdentityAssociation',
    update:
      'UpdateAddon DescribeUpdate UpdatePodIdentityAssociation TagResource UntagResource iam:PassRole iam:GetRole',
    delete: 'DeleteAddon DeletePodIdentityAssociation',
  }),
  'aws:eks:AccessEntry': eks({
    create: 'CreateAccessEntry TagResource',
    read: 'DescribeAccessEntry',
    update: 'UpdateAccessEntry TagResource UntagResource',
    delete: 'DeleteAccessEntry',
  }),
  'aws:eks:AccessPolicyAssociation': eks({
    create: 'AssociateAccessPolicy',
    read: 'ListAssociatedAccessPolicies',
    delete: 'DisassociateAccessPolicy',
  }),
  'aws:iam:Role': iam({
    create: 'CreateRole TagRole',
    read: 'GetRole ListRolePolicies ListAttachedRolePolicies',
    update: 'UpdateAssumeRolePolicy UpdateRoleDescription TagRole UntagRole',
    delete: 'DeleteRole ListInstanceProfilesForRole',
  }),
  'aws:iam:RolePolicyAttachment': iam({
    create: 'AttachRolePolicy',
    read: 'ListAttachedRolePolicies',
    delete: 'DetachRolePolicy',
  }),
  'aws:iam:InstanceProfile': iam({
    create: 'CreateInstanceProfile TagInstanceProfile AddRoleToInstanceProfile PassRole',
    read: 'GetInstanceProfile',
    update: 'AddRoleToInstanceProfile RemoveRoleFromInstanceProfile PassRole TagInstanceProfile UntagInstanceProfile',
    delete: 'RemoveRoleFromInstanceProfile DeleteInstanceProfile',
  }),
  'aws:kms:Key': kms({
    create: 'CreateKey TagResource EnableKeyRotation',
    read: 'DescribeKey GetKeyPolicy GetKeyRotationStatus ListResourceTags',
    update: 'UpdateKeyDescription EnableKeyRotation TagResource UntagResource',
    delete: 'ScheduleKeyDeletion',
  }),
  'aws:kms:Alias': kms({ create: 'CreateAlias', read: 'ListAliases', update: 'UpdateAlias', delete: 'DeleteAlias' }),
  'aws:autoscaling:Group': autoscaling({
    create:
      'CreateAutoScalingGroup CreateOrUpdateTags SuspendProcesses AttachLoadBalancerTargetGroups iam:PassRole ec2:RunInstances ec2:CreateTags',
    read: 'DescribeAutoScalingGroups DescribeScalingActivities',
    update:
      'UpdateAutoScalingGroup CreateOrUpdateTags DeleteTags SuspendProcesses ResumeProcesses AttachLoadBalancerTargetGroups DetachLoadBalancerTargetGroups SetInstanceProtection iam:PassRole ec2:RunInstances',
    delete: 'UpdateAutoScalingGroup DeleteAutoScalingGroup',
  }),
  'aws:lb:LoadBalancer': balancing({
    create: 'CreateLoadBalancer AddTags ModifyLoadBalancerAttributes',
    read: 'DescribeLoadBalancers DescribeLoadBalancerAttributes DescribeTags DescribeCapacityReservation',
    update: 'ModifyLoadBalancerAttributes SetSubnets SetSecurityGroups AddTags RemoveTags',
    delete: 'DeleteLoadBalancer ec2:DescribeNetworkInterfaces',
  }),
  'aws:lb:TargetGroup': balancing({
    create: 'CreateTargetGroup AddTags ModifyTargetGroupAttributes',
    read: 'DescribeTargetGroups DescribeTargetGroupAttributes DescribeTargetHealth DescribeTags',
    update: 'ModifyTargetGroup ModifyTargetGroupAttributes AddTags RemoveTags',
    delete: 'DeleteTargetGroup',
  }),
  'aws:lb:Listener': balancing({
    create: 'CreateListener AddTags ModifyListenerAttributes',
    read: 'DescribeListeners DescribeListenerAttributes DescribeTags',
    update: 'ModifyListener ModifyListenerAttributes AddTags RemoveTags',
    delete: 'DeleteListener',
  }),
  // Look-ups of programs.
  'aws:iam:getSessionContext': { invoke: ['iam:GetRole'] },
  'aws:eks:getAddonVersion': { invoke: ['eks:DescribeAddonVersions'] },
  'aws:index:getAvailabilityZones': { invoke: ['ec2:DescribeAvailabilityZones'] },
  // Everybody may ask who they are.
  'aws:index:getCallerIdentity': { invoke: [] },
};
