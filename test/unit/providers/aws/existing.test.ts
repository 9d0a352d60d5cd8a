import { describe, expect, it } from 'vitest';
import { existingFrom, IDEMPOTENT } from '../../../../providers/aws/existing.ts';
import { NAMING } from '../../../../providers/aws/names.ts';
import type { WantedResource } from '../../../../providers/pulumi/request.ts';
import { type Answer, type Asked, FakeAws, now, refusal, refusalOfEC2, xml } from './fake-aws.ts';
import { owner, ownerTags } from './fixtures.ts';

const others = { ...ownerTags, 'coppice-uid': 'of an earlier one' };

const wanted = (type: string, name: string, inputs: Record<string, unknown> = {}): WantedResource => ({
  urn: `urn:pulumi:x::coppice::${type}::${name}`,
  type,
  name,
  inputs,
});

const look = (fake: FakeAws, resource: WantedResource) =>
  existingFrom(
    async () => fake.connection(),
    owner,
    () => now,
  )(resource, new AbortController().signal);

const pairs = (tags: Record<string, string>) =>
  Object.entries(tags)
    .map(([key, value]) => `<member><Key>${key}</Key><Value>${value}</Value></member>`)
    .join('');
const list = (set: string, ...items: string[]) =>
  `<${set}>${items.map((item) => `<item>${item}</item>`).join('')}</${set}>`;

/** EC2's filters as they came in. */
const filtersOf = ({ input }: Asked): Record<string, string[]> => {
  const filters: Record<string, string[]> = {};
  for (let index = 1; input[`Filter.${index}.Name`]; index++) {
    const values = Object.entries(input).filter(([name]) => name.startsWith(`Filter.${index}.Value.`));
    filters[input[`Filter.${index}.Name`]] = values.map(([, value]) => value);
  }
  return filters;
};

/** What AWS answers about a resource that exists, and the id that comes of it. `tags`: whose it is. */
type Case = [
  type: string,
  name: string,
  inputs: Record<string, unknown>,
  answer: (tags: typeof ownerTags, asked: Asked) => Answer | undefined,
  id: string,
];

const PRINCIPAL = 'arn:aws:iam::123456789012:role/teams/coppice';
const key = { body: { KeyMetadata: { KeyId: 'k-1', KeyState: 'Enabled' } } };

/** Elastic Load Balancing: what has the name, its tags, and its listeners. */
const balancing: Case[3] = (tags, { action, input }) => {
  const arn = (kind: string) => `<${kind}Arn>arn:${kind}</${kind}Arn>`;
  const told = (result: string) => xml(action, `<${action}Result>${result}</${action}Result>`);
  switch (action) {
    case 'DescribeLoadBalancers':
      return told(`<LoadBalancers><member>${arn('LoadBalancer')}</member></LoadBalancers>`);
    case 'DescribeTargetGroups':
      return told(`<TargetGroups><member>${arn('TargetGroup')}</member></TargetGroups>`);
    case 'DescribeListeners':
      return told(
        `<Listeners><member><Port>80</Port><ListenerArn>other</ListenerArn></member><member><Port>6443</Port>${arn('Listener')}</member></Listeners>`,
      );
    default: {
      const list = Object.entries(tags).map(
        ([key, value]) => `<member><Key>${key}</Key><Value>${value}</Value></member>`,
      );
      expect(input['ResourceArns.member.1']).toMatch(/^arn:(LoadBalancer|TargetGroup)$/);
      return told(`<TagDescriptions><member><Tags>${list.join('')}</Tags></member></TagDescriptions>`);
    }
  }
};

