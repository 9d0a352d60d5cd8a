import { ADOPTED } from '../adopted-cluster.ts';
import type { Owner } from '../cloud.ts';
import { beingCreated } from '../pulumi/being-created.ts';
import type { FindExisting, WantedResource } from '../pulumi/request.ts';
import { OWNER_TAGS } from '../tags.ts';
import { type AwsConnection, awsCodeOf, getJson, postJson, query } from './api.ts';
import { clusterName, nameTag, physicalName } from './names.ts';
import { resourcesWith } from './tagged.ts';
import { type Element, itemsAt, textAt } from './xml.ts';

/** Finds the import id of an owner's resource. Ids: the "Import" sections in @pulumi/aws 7.48. */
type Find = (aws: AwsConnection, owner: Owner, wanted: WantedResource) => Promise<string | undefined>;

type Tags = Record<string, string | undefined>;

const isOf = (owner: Owner, tags: Tags): boolean =>
  tags[OWNER_TAGS.technicalID] === owner.technicalID && tags[OWNER_TAGS.uid] === owner.uid;

/** Tags as lists of EC2 (key, value) and of IAM and Auto Scaling (Key, Value). */
/** Tags of an element, listed in its child `list`. */
export const tagsIn = (element: Element | undefined, list: string): Tags =>
  Object.fromEntries(
    itemsAt(element, list).map((tag) => [
      textAt(tag, 'key') || textAt(tag, 'Key'),
      textAt(tag, 'value') || textAt(tag, 'Value'),
    ]),
  );

const input = ({ inputs }: WantedResource, name: string): string => String(inputs[name] ?? '');

/**
 * EC2 resources with only an id: found by the owner's tags and tag Name. `states` excludes deleted ones that AWS still
 * lists.
 */
const byTags =
  (action: string, set: string, id: string, states?: { filter: string; values: string[] }): Find =>
  async (aws, owner, { name }) => {
    const [first] = (await itemsByTags(aws, owner, name, action, set, states)).map((item) => textAt(item, id)).sort();
    return first || undefined;
  };

async function itemsByTags(
  aws: AwsConnection,
  owner: Owner,
  name: string,
  action: string,
  set: string,
  states?: { filter: string; values: string[] },
): Promise<Element[]> {
  const filters = [
    [`tag:${OWNER_TAGS.technicalID}`, owner.technicalID],
    [`tag:${OWNER_TAGS.uid}`, owner.uid],
    ['tag:Name', nameTag(owner, name)],
    ...(states ? [[states.filter, ...states.values]] : []),
  ] as const;
  const parameters = filters.flatMap(([key, ...values], index) => [
    [`Filter.${index + 1}.Name`, key!],
    ...values.map((value, at) => [`Filter.${index + 1}.Value.${at + 1}`, value]),
  ]);
  return itemsAt(await query(aws, 'ec2', action, Object.fromEntries(parameters)), set);
}

const routeTables = (aws: AwsConnection, owner: Owner, name: string) =>
  itemsByTags(aws, owner, name, 'DescribeRouteTables', 'routeTableSet');

/** EKS resources, returned with their tags under `kind`. */
const inEKS =
  (
    kind: string,
    action: string,
    path: (wanted: WantedResource) => string,
    id: (cluster: string, wanted: WantedResource) => string,
  ): Find =>
  async (aws, owner, wanted) => {
    // Only the program knows the name of an adopted cluster.
    const cluster = input(wanted, 'clusterName') || clusterName(owner);
    const url = `/clusters/${encodeURIComponent(cluster)}${path(wanted)}`;
    const answer = await getJson<Record<string, { tags?: Tags; status?: string }>>(aws, 'eks', action, url);
    const { tags = {}, status } = answer[kind] ?? {};
    if (!isOf(owner, tags)) return undefined;
    // Only for clusters: an add-on stays in CREATING until there are nodes.
    if (kind === 'cluster' && status === 'CREATING') throw beingCreated(`EKS cluster ${cluster}`);
    return id(cluster, wanted);
  };

