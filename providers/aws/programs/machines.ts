import * as autoscaling from '@pulumi/aws/autoscaling/index.js';
import * as ec2 from '@pulumi/aws/ec2/index.js';
import * as iam from '@pulumi/aws/iam/index.js';
import type { Input, Output } from '@pulumi/pulumi';
import type { MachinePool, MachinesInputs } from '../../cloud.ts';
import { POOL_HASH_TAG, POOL_TAG } from '../../tags.ts';
import { physicalName } from '../names.ts';
import { partitionOf } from '../partitions.ts';
import { followHouseRules } from './house-rules.ts';
import { launchTemplate } from './launch-template.ts';
import { declareRole } from './roles.ts';

const KUBELET_PORT = 10250;
/** Root device of Ubuntu's images at AWS. */
export const ROOT_DEVICE = '/dev/sda1';

/** Layer `machines`: an Auto Scaling group per pool, for clusters whose control plane is not AWS'. */
export function machines(inputs: MachinesInputs) {
  const { owner, region, pools } = inputs;
  followHouseRules(owner);
  const { role, ready } = declareRole('machine', owner, partitionOf(region));
  const profile = new iam.InstanceProfile(
    'machine',
    { name: physicalName('aws:iam/instanceProfile:InstanceProfile', owner, 'machine'), role: role.name },
    { dependsOn: ready },
  );
  const wall = securityGroup(inputs);
  // With a control plane on machines, its endpoint's security group lets all machines reach each other.
  const walls = [wall.id, ...(inputs.endpoint ? [inputs.endpoint.extra.securityGroup!] : [])];
  const groups = pools.map((pool) => [pool.name, group(inputs, pool, template(inputs, pool, profile, walls))] as const);
  return {
    extra: { securityGroup: wall.id },
    groups: Object.fromEntries(groups.map(([pool, made]) => [pool, made.name])),
  };
}

function securityGroup({ owner, network, kubeletClients }: MachinesInputs): ec2.SecurityGroup {
  const among = { protocol: '-1', fromPort: 0, toPort: 0, self: true, description: 'machines of the cluster' };
  const kubelet = {
    protocol: 'tcp',
    fromPort: KUBELET_PORT,
    toPort: KUBELET_PORT,
    cidrBlocks: kubeletClients,
    description: 'API server to kubelets',
  };
  return new ec2.SecurityGroup('machines', {
    name: physicalName('aws:ec2/securityGroup:SecurityGroup', owner, 'machines'),
    description: `Coppice: machines of ${owner.technicalID}`,
    vpcId: network.network,
    ingress: kubeletClients.length > 0 ? [among, kubelet] : [among],
    egress: [{ protocol: '-1', fromPort: 0, toPort: 0, cidrBlocks: ['0.0.0.0/0'], description: 'anywhere' }],
  });
}

const template = (
  { owner }: MachinesInputs,
  pool: MachinePool,
  profile: iam.InstanceProfile,
  walls: Input<string>[],
): ec2.LaunchTemplate =>
  launchTemplate(owner, pool, pool.rootDevice ?? ROOT_DEVICE, {
    imageId: pool.image,
    instanceType: pool.machineType,
    iamInstanceProfile: { arn: profile.arn },
    vpcSecurityGroupIds: walls,
    userData: Buffer.from(pool.userData).toString('base64'),
    tags: { [POOL_TAG]: pool.name, ...(pool.hash !== undefined && { [POOL_HASH_TAG]: pool.hash }) },
  });

function group({ owner, network }: MachinesInputs, pool: MachinePool, made: ec2.LaunchTemplate): autoscaling.Group {
  const subnets = network.subnets.filter(({ zone }) => pool.zones.length === 0 || pool.zones.includes(zone ?? ''));
  const version = made.latestVersion.apply(String);
  return new autoscaling.Group(
    `pool-${pool.name}`,
    {
      name: physicalName('aws:autoscaling/group:Group', owner, pool.name),
      minSize: pool.minimum,
      maxSize: pool.maximum,
      desiredCapacity: pool.desired ?? pool.minimum,
      vpcZoneIdentifiers: subnets.map(({ id }) => id),
      ...(pool.spot
        ? { mixedInstancesPolicy: spotOnly(made.id, version), capacityRebalance: true }
        : { launchTemplate: { id: made.id, version } }),
      // Rebalancing would terminate machines with pods on them: Coppice drains and chooses.
      suspendedProcesses: ['AZRebalance'],
      // Machines report per pool whether they came up, instead of one failed run for all.
      waitForCapacityTimeout: '0',
      tags: [{ key: POOL_TAG, value: pool.name, propagateAtLaunch: false }],
    },
    pool.desired === undefined ? { ignoreChanges: ['desiredCapacity'] } : {},
  );
}

const spotOnly = (launchTemplateId: ec2.LaunchTemplate['id'], version: Output<string>) => ({
  instancesDistribution: {
    onDemandBaseCapacity: 0,
    onDemandPercentageAboveBaseCapacity: 0,
    spotAllocationStrategy: 'price-capacity-optimized',
  },
  launchTemplate: { launchTemplateSpecification: { launchTemplateId, version } },
});