/** Told by names: AWS answers for everybody's, and the tags decide. */
const BY_NAME: Case[] = [
  ['aws:lb/loadBalancer:LoadBalancer', 'endpoint', { name: 'shoot--shop--one' }, balancing, 'arn:LoadBalancer'],
  ['aws:lb/targetGroup:TargetGroup', 'endpoint', { name: 'shoot--shop--one' }, balancing, 'arn:TargetGroup'],
  ['aws:lb/listener:Listener', 'endpoint', { port: 6443 }, balancing, 'arn:Listener'],
  [
    'aws:eks/cluster:Cluster',
    'cluster',
    {},
    (tags, { action }) => (action === '/clusters/shoot--shop--one' ? { body: { cluster: { tags } } } : undefined),
    'shoot--shop--one',
  ],
  [
    'aws:eks/nodeGroup:NodeGroup',
    'pool-a',
    { nodeGroupName: 'a-1' },
    (tags, { action }) =>
      action === '/clusters/shoot--shop--one/node-groups/a-1' ? { body: { nodegroup: { tags } } } : undefined,
    'shoot--shop--one:a-1',
  ],
  [
    'aws:eks/addon:Addon',
    'addon-coredns',
    { addonName: 'coredns' },
    (tags, { action }) =>
      action === '/clusters/shoot--shop--one/addons/coredns' ? { body: { addon: { tags } } } : undefined,
    'shoot--shop--one:coredns',
  ],
  [
    'aws:eks/accessEntry:AccessEntry',
    'administrator',
    { principalArn: PRINCIPAL },
    (tags, { action }) =>
      action === `/clusters/shoot--shop--one/access-entries/${encodeURIComponent(PRINCIPAL)}`
        ? { body: { accessEntry: { tags } } }
        : undefined,
    `shoot--shop--one:${PRINCIPAL}`,
  ],
  [
    'aws:iam/role:Role',
    'role-node',
    { name: 'r' },
    (tags) =>
      xml('GetRole', `<GetRoleResult><Role><RoleName>r</RoleName><Tags>${pairs(tags)}</Tags></Role></GetRoleResult>`),
    'r',
  ],
  [
    'aws:iam/rolePolicyAttachment:RolePolicyAttachment',
    'role-node-Pull',
    { role: 'r', policyArn: 'arn:aws:iam::aws:policy/Pull' },
    (tags, { action }) =>
      action === 'GetRole'
        ? xml('GetRole', `<GetRoleResult><Role><Tags>${pairs(tags)}</Tags></Role></GetRoleResult>`)
        : xml(
            action,
            `<${action}Result><AttachedPolicies><member><PolicyArn>arn:aws:iam::aws:policy/Pull</PolicyArn></member></AttachedPolicies></${action}Result>`,
          ),
    'r/arn:aws:iam::aws:policy/Pull',
  ],
  [
    'aws:iam/instanceProfile:InstanceProfile',
    'machine',
    { name: 'p' },
    (tags) =>
      xml(
        'GetInstanceProfile',
        `<GetInstanceProfileResult><InstanceProfile><Tags>${pairs(tags)}</Tags></InstanceProfile></GetInstanceProfileResult>`,
      ),
    'p',
  ],
  [
    'aws:autoscaling/group:Group',
    'pool-a',
    { name: 'g' },
    (tags) =>
      xml(
        'DescribeAutoScalingGroups',
        `<DescribeAutoScalingGroupsResult><AutoScalingGroups><member><Tags>${pairs(tags)}</Tags></member></AutoScalingGroups></DescribeAutoScalingGroupsResult>`,
      ),
    'g',
  ],
  [
    'aws:kms/alias:Alias',
    'secrets',
    { name: 'alias/a' },
    (tags, { action }) =>
      action === 'DescribeKey'
        ? key
        : { body: { Tags: Object.entries(tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue })) } },
    'alias/a',
  ],
];

