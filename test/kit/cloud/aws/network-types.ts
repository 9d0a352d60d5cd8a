import { addressRangesOverlap, ipv4Range, rangeContains } from '../../../../operator/api/address-range.ts';
import { digits } from '../digits.ts';
import type { CloudResource, Properties, Refusal, ResourceType, Testbed } from '../model.ts';
import { arn, joined, list, numbered, simple } from './naming.ts';
import { zonesOf } from './zones.ts';

const vpcOf = (inputs: Properties) => [{ type: 'aws:ec2:Vpc', handle: inputs.vpcId }];
const subnetOf = (inputs: Properties) => [{ type: 'aws:ec2:Subnet', handle: inputs.subnetId }];

const address = (uid: string, salt: string): string =>
  [
    10,
    ...digits(6, uid, salt)
      .match(/../g)!
      .map((pair) => Number.parseInt(pair, 16)),
  ].join('.');

/** EC2's rules for subnets: within the VPC's ranges, and not over another one (errors-overview.html of the EC2 API reference). */
function misplaced(inputs: Properties, testbed: Testbed): Refusal | undefined {
  const range = ipv4Range(String(inputs.cidrBlock));
  const vpc = testbed.find('aws:ec2:Vpc', inputs.vpcId);
  if (!range || !vpc) return undefined;
  const more = testbed.all('aws:ec2:VpcIpv4CidrBlockAssociation').filter(({ inputs: own }) => own.vpcId === vpc.id);
  const inside = [vpc, ...more].some(({ inputs: own }) => {
    const whole = ipv4Range(String(own.cidrBlock));
    return whole && rangeContains(whole, range);
  });
  if (!inside) return { code: 'InvalidSubnet.Range', message: `The CIDR '${inputs.cidrBlock}' is invalid.` };
  const clash = testbed.all('aws:ec2:Subnet').some(({ inputs: own }) => {
    const other = ipv4Range(String(own.cidrBlock));
    return own.vpcId === inputs.vpcId && other && addressRangesOverlap(other, range);
  });
  if (!clash) return undefined;
  return { code: 'InvalidSubnet.Conflict', message: `The CIDR '${inputs.cidrBlock}' conflicts with another subnet` };
}

const zoneOf = ({ inputs, region, uid }: CloudResource): string =>
  inputs.availabilityZone ?? zonesOf(region)[Number.parseInt(uid[0]!, 16) % 3]!;

