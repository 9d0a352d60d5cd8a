import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { controlPlane } from '../../../../providers/aws/programs/control-plane.ts';
import { endpoint } from '../../../../providers/aws/programs/endpoint.ts';
import { machines } from '../../../../providers/aws/programs/machines.ts';
import type { ControlPlanePool } from '../../../../providers/cloud.ts';
import type { Answers } from '../../../kit/pulumi-graph.ts';
import { answers, cloudPool, clusterInputs, graphOf, owner, untagged } from './fixtures.ts';

const network = { ...clusterInputs().network, extra: { publicSubnets: 'subnet-x,subnet-y' } };
const base = { owner, region: 'eu-central-1', zones: clusterInputs().zones, network };
const reached = {
  host: 'one.elb.example',
  port: 6443,
  extra: { securityGroup: 'sg-cluster', targetGroup: 'arn:targets' },
};

const named: Answers = {
  ...answers,
  outputs: (resource) => ({
    ...answers.outputs?.(resource),
    ...(resource.type === 'aws:lb/loadBalancer:LoadBalancer' && { dnsName: 'one.elb.example' }),
  }),
};

const pool = (changes: Partial<ControlPlanePool> = {}): ControlPlanePool => ({
  ...cloudPool({ name: 'control-plane', minimum: 0, maximum: 3, desired: 3, diskGiB: 32 }),
  image: 'ami-1',
  rootDevice: '/dev/sda1',
  userData: '#cloud-config\n',
  holdsKeys: false,
  ...changes,
});

describe('the AWS endpoint of a control plane on machines', () => {
  const made = () => graphOf(endpoint, { ...base, port: 6443 }, named);

  it('is a network load balancer with a unique name in the public subnets', async () => {
    const graph = await made();
    expect(graph.one('aws:lb/loadBalancer:LoadBalancer').inputs).toMatchObject({
      name: 'shoot--shop--one',
      loadBalancerType: 'network',
      internal: false,
      subnets: ['subnet-x', 'subnet-y'],
      securityGroups: ['<endpoint.id>'],
      enableCrossZoneLoadBalancing: true,
    });
    expect(graph.outputs).toEqual({
      host: 'one.elb.example',
      port: 6443,
      extra: { securityGroup: '<cluster.id>', targetGroup: '<endpoint.arn>' },
    });
  });

  it('forwards to healthy machines, also from a machine to itself', async () => {
    expect((await made()).one('aws:lb/targetGroup:TargetGroup').inputs).toMatchObject({
      targetType: 'instance',
      protocol: 'TCP',
      port: 6443,
      preserveClientIp: 'false',
      healthCheck: { protocol: 'HTTPS', path: '/readyz' },
    });
  });

  it('admits only the load balancer to the machines, on one port', async () => {
    const { ingress } = (await made()).one('aws:ec2/securityGroup:SecurityGroup', 'cluster').inputs;
    expect(ingress).toMatchObject([
      { self: true },
      { protocol: 'tcp', fromPort: 6443, toPort: 6443, securityGroups: ['<endpoint.id>'] },
    ]);
    expect(ingress[1].cidrBlocks).toBeUndefined();
  });

  it('tags all its resources with the owner', async () => expect(untagged(await made())).toEqual([]));
});

describe('the AWS machines of a control plane', () => {
  const made = (changes: Partial<ControlPlanePool> = {}) =>
    graphOf(controlPlane, { ...base, endpoint: reached, pool: pool(changes) }, answers);

  it('have the requested number; AWS neither replaces nor removes any', async () => {
    const { inputs } = (await made()).one('aws:autoscaling/group:Group');
    expect(inputs).toMatchObject({
      name: 'shoot--shop--one-control-plane',
      minSize: 0,
      maxSize: 3,
      desiredCapacity: 3,
      protectFromScaleIn: true,
      targetGroupArns: ['arn:targets'],
      vpcZoneIdentifiers: ['subnet-a', 'subnet-b', 'subnet-c'],
      waitForCapacityTimeout: '0',
    });
    expect([...inputs.suspendedProcesses].sort()).toEqual(['AZRebalance', 'ReplaceUnhealthy']);
    expect(inputs.mixedInstancesPolicy).toBeUndefined();
  });

  it('have no public address, IMDSv2, an encrypted disk with room for etcd, and compressed user data', async () => {
    const { inputs } = (await made()).one('aws:ec2/launchTemplate:LaunchTemplate');
    expect(inputs).toMatchObject({
      vpcSecurityGroupIds: ['sg-cluster'],
      metadataOptions: { httpTokens: 'required', httpPutResponseHopLimit: 1 },
      blockDeviceMappings: [{ ebs: { encrypted: 'true', deleteOnTermination: 'true', volumeSize: 32 } }],
    });
    expect(inputs.networkInterfaces).toBeUndefined();
    const told = typeof inputs.userData === 'string' ? inputs.userData : inputs.userData.value;
    expect(gunzipSync(Buffer.from(told, 'base64')).toString()).toBe('#cloud-config\n');
  });

  it("have no plain-text keys in the program's state", async () => {
    const { inputs } = (await made({ holdsKeys: true })).one('aws:ec2/launchTemplate:LaunchTemplate');
    // How Pulumi marks a secret on its way to the engine, which encrypts it.
    expect(JSON.stringify(inputs.userData)).toContain('4dabf18193072939515e22adb298388d');
  });

  it('get another template once it holds no keys, so that all versions of the first are deleted', async () => {
    const template = async (holdsKeys: boolean) =>
      (await made({ holdsKeys })).one('aws:ec2/launchTemplate:LaunchTemplate');
    const [first, later] = [await template(true), await template(false)];
    expect(first.name).not.toBe(later.name);
    expect(first.inputs.name).not.toBe(later.inputs.name);
    for (const { inputs } of [first, later]) expect(inputs.tags['coppice-pool']).toBe('control-plane');
    expect((await made({ holdsKeys: true })).one('aws:autoscaling/group:Group').inputs.name).toBe(
      (await made()).one('aws:autoscaling/group:Group').inputs.name,
    );
  });

  it('may only pull images in the account, and are tagged with the owner', async () => {
    const graph = await made();
    const attached = graph.all('aws:iam/rolePolicyAttachment:RolePolicyAttachment');
    expect(attached.map(({ inputs }) => inputs.policyArn)).toEqual([
      'arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly',
    ]);
    expect(untagged(graph)).toEqual([]);
  });

  it('and the machines of workloads reach each other', async () => {
    const { name: _, ...rest } = pool();
    const workers = [{ ...rest, name: 'workers' }];
    const graph = await graphOf(machines, { ...base, kubeletClients: [], pools: workers, endpoint: reached }, answers);
    const { inputs } = graph.one('aws:ec2/launchTemplate:LaunchTemplate');
    expect(inputs.vpcSecurityGroupIds).toEqual(['<machines.id>', 'sg-cluster']);
  });
});