/** Told by tags: AWS answers only what bears the owner's. */
const BY_TAGS: Case[] = [
  ['aws:ec2/vpc:Vpc', 'vpc', {}, () => xml('DescribeVpcs', list('vpcSet', '<vpcId>vpc-1</vpcId>')), 'vpc-1'],
  [
    'aws:ec2/subnet:Subnet',
    'private-x',
    {},
    () => xml('DescribeSubnets', list('subnetSet', '<subnetId>subnet-1</subnetId>')),
    'subnet-1',
  ],
  [
    'aws:ec2/internetGateway:InternetGateway',
    'internet',
    {},
    () => xml('DescribeInternetGateways', list('internetGatewaySet', '<internetGatewayId>igw-1</internetGatewayId>')),
    'igw-1',
  ],
  [
    'aws:ec2/eip:Eip',
    'nat-x',
    {},
    () => xml('DescribeAddresses', list('addressesSet', '<allocationId>eipalloc-1</allocationId>')),
    'eipalloc-1',
  ],
  [
    'aws:ec2/natGateway:NatGateway',
    'nat-x',
    {},
    () => xml('DescribeNatGateways', list('natGatewaySet', '<natGatewayId>nat-1</natGatewayId>')),
    'nat-1',
  ],
  [
    'aws:ec2/routeTable:RouteTable',
    'private-x',
    {},
    () => xml('DescribeRouteTables', list('routeTableSet', '<routeTableId>rtb-1</routeTableId>')),
    'rtb-1',
  ],
  [
    'aws:ec2/vpcEndpoint:VpcEndpoint',
    's3',
    {},
    () => xml('DescribeVpcEndpoints', list('vpcEndpointSet', '<vpcEndpointId>vpce-1</vpcEndpointId>')),
    'vpce-1',
  ],
  [
    'aws:ec2/securityGroup:SecurityGroup',
    'machines',
    {},
    () => xml('DescribeSecurityGroups', list('securityGroupInfo', '<groupId>sg-1</groupId>')),
    'sg-1',
  ],
  [
    'aws:ec2/launchTemplate:LaunchTemplate',
    'pool-a',
    {},
    () => xml('DescribeLaunchTemplates', list('launchTemplates', '<launchTemplateId>lt-1</launchTemplateId>')),
    'lt-1',
  ],
  [
    'aws:ec2/route:Route',
    'private-x',
    { destinationCidrBlock: '0.0.0.0/0' },
    () =>
      xml(
        'DescribeRouteTables',
        list(
          'routeTableSet',
          `<routeTableId>rtb-1</routeTableId>${list('routeSet', '<destinationCidrBlock>10.0.0.0/16</destinationCidrBlock>', '<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock>')}`,
        ),
      ),
    'rtb-1_0.0.0.0/0',
  ],
  [
    'aws:ec2/routeTableAssociation:RouteTableAssociation',
    'private-x',
    {},
    (_tags, { action }) =>
      action === 'DescribeSubnets'
        ? xml(action, list('subnetSet', '<subnetId>subnet-1</subnetId>'))
        : xml(action, list('routeTableSet', '<routeTableId>rtb-1</routeTableId>')),
    'subnet-1/rtb-1',
  ],
  [
    'aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation',
    'pods',
    { cidrBlock: '100.96.0.0/16' },
    () =>
      xml(
        'DescribeVpcs',
        list(
          'vpcSet',
          list(
            'cidrBlockAssociationSet',
            '<cidrBlock>10.0.0.0/16</cidrBlock><associationId>a-0</associationId>',
            '<cidrBlock>100.96.0.0/16</cidrBlock><associationId>a-1</associationId>',
          ),
        ),
      ),
    'a-1',
  ],
  [
    'aws:kms/key:Key',
    'secrets',
    {},
    (_tags, { action }) =>
      action === 'GetResources'
        ? { body: { ResourceTagMappingList: [{ ResourceARN: 'arn:aws:kms:eu-central-1:1:key/k-1' }] } }
        : key,
    'k-1',
  ],
];