async function isOwnIn(
  aws: AwsConnection,
  owner: Owner,
  kind: 'Role' | 'InstanceProfile',
  name: string,
): Promise<boolean> {
  const answer = await query(aws, 'iam', `Get${kind}`, { [`${kind}Name`]: name });
  const { [`Get${kind}Result`]: result } = answer as Record<string, Element>;
  return isOf(owner, tagsIn((result as Record<string, Element>)?.[kind], 'Tags'));
}

const inIAM =
  (kind: 'Role' | 'InstanceProfile'): Find =>
  async (aws, owner, wanted) => {
    const name = input(wanted, 'name');
    return (await isOwnIn(aws, owner, kind, name)) ? name : undefined;
  };

const encoded = (wanted: WantedResource, name: string): string => encodeURIComponent(input(wanted, name));
const ALIVE = { filter: 'state', values: ['pending', 'available'] };

const FINDERS: Readonly<Record<string, Find>> = {
  'aws:ec2/vpc:Vpc': byTags('DescribeVpcs', 'vpcSet', 'vpcId'),
  'aws:ec2/subnet:Subnet': byTags('DescribeSubnets', 'subnetSet', 'subnetId'),
  'aws:ec2/internetGateway:InternetGateway': byTags(
    'DescribeInternetGateways',
    'internetGatewaySet',
    'internetGatewayId',
  ),
  'aws:ec2/eip:Eip': byTags('DescribeAddresses', 'addressesSet', 'allocationId'),
  'aws:ec2/natGateway:NatGateway': byTags('DescribeNatGateways', 'natGatewaySet', 'natGatewayId', ALIVE),
  'aws:ec2/routeTable:RouteTable': byTags('DescribeRouteTables', 'routeTableSet', 'routeTableId'),
  'aws:ec2/vpcEndpoint:VpcEndpoint': byTags('DescribeVpcEndpoints', 'vpcEndpointSet', 'vpcEndpointId', {
    filter: 'vpc-endpoint-state',
    values: ['pending', 'available'],
  }),
  'aws:ec2/securityGroup:SecurityGroup': byTags('DescribeSecurityGroups', 'securityGroupInfo', 'groupId'),
  'aws:ec2/launchTemplate:LaunchTemplate': byTags('DescribeLaunchTemplates', 'launchTemplates', 'launchTemplateId'),

  'aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation': async (aws, owner, wanted) => {
    const vpcs = await itemsByTags(aws, owner, 'vpc', 'DescribeVpcs', 'vpcSet');
    const associations = vpcs.flatMap((vpc) => itemsAt(vpc, 'cidrBlockAssociationSet'));
    const ours = associations.find((association) => textAt(association, 'cidrBlock') === input(wanted, 'cidrBlock'));
    return textAt(ours, 'associationId') || undefined;
  },
  // A route table and its only route of Coppice's share a logical name.
  'aws:ec2/route:Route': async (aws, owner, wanted) => {
    const destination = input(wanted, 'destinationCidrBlock');
    const tables = await routeTables(aws, owner, wanted.name);
    const table = tables.find((known) =>
      itemsAt(known, 'routeSet').some((route) => textAt(route, 'destinationCidrBlock') === destination),
    );
    return table && `${textAt(table, 'routeTableId')}_${destination}`;
  },
  // A subnet and its association share one too.
  'aws:ec2/routeTableAssociation:RouteTableAssociation': async (aws, owner, { name }) => {
    const subnets = await itemsByTags(aws, owner, name, 'DescribeSubnets', 'subnetSet');
    const [subnet] = subnets.map((known) => textAt(known, 'subnetId')).sort();
    if (!subnet) return undefined;
    const filter = { 'Filter.1.Name': 'association.subnet-id', 'Filter.1.Value.1': subnet };
    const [table] = itemsAt(await query(aws, 'ec2', 'DescribeRouteTables', filter), 'routeTableSet');
    return table && `${subnet}/${textAt(table, 'routeTableId')}`;
  },

  'aws:iam/role:Role': inIAM('Role'),
  'aws:iam/instanceProfile:InstanceProfile': inIAM('InstanceProfile'),
  // Without tags: it belongs to its role's owner. Attaching again is idempotent, but AWS deletes no role with
  // attachments.
  'aws:iam/rolePolicyAttachment:RolePolicyAttachment': async (aws, owner, wanted) => {
    const [role, policy] = [input(wanted, 'role'), input(wanted, 'policyArn')];
    if (!(await isOwnIn(aws, owner, 'Role', role))) return undefined;
    // A role has at most 25, a page 100 (IAM user guide, "IAM and AWS STS quotas"; ListAttachedRolePolicies,
    // MaxItems).
    const answer = await query(aws, 'iam', 'ListAttachedRolePolicies', { RoleName: role });
    const attached = itemsAt(answer, 'ListAttachedRolePoliciesResult', 'AttachedPolicies');
    return attached.some((one) => textAt(one, 'PolicyArn') === policy) ? `${role}/${policy}` : undefined;
  },

  'aws:kms/key:Key': async (aws, owner, { name }) => {
    const found = await resourcesWith(aws, {
      ResourceTypeFilters: ['kms:key'],
      TagFilters: [
        { Key: OWNER_TAGS.technicalID, Values: [owner.technicalID] },
        { Key: OWNER_TAGS.uid, Values: [owner.uid] },
        { Key: 'Name', Values: [nameTag(owner, name)] },
      ],
    });
    for (const { ResourceARN } of found) if (await isLivingKey(aws, ResourceARN)) return ResourceARN.split('/').at(-1);
    return undefined;
  },
  'aws:kms/alias:Alias': async (aws, owner, wanted) => {
    const alias = input(wanted, 'name');
    const { KeyMetadata } = await postJson<KeyDescription>(aws, 'kms', 'TrentService.DescribeKey', { KeyId: alias });
    const { Tags } = await postJson<{ Tags: { TagKey: string; TagValue: string }[] }>(
      aws,
      'kms',
      'TrentService.ListResourceTags',
      { KeyId: KeyMetadata.KeyId },
    );
    const tags = Object.fromEntries(Tags.map(({ TagKey, TagValue }) => [TagKey, TagValue]));
    return isOf(owner, tags) ? alias : undefined;
  },

  'aws:eks/cluster:Cluster': inEKS(
    'cluster',
    'DescribeCluster',
    () => '',
    (cluster) => cluster,
  ),
  'aws:eks/nodeGroup:NodeGroup': inEKS(
    'nodegroup',
    'DescribeNodegroup',
    (wanted) => `/node-groups/${encoded(wanted, 'nodeGroupName')}`,
    (cluster, wanted) => `${cluster}:${input(wanted, 'nodeGroupName')}`,
  ),
  'aws:eks/addon:Addon': inEKS(
    'addon',
    'DescribeAddon',
    (wanted) => `/addons/${encoded(wanted, 'addonName')}`,
    (cluster, wanted) => `${cluster}:${input(wanted, 'addonName')}`,
  ),
  'aws:eks/accessEntry:AccessEntry': inEKS(
    'accessEntry',
    'DescribeAccessEntry',
    (wanted) => `/access-entries/${encoded(wanted, 'principalArn')}`,
    (cluster, wanted) => `${cluster}:${input(wanted, 'principalArn')}`,
  ),

  'aws:autoscaling/group:Group': async (aws, owner, wanted) => {
    const name = input(wanted, 'name');
    const parameters = { 'AutoScalingGroupNames.member.1': name };
    const answer = await query(aws, 'autoscaling', 'DescribeAutoScalingGroups', parameters);
    const [group] = itemsAt(answer, 'DescribeAutoScalingGroupsResult', 'AutoScalingGroups');
    return isOf(owner, tagsIn(group, 'Tags')) ? name : undefined;
  },

  'aws:lb/loadBalancer:LoadBalancer': ofELB('LoadBalancer'),
  'aws:lb/targetGroup:TargetGroup': ofELB('TargetGroup'),
  // Identified by its load balancer and port.
  'aws:lb/listener:Listener': async (aws, owner, wanted) => {
    const name = physicalName('aws:lb/loadBalancer:LoadBalancer', owner);
    const balancer = await arnOfELB(aws, owner, 'LoadBalancer', name);
    if (!balancer) return undefined;
    const answer = await query(aws, 'elasticloadbalancing', 'DescribeListeners', { LoadBalancerArn: balancer });
    const listeners = itemsAt(answer, 'DescribeListenersResult', 'Listeners');
    const ours = listeners.find((listener) => textAt(listener, 'Port') === input(wanted, 'port'));
    return textAt(ours, 'ListenerArn') || undefined;
  },
};