/** VPCs and what is in them. */
export const networkTypes: ResourceType[] = [
  simple('aws:ec2:Vpc', {
    immutable: ['cidrBlock', 'instanceTenancy'],
    id: numbered('vpc'),
    outputs: (vpc) => ({
      arn: arn(vpc, 'ec2', `vpc/${vpc.id}`),
      ownerId: vpc.account,
      enableDnsSupport: vpc.inputs.enableDnsSupport ?? true,
      mainRouteTableId: numbered('rtb')(vpc),
      defaultRouteTableId: numbered('rtb')(vpc),
      defaultSecurityGroupId: numbered('sg')(vpc),
      defaultNetworkAclId: numbered('acl')(vpc),
    }),
  }),
  simple('aws:ec2:VpcIpv4CidrBlockAssociation', {
    immutable: ['vpcId', 'cidrBlock'],
    id: numbered('vpc-cidr-assoc'),
    uniqueBy: (inputs) => joined(inputs, 'vpcId', 'cidrBlock'),
    references: (inputs) => [{ type: 'aws:ec2:Vpc', handle: inputs.vpcId, onDelete: 'cascade' }],
  }),
  simple('aws:ec2:Subnet', {
    immutable: ['vpcId', 'cidrBlock', 'availabilityZone'],
    id: numbered('subnet'),
    outputs: (subnet) => ({
      arn: arn(subnet, 'ec2', `subnet/${subnet.id}`),
      ownerId: subnet.account,
      availabilityZone: zoneOf(subnet),
      availabilityZoneId: `az-${digits(4, zoneOf(subnet))}`,
    }),
    references: vpcOf,
    refuse: ({ before, after }, testbed) => (before || !after ? undefined : misplaced(after, testbed)),
  }),
  simple('aws:ec2:InternetGateway', {
    id: numbered('igw'),
    outputs: (igw) => ({ arn: arn(igw, 'ec2', `internet-gateway/${igw.id}`), ownerId: igw.account }),
    references: (inputs) => (inputs.vpcId ? vpcOf(inputs) : []),
  }),
  simple('aws:ec2:Eip', {
    id: numbered('eipalloc'),
    outputs: (eip) => ({
      arn: arn(eip, 'ec2', `elastic-ip/${eip.id}`),
      allocationId: eip.id,
      domain: 'vpc',
      publicIp: address(eip.uid, 'public').replace(/^10/, '54'),
    }),
  }),
  simple('aws:ec2:NatGateway', {
    immutable: ['allocationId', 'subnetId', 'connectivityType'],
    id: numbered('nat'),
    outputs: (nat, testbed) => ({
      connectivityType: nat.inputs.connectivityType ?? 'public',
      networkInterfaceId: numbered('eni')(nat),
      privateIp: address(nat.uid, 'private'),
      publicIp: testbed.outputs(testbed.find('aws:ec2:Eip', nat.inputs.allocationId) ?? nat).publicIp ?? '',
    }),
    references: (inputs) => [
      ...subnetOf(inputs),
      ...(inputs.allocationId ? [{ type: 'aws:ec2:Eip', handle: inputs.allocationId }] : []),
    ],
  }),
  simple('aws:ec2:RouteTable', {
    immutable: ['vpcId'],
    id: numbered('rtb'),
    outputs: (table) => ({
      arn: arn(table, 'ec2', `route-table/${table.id}`),
      ownerId: table.account,
      routes: table.inputs.routes ?? [],
    }),
    references: vpcOf,
  }),
  simple('aws:ec2:Route', {
    immutable: ['routeTableId', 'destinationCidrBlock', 'destinationIpv6CidrBlock', 'destinationPrefixListId'],
    id: ({ inputs }) => `r-${inputs.routeTableId}${digits(10, destination(inputs))}`,
    aliases: ({ inputs }) => [`${inputs.routeTableId}_${destination(inputs)}`],
    uniqueBy: (inputs) => `${inputs.routeTableId}|${destination(inputs)}`,
    outputs: () => ({ state: 'active', origin: 'CreateRoute' }),
    references: (inputs) => [
      { type: 'aws:ec2:RouteTable', handle: inputs.routeTableId, onDelete: 'cascade', required: false },
    ],
  }),
  simple('aws:ec2:RouteTableAssociation', {
    immutable: ['subnetId', 'gatewayId'],
    id: numbered('rtbassoc'),
    aliases: ({ inputs }) => [`${inputs.subnetId ?? inputs.gatewayId}/${inputs.routeTableId}`],
    uniqueBy: (inputs) => joined(inputs, 'subnetId', 'gatewayId'),
    references: (inputs) => [
      { type: 'aws:ec2:RouteTable', handle: inputs.routeTableId },
      ...(inputs.subnetId ? [{ type: 'aws:ec2:Subnet', handle: inputs.subnetId, onDelete: 'cascade' as const }] : []),
    ],
  }),
  simple('aws:ec2:SecurityGroup', {
    nameInput: 'name',
    immutable: ['name', 'namePrefix', 'description', 'vpcId'],
    id: numbered('sg'),
    uniqueBy: (inputs) => joined(inputs, 'vpcId', 'name'),
    outputs: (group) => ({ arn: arn(group, 'ec2', `security-group/${group.id}`), ownerId: group.account }),
    references: (inputs) => (inputs.vpcId ? vpcOf(inputs) : []),
  }),
  // Adopts the group that every VPC has; it goes with the VPC.
  simple('aws:ec2:DefaultSecurityGroup', {
    immutable: ['vpcId'],
    idempotent: true,
    id: ({ inputs }) => `sg-${String(inputs.vpcId).slice(4)}`,
    uniqueBy: (inputs) => inputs.vpcId,
    outputs: (group) => ({
      arn: arn(group, 'ec2', `security-group/${group.id}`),
      name: 'default',
      ownerId: group.account,
    }),
    references: (inputs) => [{ type: 'aws:ec2:Vpc', handle: inputs.vpcId, onDelete: 'cascade' }],
  }),
  ...['Ingress', 'Egress'].map((direction) =>
    simple(`aws:vpc:SecurityGroup${direction}Rule`, {
      immutable: ['securityGroupId'],
      id: numbered('sgr'),
      outputs: (rule) => ({
        arn: arn(rule, 'ec2', `security-group-rule/${rule.id}`),
        securityGroupRuleId: rule.id,
      }),
      references: (inputs) => [{ type: 'aws:ec2:SecurityGroup', handle: inputs.securityGroupId, onDelete: 'cascade' }],
    }),
  ),
  simple('aws:ec2:VpcEndpoint', {
    immutable: ['vpcId', 'serviceName', 'vpcEndpointType'],
    id: numbered('vpce'),
    outputs: (endpoint) => ({
      arn: arn(endpoint, 'ec2', `vpc-endpoint/${endpoint.id}`),
      ownerId: endpoint.account,
      state: 'available',
      vpcEndpointType: endpoint.inputs.vpcEndpointType ?? 'Gateway',
    }),
    references: (inputs) => [
      ...vpcOf(inputs),
      ...list(inputs.subnetIds).map((handle) => ({ type: 'aws:ec2:Subnet', handle })),
    ],
  }),
];

const destination = (inputs: Properties): string =>
  inputs.destinationCidrBlock ?? inputs.destinationIpv6CidrBlock ?? inputs.destinationPrefixListId ?? '';
