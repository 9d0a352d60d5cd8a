import type { Attempt, Operation } from '../model.ts';

/** An error of AWS: code and message. */
export type Fault = readonly [code: string, message: string];

/** How a type is called in AWS's API and in the provider's errors, and what is refused in words of its own. */
export interface Api {
  service: string;
  /** As terraform-provider-aws calls it: "creating EKS Cluster (name)". */
  noun: string;
  object: string;
  calls?: Partial<Record<Operation, string>>;
  exists?: (name: string, attempt: Attempt) => Fault;
  quota?: Fault;
  inUse?: (id: string, byType: string) => Fault;
  /** What a request meets that refers to one which is not there. */
  missing?: (handle: string) => Fault;
}

const ec2 = (noun: string, object: string, idName: string, more: Partial<Api> = {}): Api => ({
  service: 'EC2',
  noun: `EC2 ${noun}`,
  object,
  missing: (id) => [`Invalid${idName}.NotFound`, `The ${noun.toLowerCase()} ID '${id}' does not exist`],
  ...more,
});

const dependency =
  (what: string) =>
  (id: string): Fault => ['DependencyViolation', `The ${what} '${id}' has dependencies and cannot be deleted.`];

const entityExists =
  (what: string) =>
  (name: string): Fault => ['EntityAlreadyExists', `${what} with name ${name} already exists.`];

/**
 * Sources of the texts (issues and pull requests on GitHub where nothing else is said):
 * - exists: terraform-aws-modules/terraform-aws-eks 1991 (cluster), aws/aws-cdk 26931 (node group),
 *   aws-ia/terraform-aws-control_tower_account_factory 529 (role), getmoto/moto 5726 (launch template),
 *   hashicorp/terraform 17489 (Auto Scaling group); others by the API references' error lists
 * - quota: terraform-aws-modules/terraform-aws-vpc 429, pulumi/pulumi-eks 48
 * - inUse: gruntwork-io/cloud-nuke 584, rebuy-de/aws-nuke 573
 * - missing: docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html; comments of
 *   terraform-provider-aws internal/service/eks/cluster.go
 */