describe('findExisting at AWS, for a resource that exists,', () => {
  it.each([...BY_NAME, ...BY_TAGS])('finds it: %s %s', async (type, name, inputs, answer, id) => {
    await using fake = await FakeAws.start((asked) => answer(ownerTags, asked));
    expect(await look(fake, wanted(type, name, inputs))).toEqual({ id });
  });

  it('waits for a cluster that AWS is still creating, as it has no address yet', async () => {
    const being = async (status: string) => {
      await using fake = await FakeAws.start(() => ({ body: { cluster: { tags: ownerTags, status } } }));
      return await look(fake, wanted('aws:eks/cluster:Cluster', 'cluster'));
    };
    await expect(being('CREATING')).rejects.toThrow('is still being created');
    expect(await being('UPDATING')).toMatchObject({ id: expect.any(String) });
  });

  it.each(BY_NAME)('ignores one of an earlier cluster: %s %s', async (type, name, inputs, answer) => {
    await using fake = await FakeAws.start((asked) => answer(others, asked));
    expect(await look(fake, wanted(type, name, inputs))).toBeUndefined();
  });

  it.each(BY_TAGS.filter(([type]) => type.includes(':ec2/') || type.startsWith('aws:ec2/')))(
    'searches only among resources of the owner: %s %s',
    async (type, name, inputs, answer) => {
      await using fake = await FakeAws.start((asked) => answer(ownerTags, asked));
      await look(fake, wanted(type, name, inputs));
      const part = type.includes('CidrBlock') ? 'vpc' : name;
      expect(filtersOf(fake.asked[0]!)).toMatchObject({
        'tag:coppice-technical-id': ['shoot--shop--one'],
        'tag:coppice-uid': ['0b3c'],
        'tag:Name': [`shoot--shop--one-${part}`],
      });
    },
  );
});

describe('findExisting at AWS, for a resource that does not exist,', () => {
  it.each<[string, Answer]>([
    ['EKS does not know', { status: 404, body: { __type: 'ResourceNotFoundException', message: 'No cluster found' } }],
    ['Elastic Load Balancing does not know', refusal(400, 'LoadBalancerNotFound')],
    ['IAM does not know', refusal(404, 'NoSuchEntity')],
    ['EC2 does not know', refusalOfEC2(400, 'InvalidLaunchTemplateName.NotFoundException')],
  ])('finds none: %s', async (_what, answer) => {
    await using fake = await FakeAws.start(() => answer);
    expect(await look(fake, wanted('aws:eks/cluster:Cluster', 'cluster'))).toBeUndefined();
  });

  it('finds none for a policy that is not attached to the role', async () => {
    await using fake = await FakeAws.start(({ action }) =>
      action === 'GetRole'
        ? xml(action, `<GetRoleResult><Role><Tags>${pairs(ownerTags)}</Tags></Role></GetRoleResult>`)
        : xml(action, `<${action}Result><AttachedPolicies/></${action}Result>`),
    );
    const policy = wanted('aws:iam/rolePolicyAttachment:RolePolicyAttachment', 'p', { role: 'r', policyArn: 'arn' });
    expect(await look(fake, policy)).toBeUndefined();
  });

  it('finds none in an empty list', async () => {
    await using fake = await FakeAws.start(({ action }) => xml(action, '<vpcSet/>'));
    expect(await look(fake, wanted('aws:ec2/vpc:Vpc', 'vpc'))).toBeUndefined();
  });

  it('finds none for a key that awaits deletion, or a deleted NAT gateway', async () => {
    await using fake = await FakeAws.start((asked) =>
      asked.action === 'GetResources'
        ? { body: { ResourceTagMappingList: [{ ResourceARN: 'arn:aws:kms:eu-central-1:1:key/k-1' }] } }
        : asked.action === 'DescribeKey'
          ? { body: { KeyMetadata: { KeyId: 'k-1', KeyState: 'PendingDeletion' } } }
          : xml(asked.action, list('natGatewaySet')),
    );
    expect(await look(fake, wanted('aws:kms/key:Key', 'secrets'))).toBeUndefined();
    expect(await look(fake, wanted('aws:ec2/natGateway:NatGateway', 'nat-x'))).toBeUndefined();
    expect(filtersOf(fake.asked.at(-1)!).state).toEqual(['pending', 'available']);
  });

  it('rejects when AWS does not answer', async () => {
    await using fake = await FakeAws.start(() => refusalOfEC2(503, 'RequestLimitExceeded'));
    await expect(look(fake, wanted('aws:ec2/vpc:Vpc', 'vpc'))).rejects.toMatchObject({
      code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
    });
  });
});

it('all types that the AWS programs declare are searched for, or are idempotent', () => {
  const known = [...BY_NAME, ...BY_TAGS].map(([type]) => type);
  expect(Object.keys(NAMING).filter((type) => !known.includes(type) && !IDEMPOTENT.includes(type))).toEqual([]);
});
