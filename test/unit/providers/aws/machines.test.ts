import { describe, expect, it } from 'vitest';
import { machines } from '../../../../providers/aws/programs/machines.ts';
import type { MachinePool, MachinesInputs } from '../../../../providers/cloud.ts';
import { answers, cloudPool, clusterInputs, graphOf, owner, untagged } from './fixtures.ts';

const GROUP = 'aws:autoscaling/group:Group';

const machinePool = (changes: Partial<MachinePool> = {}): MachinePool => ({
  ...cloudPool(),
  image: 'ami-1',
  rootDevice: '/dev/sda1',
  userData: '#cloud-config\n',
  ...changes,
});

const made = (changes: Partial<MachinesInputs> = {}) => {
  const { zones, network } = clusterInputs();
  const inputs = { owner, region: 'eu-central-1', zones, network, kubeletClients: [] };
  return graphOf(machines, { ...inputs, pools: [machinePool()], ...changes }, answers);
};

describe('the AWS machines of hosted and self-managed clusters', () => {
  it('are one Auto Scaling group per pool, with a unique name', async () => {
    const { inputs, options } = (await made()).one(GROUP);
    expect(inputs).toMatchObject({
      name: 'shoot--shop--one-default',
      minSize: 1,
      maxSize: 3,
      desiredCapacity: 2,
      vpcZoneIdentifiers: ['subnet-a', 'subnet-b', 'subnet-c'],
      launchTemplate: { id: '<pool-default.id>', version: '7' },
      suspendedProcesses: ['AZRebalance'],
      waitForCapacityTimeout: '0',
    });
    expect(options.ignoreChanges).toBeUndefined();
  });

  it('start from the given image and user data, with IMDSv2 and an encrypted root volume', async () => {
    const { inputs } = (await made()).one('aws:ec2/launchTemplate:LaunchTemplate');
    expect(inputs).toMatchObject({
      imageId: 'ami-1',
      instanceType: 'm5.large',
      userData: Buffer.from('#cloud-config\n').toString('base64'),
      iamInstanceProfile: { arn: '<machine.arn>' },
      vpcSecurityGroupIds: ['<machines.id>'],
      metadataOptions: { httpTokens: 'required', httpPutResponseHopLimit: 1 },
      blockDeviceMappings: [{ deviceName: '/dev/sda1', ebs: { encrypted: 'true' } }],
      tagSpecifications: [
        { resourceType: 'instance' },
        { resourceType: 'volume' },
        { resourceType: 'network-interface' },
      ],
    });
  });

  it('are tagged with pool and pool hash from their creation', async () => {
    const { inputs } = (await made({ pools: [machinePool({ hash: 'abc' })] })).one(
      'aws:ec2/launchTemplate:LaunchTemplate',
    );
    expect(inputs.tagSpecifications[0]).toMatchObject({
      resourceType: 'instance',
      tags: { 'coppice-pool': 'default', 'coppice-pool-hash': 'abc' },
    });
  });

  it('may pull images and nothing else', async () => {
    const attached = (await made()).all('aws:iam/rolePolicyAttachment:RolePolicyAttachment');
    expect(attached.map(({ inputs }) => inputs.policyArn)).toEqual([
      'arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly',
    ]);
  });

  it('of a spot pool are spot machines only, and replaced before their interruption', async () => {
    const { inputs } = (await made({ pools: [machinePool({ spot: true })] })).one(GROUP);
    expect(inputs.launchTemplate).toBeUndefined();
    expect(inputs).toMatchObject({
      capacityRebalance: true,
      mixedInstancesPolicy: {
        instancesDistribution: { onDemandBaseCapacity: 0, onDemandPercentageAboveBaseCapacity: 0 },
        launchTemplate: { launchTemplateSpecification: { launchTemplateId: '<pool-default.id>', version: '7' } },
      },
    });
  });

  it('keep the number that an autoscaler decides', async () => {
    const pool = machinePool({ zones: ['eu-central-1c'] });
    delete pool.desired;
    const { inputs, options } = (await made({ pools: [pool] })).one(GROUP);
    expect(inputs).toMatchObject({ desiredCapacity: 1, vpcZoneIdentifiers: ['subnet-c'] });
    expect(options.ignoreChanges).toEqual(['desiredCapacity']);
  });

  it('admit each other, and API servers outside of the network', async () => {
    const ingress = async (kubeletClients: string[]) =>
      (await made({ kubeletClients })).one('aws:ec2/securityGroup:SecurityGroup').inputs.ingress;
    expect(await ingress([])).toMatchObject([{ self: true, protocol: '-1' }]);
    expect(await ingress(['192.0.2.7/32'])).toMatchObject([
      { self: true },
      { protocol: 'tcp', fromPort: 10250, toPort: 10250, cidrBlocks: ['192.0.2.7/32'] },
    ]);
  });

  it('are tagged with the owner, and the group of each pool is an output', async () => {
    const graph = await made({ pools: [machinePool(), machinePool({ name: 'gpu' })] });
    expect(untagged(graph)).toEqual([]);
    expect(graph.outputs).toEqual({
      extra: { securityGroup: '<machines.id>' },
      groups: { default: 'shoot--shop--one-default', gpu: 'shoot--shop--one-gpu' },
    });
  });
});