export const APIS: Readonly<Record<string, Api>> = {
  'aws:ec2:Vpc': ec2('VPC', 'Vpc', 'VpcID', {
    quota: ['VpcLimitExceeded', 'The maximum number of VPCs has been reached.'],
    inUse: dependency('vpc'),
    missing: (id) => ['InvalidVpcID.NotFound', `The vpc ID '${id}' does not exist`],
  }),
  'aws:ec2:Subnet': ec2('Subnet', 'Subnet', 'SubnetID', { inUse: dependency('subnet') }),
  'aws:ec2:InternetGateway': ec2('Internet Gateway', 'InternetGateway', 'InternetGatewayID', {
    inUse: dependency('internetGateway'),
  }),
  'aws:ec2:Eip': ec2('EIP', 'Address', 'AllocationID', {
    calls: { create: 'AllocateAddress', delete: 'ReleaseAddress' },
    quota: ['AddressLimitExceeded', 'The maximum number of addresses has been reached.'],
    inUse: () => ['AuthFailure', 'You do not have permission to access the specified resource.'],
  }),
  'aws:ec2:NatGateway': ec2('NAT Gateway', 'NatGateway', 'NatGatewayID', {
    quota: ['NatGatewayLimitExceeded', 'The maximum number of NAT Gateways has been reached.'],
  }),
  'aws:ec2:RouteTable': ec2('Route Table', 'RouteTable', 'RouteTableID', { inUse: dependency('routeTable') }),
  'aws:ec2:Route': ec2('Route', 'Route', 'Route', {
    exists: (name) => ['RouteAlreadyExists', `The route identified by ${name} already exists.`],
  }),
  'aws:ec2:RouteTableAssociation': ec2('Route Table Association', 'RouteTable', 'AssociationID', {
    calls: { create: 'AssociateRouteTable', delete: 'DisassociateRouteTable' },
    exists: () => [
      'Resource.AlreadyAssociated',
      'The specified association for route table conflicts with an existing association',
    ],
  }),
  'aws:ec2:SecurityGroup': ec2('Security Group', 'SecurityGroup', 'Group', {
    exists: (name) => ['InvalidGroup.Duplicate', `The security group '${name}' already exists for the VPC`],
    inUse: (id) => ['DependencyViolation', `resource ${id} has a dependent object`],
    missing: (id) => ['InvalidGroup.NotFound', `The security group '${id}' does not exist`],
  }),
  'aws:ec2:LaunchTemplate': ec2('Launch Template', 'LaunchTemplate', 'LaunchTemplateId', {
    exists: () => ['InvalidLaunchTemplateName.AlreadyExistsException', 'Launch template name already in use.'],
  }),
  'aws:eks:Cluster': {
    service: 'EKS',
    noun: 'EKS Cluster',
    object: 'Cluster',
    exists: (name) => ['ResourceInUseException', `Cluster already exists with name: ${name}`],
    quota: ['ResourceLimitExceededException', 'Cluster limit exceeded for account.'],
    inUse: (_, by) => [
      'ResourceInUseException',
      by === 'aws:eks:NodeGroup' ? 'Cluster has nodegroups attached' : `Cluster has ${by} attached`,
    ],
    missing: (name) => ['ResourceNotFoundException', `No cluster found for name: ${name}.`],
  },
  'aws:eks:NodeGroup': {
    service: 'EKS',
    noun: 'EKS Node Group',
    object: 'Nodegroup',
    exists: (name) => {
      const [cluster, group] = name.split(':');
      return ['ResourceInUseException', `NodeGroup already exists with name ${group} and cluster name ${cluster}`];
    },
    quota: ['ResourceLimitExceededException', 'Nodegroup limit exceeded for cluster.'],
  },
  'aws:eks:Addon': {
    service: 'EKS',
    noun: 'EKS Add-On',
    object: 'Addon',
    exists: () => ['ResourceInUseException', 'Addon already exists.'],
  },
  'aws:eks:AccessEntry': {
    service: 'EKS',
    noun: 'EKS Access Entry',
    object: 'AccessEntry',
    exists: () => ['ResourceInUseException', 'The specified access entry resource is already in use on this cluster.'],
  },
  'aws:iam:Role': {
    service: 'IAM',
    noun: 'IAM Role',
    object: 'Role',
    exists: entityExists('Role'),
    quota: ['LimitExceeded', 'Cannot exceed quota for RolesPerAccount'],
    inUse: (_, by) => [
      'DeleteConflict',
      by === 'aws:iam:InstanceProfile'
        ? 'Cannot delete entity, must remove roles from instance profile first.'
        : 'Cannot delete entity, must detach all policies first.',
    ],
    missing: (handle) =>
      handle.startsWith('arn:')
        ? ['InvalidParameterException', `roleArn, ${handle}, does not exist`]
        : ['NoSuchEntity', `The role with name ${handle} cannot be found.`],
  },
  'aws:iam:RolePolicyAttachment': {
    service: 'IAM',
    noun: 'IAM Role Policy Attachment',
    object: 'RolePolicy',
    calls: { create: 'AttachRolePolicy', delete: 'DetachRolePolicy', read: 'ListAttachedRolePolicies' },
  },
  'aws:iam:InstanceProfile': {
    service: 'IAM',
    noun: 'IAM Instance Profile',
    object: 'InstanceProfile',
    exists: (name) => ['EntityAlreadyExists', `Instance Profile ${name} already exists.`],
  },
  'aws:iam:OpenIdConnectProvider': {
    service: 'IAM',
    noun: 'IAM OIDC Provider',
    object: 'OpenIDConnectProvider',
    exists: (name) => ['EntityAlreadyExists', `Provider with url ${name} already exists.`],
  },
  'aws:autoscaling:Group': {
    service: 'Auto Scaling',
    noun: 'Auto Scaling Group',
    object: 'AutoScalingGroup',
    exists: (name) => [
      'AlreadyExists',
      `AutoScalingGroup by this name already exists - A group with the name ${name} already exists`,
    ],
  },
  'aws:lb:LoadBalancer': {
    service: 'Elastic Load Balancing v2',
    noun: 'ELBv2 network Load Balancer',
    object: 'LoadBalancer',
    exists: (name) => ['DuplicateLoadBalancerName', `A load balancer with the same name '${name}' exists`],
    quota: ['TooManyLoadBalancers', 'The maximum number of load balancers has been reached'],
    missing: (handle) => ['LoadBalancerNotFound', `Load balancer '${handle}' not found`],
  },
  'aws:lb:TargetGroup': {
    service: 'Elastic Load Balancing v2',
    noun: 'ELBv2 Target Group',
    object: 'TargetGroup',
    exists: (name) => ['DuplicateTargetGroupName', `A target group with the same name '${name}' exists`],
    inUse: (id) => ['ResourceInUse', `Target group '${id}' is currently in use by a listener or a rule`],
    missing: (handle) => ['TargetGroupNotFound', `One or more target groups not found: ${handle}`],
  },
  'aws:lb:Listener': {
    service: 'Elastic Load Balancing v2',
    noun: 'ELBv2 Listener',
    object: 'Listener',
    exists: () => ['DuplicateListener', 'A listener already exists on this port for this load balancer'],
  },
  'aws:kms:Key': { service: 'KMS', noun: 'KMS Key', object: 'Key', calls: { delete: 'ScheduleKeyDeletion' } },
  'aws:kms:Alias': {
    service: 'KMS',
    noun: 'KMS Alias',
    object: 'Alias',
    exists: (name) => ['AlreadyExistsException', `An alias with the name ${name} already exists`],
  },
  'aws:s3:Bucket': {
    service: 'S3',
    noun: 'S3 Bucket',
    object: 'Bucket',
    exists: () => [
      'BucketAlreadyOwnedByYou',
      'Your previous request to create the named bucket succeeded and you already own it.',
    ],
  },
};

/** The type's entry, or what can be told of an unknown type by its name. */
export function apiOf(type: string): Api {
  const [, module = '', object = ''] = type.split(':');
  const service = module === 'ec2' || module === 'vpc' ? 'EC2' : module === 'index' ? 'STS' : module.toUpperCase();
  return APIS[type] ?? { service, noun: `${service} ${object}`, object };
}

/** The operation of AWS's API. */
export function callOf(type: string, operation: Operation): string {
  const { service, object, calls } = apiOf(type);
  if (calls?.[operation]) return calls[operation];
  if (operation === 'create') return `Create${object}`;
  if (operation === 'delete') return `Delete${object}`;
  if (operation === 'invoke') return object.replace(/^get/, 'Describe');
  if (service === 'IAM') return `${operation === 'read' ? 'Get' : 'Update'}${object}`;
  if (operation === 'read') return service === 'EKS' ? `Describe${object}` : `Describe${object}s`;
  return service === 'EC2'
    ? `Modify${object}Attribute`
    : service === 'EKS'
      ? `Update${object}Config`
      : `Update${object}`;
}
