import { describe, expect, it } from 'vitest';
import { network } from '../../../../providers/aws/programs/network.ts';
import type { NetworkInputs } from '../../../../providers/cloud.ts';
import { answers, graphOf, networkInputs, untagged } from './fixtures.ts';

const SUBNET = 'aws:ec2/subnet:Subnet';
const NAT = 'aws:ec2/natGateway:NatGateway';
const ROUTE = 'aws:ec2/route:Route';

const made = (changes: Partial<NetworkInputs> = {}) => graphOf(network, networkInputs(changes), answers);

describe('the AWS network of a cluster', () => {
  it('has a private, a public and a pod subnet in each zone, with disjoint ranges', async () => {
    const graph = await made();
    const ranges = graph.all(SUBNET).map(({ name, inputs }) => [name, inputs.availabilityZone, inputs.cidrBlock]);
    expect(ranges.sort()).toEqual([
      ['pods-eu-central-1a', 'eu-central-1a', '100.96.0.0/19'],
      ['pods-eu-central-1b', 'eu-central-1b', '100.96.32.0/19'],
      ['pods-eu-central-1c', 'eu-central-1c', '100.96.64.0/19'],
      ['private-eu-central-1a', 'eu-central-1a', '10.0.0.0/20'],
      ['private-eu-central-1b', 'eu-central-1b', '10.0.32.0/20'],
      ['private-eu-central-1c', 'eu-central-1c', '10.0.64.0/20'],
      ['public-eu-central-1a', 'eu-central-1a', '10.0.16.0/20'],
      ['public-eu-central-1b', 'eu-central-1b', '10.0.48.0/20'],
      ['public-eu-central-1c', 'eu-central-1c', '10.0.80.0/20'],
    ]);
    for (const { inputs } of graph.all(SUBNET)) expect(inputs.mapPublicIpOnLaunch).toBe(false);
  });

  it('keeps the subnets of existing zones when a zone is added', async () => {
    const ranges = async (zones: string[]) =>
      Object.fromEntries((await made({ zones })).all(SUBNET).map(({ name, inputs }) => [name, inputs.cidrBlock]));
    const two = await ranges(['eu-central-1c', 'eu-central-1b']);
    expect(await ranges(['eu-central-1a', 'eu-central-1b', 'eu-central-1c'])).toMatchObject(two);
  });

  it('tags subnets for load balancers and the CNI', async () => {
    const graph = await made();
    const role = (name: string) =>
      Object.entries(graph.one(SUBNET, name).inputs.tags).filter(([key]) => key.startsWith('kubernetes.io/'));
    const shared = ['kubernetes.io/cluster/shoot--shop--one', 'shared'];
    expect(role('private-eu-central-1a')).toEqual([shared, ['kubernetes.io/role/internal-elb', '1']]);
    expect(role('public-eu-central-1a')).toEqual([shared, ['kubernetes.io/role/elb', '1']]);
    expect(role('pods-eu-central-1a')).toEqual([shared, ['kubernetes.io/role/cni', '1']]);
  });

  it('routes private and pod subnets to the NAT gateway of their zone, and admits nothing', async () => {
    const graph = await made();
    const wayOut = (subnet: string) => {
      const link = graph.one('aws:ec2/routeTableAssociation:RouteTableAssociation', subnet);
      expect(link.inputs.subnetId).toBe(`<${subnet}.id>`);
      const routes = graph.all(ROUTE).filter(({ inputs }) => inputs.routeTableId === link.inputs.routeTableId);
      return routes.map(({ inputs }) => [inputs.destinationCidrBlock, inputs.natGatewayId ?? inputs.gatewayId]);
    };
    expect(wayOut('private-eu-central-1b')).toEqual([['0.0.0.0/0', '<nat-eu-central-1b.id>']]);
    expect(wayOut('pods-eu-central-1b')).toEqual([['0.0.0.0/0', '<nat-eu-central-1b.id>']]);
    expect(wayOut('public-eu-central-1b')).toEqual([['0.0.0.0/0', '<internet.id>']]);
    expect(graph.one(NAT, 'nat-eu-central-1b').inputs.subnetId).toBe('<public-eu-central-1b.id>');
    expect(graph.one('aws:ec2/defaultSecurityGroup:DefaultSecurityGroup').inputs.ingress).toBeUndefined();
  });

  it('creates NAT gateways after the internet route, and deletes them before it', async () => {
    const graph = await made();
    for (const nat of graph.all(NAT)) expect(nat.options.dependsOn).toEqual(['public']);
  });

  it('uses three Elastic IP addresses at most, for any number of zones', async () => {
    const zones = ['a', 'b', 'c', 'd'].map((letter) => `us-west-2${letter}`);
    const graph = await made({ region: 'us-west-2', zones });
    expect(graph.all('aws:ec2/eip:Eip')).toHaveLength(3);
    expect(graph.one(ROUTE, 'private-us-west-2d').inputs.natGatewayId).toBe('<nat-us-west-2a.id>');
  });

  it('reaches S3 from every private zone without the NAT gateways', async () => {
    const { inputs } = (await made()).one('aws:ec2/vpcEndpoint:VpcEndpoint', 's3');
    expect(inputs).toMatchObject({ vpcEndpointType: 'Gateway', serviceName: 'com.amazonaws.eu-central-1.s3' });
    expect(inputs.routeTableIds).toHaveLength(3);
  });

  it('skips zones that EKS does not support, and rejects if too few remain', async () => {
    const zones = ['us-east-1b', 'us-east-1c', 'us-east-1e'];
    const { outputs } = await made({ region: 'us-east-1', zones });
    expect(outputs.subnets.map(({ zone }: { zone: string }) => zone)).toEqual(['us-east-1b', 'us-east-1c']);
    await expect(made({ region: 'us-east-1', zones: ['us-east-1c', 'us-east-1e'] })).rejects.toThrow(
      'UnsupportedAvailabilityZoneException: of us-east-1c, us-east-1e EKS can use us-east-1c, and needs two',
    );
  });

  it('outputs what the upper layers need', async () => {
    expect((await made()).outputs).toEqual({
      network: '<vpc.id>',
      subnets: ['a', 'b', 'c'].map((letter) => ({
        id: `<private-eu-central-1${letter}.id>`,
        zone: `eu-central-1${letter}`,
      })),
      extra: {
        egress: '198.51.100.97,198.51.100.98,198.51.100.99',
        publicSubnets: '<public-eu-central-1a.id>,<public-eu-central-1b.id>,<public-eu-central-1c.id>',
      },
    });
  });

  it('tags all its resources with the owner', async () => {
    const graph = await made();
    expect(untagged(graph)).toEqual([]);
    expect(graph.one('aws:ec2/vpc:Vpc').inputs.tags.Name).toBe('shoot--shop--one-vpc');
  });

  it.each([
    ['/15', { nodes: '10.0.0.0/15' }],
    ['/25', { nodes: '10.0.0.0/25' }],
    ['no range', { nodes: '10.0.0.1/16' }],
    ['pods', { pods: '100.64.0.0/26' }],
  ])('refuses a range that cannot be divided: %s', async (_what, cidrs) => {
    const inputs = networkInputs();
    await expect(made({ cidrs: { ...inputs.cidrs, ...cidrs } })).rejects.toThrow(/is no range for (nodes|pods) at AWS/);
  });
});
