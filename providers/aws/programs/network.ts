import * as ec2 from '@pulumi/aws/ec2/index.js';
import { getAvailabilityZones } from '@pulumi/aws/getAvailabilityZones.js';
import * as pulumi from '@pulumi/pulumi';
import type { NetworkInputs } from '../../cloud.ts';
import { clusterName } from '../names.ts';
import { vpcPodsRange, type ZoneRanges, zoneRanges } from '../subnets.ts';
import { followHouseRules } from './house-rules.ts';

const ANYWHERE = '0.0.0.0/0';

/** Placeholder ranges for a cluster whose spec is lost, whose resources must still be found by tags. */
const ANY_RANGES = { nodes: '10.0.0.0/16', pods: '100.64.0.0/16' };

/**
 * Limit of NAT gateways per cluster: each takes an Elastic IP address, of which an account has 5 per region by default
 * (Amazon VPC user guide, "Amazon VPC quotas"). Further zones share them.
 */
const MOST_NAT_GATEWAYS = 3;

/**
 * Zones without EKS control planes, by id, since zone names differ between accounts. Source: EKS user guide, "View
 * Amazon EKS networking requirements for VPC and subnets", subnet requirements for clusters.
 */
const WITHOUT_EKS: Readonly<Record<string, string>> = {
  'us-east-1': 'use1-az3',
  'us-west-1': 'usw1-az2',
  'ca-central-1': 'cac1-az3',
};

/**
 * Layer `network`: a VPC with a private, a public and a pod subnet per zone, and outbound access for the private ones.
 */
export async function network(inputs: NetworkInputs) {
  const { owner, region } = inputs;
  const cidrs = inputs.cidrs.nodes ? inputs.cidrs : ANY_RANGES;
  followHouseRules(owner);
  const zones = zoneRanges(cidrs, await zonesOfEKS(inputs));
  const vpc = new ec2.Vpc('vpc', { cidrBlock: cidrs.nodes, enableDnsHostnames: true, enableDnsSupport: true });
  // Without rules: resources placed in it by mistake reach nothing.
  new ec2.DefaultSecurityGroup('default', { vpcId: vpc.id });
  const pods = new ec2.VpcIpv4CidrBlockAssociation('pods', {
    vpcId: vpc.id,
    cidrBlock: vpcPodsRange(cidrs.pods),
  });
  const { table: publicTable, wayOut } = publicRoutes(vpc);
  const nats: ec2.NatGateway[] = [];
  const tables: ec2.RouteTable[] = [];
  const publicSubnets: ec2.Subnet[] = [];
  const subnets = zones.map((ranges, index) => {
    const tags = { [`kubernetes.io/cluster/${clusterName(owner)}`]: 'shared' };
    const publicSubnet = subnet('public', vpc, ranges, { ...tags, 'kubernetes.io/role/elb': '1' });
    associate('public', ranges.zone, publicSubnet, publicTable);
    publicSubnets.push(publicSubnet);
    if (index < MOST_NAT_GATEWAYS) nats.push(natGateway(ranges.zone, publicSubnet, wayOut));
    const table = new ec2.RouteTable(`private-${ranges.zone}`, { vpcId: vpc.id });
    tables.push(table);
    new ec2.Route(`private-${ranges.zone}`, {
      routeTableId: table.id,
      destinationCidrBlock: ANYWHERE,
      natGatewayId: (nats[index] ?? nats[index % nats.length])!.id,
    });
    const privateSubnet = subnet('private', vpc, ranges, { ...tags, 'kubernetes.io/role/internal-elb': '1' });
    associate('private', ranges.zone, privateSubnet, table);
    // The VPC CNI allocates pod addresses from subnets with this tag (amazon-vpc-cni-k8s since 1.18,
    // ENABLE_SUBNET_DISCOVERY).
    const podSubnet = subnet('pods', vpc, ranges, { ...tags, 'kubernetes.io/role/cni': '1' }, [pods]);
    associate('pods', ranges.zone, podSubnet, table);
    return { id: privateSubnet.id, zone: ranges.zone };
  });
  // Image layers are in S3: through NAT gateways they would be billed by the gigabyte.
  new ec2.VpcEndpoint('s3', {
    vpcId: vpc.id,
    vpcEndpointType: 'Gateway',
    serviceName: `com.amazonaws.${region}.s3`,
    routeTableIds: tables.map((table) => table.id),
  });
  return {
    network: vpc.id,
    subnets,
    extra: {
      egress: pulumi.all(nats.map((nat) => nat.publicIp)).apply((addresses) => addresses.join(',')),
      publicSubnets: pulumi.all(publicSubnets.map(({ id }) => id)).apply((ids) => ids.join(',')),
    },
  };
}

async function zonesOfEKS({ region, zones }: NetworkInputs): Promise<string[]> {
  const without = WITHOUT_EKS[region];
  if (!without) return zones;
  const { names } = await getAvailabilityZones({ excludeZoneIds: [without] });
  const usable = zones.filter((zone) => names.includes(zone));
  if (usable.length < 2) {
    // EKS' own code and message, so that classify recognizes it.
    throw new Error(
      `UnsupportedAvailabilityZoneException: of ${zones.join(', ')} EKS can use ${usable.join(', ') || 'none'}, and needs two; ` +
        `this account has ${names.join(', ')}`,
    );
  }
  return usable;
}

function publicRoutes(vpc: ec2.Vpc) {
  const gateway = new ec2.InternetGateway('internet', { vpcId: vpc.id });
  const table = new ec2.RouteTable('public', { vpcId: vpc.id });
  const route = { routeTableId: table.id, destinationCidrBlock: ANYWHERE, gatewayId: gateway.id };
  return { table, wayOut: new ec2.Route('public', route) };
}

type Kind = Exclude<keyof ZoneRanges, 'zone'>;

function subnet(
  kind: Kind,
  vpc: ec2.Vpc,
  ranges: ZoneRanges,
  tags: Record<string, string>,
  after: pulumi.Resource[] = [],
) {
  const { zone } = ranges;
  const args = { vpcId: vpc.id, availabilityZone: zone, cidrBlock: ranges[kind], mapPublicIpOnLaunch: false, tags };
  return new ec2.Subnet(`${kind}-${zone}`, args, { dependsOn: after });
}

const associate = (kind: Kind, zone: string, subnet: ec2.Subnet, table: ec2.RouteTable) =>
  new ec2.RouteTableAssociation(`${kind}-${zone}`, { subnetId: subnet.id, routeTableId: table.id });

function natGateway(zone: string, subnet: ec2.Subnet, wayOut: ec2.Route): ec2.NatGateway {
  const address = new ec2.Eip(`nat-${zone}`, { domain: 'vpc' });
  // Created after the internet gateway and deleted before it, since a gateway in use cannot be detached.
  return new ec2.NatGateway(`nat-${zone}`, { subnetId: subnet.id, allocationId: address.id }, { dependsOn: [wayOut] });
}
