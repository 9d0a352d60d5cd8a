import { aws as model } from '../aws/model.ts';
import type { CloudResource, Properties, Testbed } from '../model.ts';

/** Lists become elements of this name: `item` in EC2, `member` in other query APIs. */
type ListName = 'item' | 'member';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function toXML(value: unknown, list: ListName): string {
  if (Array.isArray(value)) return value.map((one) => `<${list}>${toXML(one, list)}</${list}>`).join('');
  if (typeof value !== 'object' || value === null) return escaped(String(value ?? ''));
  return Object.entries(value)
    .map(([name, one]) => `<${name}>${toXML(one, list)}</${name}>`)
    .join('');
}

/** An answer of a query API. */
export const answerXML = (action: string, result: Properties, list: ListName): string =>
  `<${action}Response>${toXML(result, list)}<requestId>0</requestId></${action}Response>`;

/** How EC2 shows what it has of a type. */
interface Shown {
  type: string;
  set: string;
  id: string;
  more?: (resource: CloudResource, testbed: Testbed) => Properties;
}

const associations = (table: CloudResource, testbed: Testbed) =>
  testbed
    .all('aws:ec2:RouteTableAssociation')
    .filter(({ inputs }) => inputs.routeTableId === table.id)
    .map(({ id, inputs }) => ({ routeTableAssociationId: id, subnetId: inputs.subnetId }));

const EC2: Readonly<Record<string, Shown>> = {
  DescribeVpcs: {
    type: 'aws:ec2:Vpc',
    set: 'vpcSet',
    id: 'vpcId',
    more: (vpc, testbed) => ({
      cidrBlockAssociationSet: testbed
        .all('aws:ec2:VpcIpv4CidrBlockAssociation')
        .filter(({ inputs }) => inputs.vpcId === vpc.id)
        .map(({ id, inputs }) => ({ associationId: id, cidrBlock: inputs.cidrBlock })),
    }),
  },
  DescribeSubnets: {
    type: 'aws:ec2:Subnet',
    set: 'subnetSet',
    id: 'subnetId',
    more: ({ inputs }) => ({ availabilityZone: inputs.availabilityZone }),
  },
  DescribeInternetGateways: {
    type: 'aws:ec2:InternetGateway',
    set: 'internetGatewaySet',
    id: 'internetGatewayId',
  },
  DescribeAddresses: { type: 'aws:ec2:Eip', set: 'addressesSet', id: 'allocationId' },
  DescribeNatGateways: { type: 'aws:ec2:NatGateway', set: 'natGatewaySet', id: 'natGatewayId' },
  DescribeVpcEndpoints: { type: 'aws:ec2:VpcEndpoint', set: 'vpcEndpointSet', id: 'vpcEndpointId' },
  DescribeSecurityGroups: { type: 'aws:ec2:SecurityGroup', set: 'securityGroupInfo', id: 'groupId' },
  DescribeLaunchTemplates: { type: 'aws:ec2:LaunchTemplate', set: 'launchTemplates', id: 'launchTemplateId' },
  DescribeRouteTables: {
    type: 'aws:ec2:RouteTable',
    set: 'routeTableSet',
    id: 'routeTableId',
    more: (table, testbed) => ({
      routeSet: testbed
        .all('aws:ec2:Route')
        .filter(({ inputs }) => inputs.routeTableId === table.id)
        .map(({ inputs }) => ({ destinationCidrBlock: inputs.destinationCidrBlock })),
      associationSet: associations(table, testbed),
    }),
  },
};

interface Filter {
  name: string;
  values: string[];
}

/** `Filter.1.Name`, `Filter.1.Value.1`, ... */
function filtersOf(fields: Record<string, string>): Filter[] {
  const numbers = Object.keys(fields).flatMap((key) => /^Filter\.(\d+)\.Name$/.exec(key)?.[1] ?? []);
  return numbers.map((number) => ({
    name: fields[`Filter.${number}.Name`]!,
    values: Object.entries(fields).flatMap(([key, value]) =>
      key.startsWith(`Filter.${number}.Value.`) ? [value] : [],
    ),
  }));
}

function passes(resource: CloudResource, { name, values }: Filter, testbed: Testbed): boolean {
  const tags = model.tags(resource);
  if (name.startsWith('tag:')) return values.includes(tags[name.slice(4)] ?? '');
  if (name === 'tag-key') return values.some((key) => tags[key] !== undefined);
  if (name === 'subnet-id') return values.includes(resource.id);
  if (name === 'association.subnet-id') {
    return associations(resource, testbed).some(({ subnetId }) => values.includes(subnetId));
  }
  // States: whatever is here is available.
  return values.includes('available');
}

const listOf = (tags: Record<string, string>, key: string, value: string) =>
  Object.entries(tags).map(([name, one]) => ({ [key]: name, [value]: one }));

/** What EC2's Describe calls answer; undefined for a call that is not known here. */
export function describeEC2(action: string, fields: Record<string, string>, testbed: Testbed): Properties | undefined {
  const shown = EC2[action];
  if (!shown) return undefined;
  const filters = filtersOf(fields);
  const found = testbed
    .all(shown.type)
    .filter((one) => one.region === testbed.region && filters.every((filter) => passes(one, filter, testbed)));
  const items = found.map((one) => ({
    [shown.id]: one.id,
    cidrBlock: one.inputs.cidrBlock ?? '',
    state: 'available',
    createTime: new Date(one.createdAt).toISOString(),
    ...shown.more?.(one, testbed),
    tagSet: listOf(model.tags(one), 'key', 'value'),
  }));
  return { [shown.set]: items };
}

/** What IAM and Auto Scaling show of a resource. */
export const withTagList = (resource: CloudResource, names: Properties): Properties => ({
  ...names,
  Tags: listOf(model.tags(resource), 'Key', 'Value'),
});

/** So few that pages are met with. */
const TAGGED_PAGE = 5;

/** What the tagging API answers. */
export function taggedAnswer(input: Properties, testbed: Testbed): Properties {
  const mappings = testbed
    .all()
    .filter((one) => one.region === testbed.region)
    .flatMap((one) => {
      const [arn, tags] = [testbed.outputs(one).arn as string | undefined, model.tags(one)];
      if (arn === undefined) return [];
      const kind = `${arn.split(':')[2]}:${arn.split(':').slice(5).join(':').split(/[/:]/)[0]}`;
      const kinds = (input.ResourceTypeFilters ?? [kind]) as string[];
      const filters = (input.TagFilters ?? []) as { Key: string; Values?: string[] }[];
      const matches = filters.every(
        ({ Key, Values }) => tags[Key] !== undefined && (!Values?.length || Values.includes(tags[Key])),
      );
      return matches && kinds.includes(kind) ? [{ ResourceARN: arn, Tags: listOf(tags, 'Key', 'Value') }] : [];
    });
  const from = Number(input.PaginationToken || 0);
  const more = from + TAGGED_PAGE < mappings.length;
  return {
    PaginationToken: more ? String(from + TAGGED_PAGE) : '',
    ResourceTagMappingList: mappings.slice(from, from + TAGGED_PAGE),
  };
}