type ELBKind = 'LoadBalancer' | 'TargetGroup';

function ofELB(kind: ELBKind): Find {
  return (aws, owner, wanted) => arnOfELB(aws, owner, kind, input(wanted, 'name'));
}

/** Names are unique in a region across owners. */
async function arnOfELB(aws: AwsConnection, owner: Owner, kind: ELBKind, name: string): Promise<string | undefined> {
  const answer = await query(aws, 'elasticloadbalancing', `Describe${kind}s`, { 'Names.member.1': name });
  const [found] = itemsAt(answer, `Describe${kind}sResult`, `${kind}s`);
  const arn = textAt(found, `${kind}Arn`);
  if (!arn) return undefined;
  const told = await query(aws, 'elasticloadbalancing', 'DescribeTags', { 'ResourceArns.member.1': arn });
  const [tags] = itemsAt(told, 'DescribeTagsResult', 'TagDescriptions');
  return isOf(owner, tagsIn(tags, 'Tags')) ? arn : undefined;
}

/**
 * Resources whose repeated creation has no effect: AssociateAccessPolicy is idempotent, and a VPC's default security
 * group always exists. They are deleted with their parent.
 */
export const IDEMPOTENT = [
  'aws:eks/accessPolicyAssociation:AccessPolicyAssociation',
  'aws:ec2/defaultSecurityGroup:DefaultSecurityGroup',
];

interface KeyDescription {
  KeyMetadata: { KeyId: string; KeyState: string };
}

async function isLivingKey(aws: AwsConnection, id: string): Promise<boolean> {
  const { KeyMetadata } = await postJson<KeyDescription>(aws, 'kms', 'TrentService.DescribeKey', { KeyId: id });
  return KeyMetadata.KeyState !== 'PendingDeletion';
}

const GONE = /NotFound|^NoSuchEntity$/;

/** A session lasts an hour; a run looks up some dozens of resources and may have waited before. */
const REUSE_MS = 30 * 60_000;

/** Finds resources of the owner that are missing from the state; see FindExisting. */
export function existingFrom(
  connect: () => Promise<Omit<AwsConnection, 'signal'>>,
  owner: Owner,
  now: () => Date,
): FindExisting {
  let opened: { at: number; connection: ReturnType<typeof connect> } | undefined;
  return async (wanted, signal) => {
    const find = FINDERS[wanted.type];
    if (!find) return undefined;
    // Its existence and the permission to adopt it were checked before the program started.
    if (wanted.name === ADOPTED) return { id: input(wanted, 'name'), retain: true };
    const at = now().getTime();
    if (!opened || at - opened.at > REUSE_MS) opened = { at, connection: connect() };
    try {
      const id = await find({ ...(await opened.connection), signal }, owner, wanted);
      return id === undefined ? undefined : { id };
    } catch (error) {
      if (GONE.test(awsCodeOf(error) ?? '')) return undefined;
      throw error;
    }
  };
}
