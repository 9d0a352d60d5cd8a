import { gzipSync } from 'node:zlib';
import * as autoscaling from '@pulumi/aws/autoscaling/index.js';
import * as iam from '@pulumi/aws/iam/index.js';
import * as pulumi from '@pulumi/pulumi';
import type { ControlPlaneInputs } from '../../cloud.ts';
import { POOL_HASH_TAG, POOL_TAG } from '../../tags.ts';
import { physicalName } from '../names.ts';
import { partitionOf } from '../partitions.ts';
import { followHouseRules } from './house-rules.ts';
import { launchTemplate } from './launch-template.ts';
import { ROOT_DEVICE } from './machines.ts';
import { declareRole } from './roles.ts';

/** Layer `control-plane`: an Auto Scaling group of stateful machines, which only Coppice adds and removes. */
export function controlPlane({ owner, region, network, endpoint, pool }: ControlPlaneInputs) {
  followHouseRules(owner);
  const { role, ready } = declareRole('control-plane', owner, partitionOf(region));
  const profile = new iam.InstanceProfile(
    'control-plane',
    { name: physicalName('aws:iam/instanceProfile:InstanceProfile', owner, 'control-plane'), role: role.name },
    { dependsOn: ready },
  );
  // A template keeps all its versions: one that contained keys is replaced by another template.
  const named = pool.holdsKeys ? { ...pool, name: `${pool.name}-first` } : pool;
  const template = launchTemplate(owner, named, pool.rootDevice ?? ROOT_DEVICE, {
    imageId: pool.image,
    instanceType: pool.machineType,
    iamInstanceProfile: { arn: profile.arn },
    vpcSecurityGroupIds: [endpoint.extra.securityGroup!],
    // cloud-init decompresses it. It is a secret in Pulumi's state, since it may contain keys.
    userData: pulumi.secret(gzipSync(pool.userData).toString('base64')),
    tags: { [POOL_TAG]: pool.name, ...(pool.hash !== undefined && { [POOL_HASH_TAG]: pool.hash }) },
  });
  const subnets = network.subnets.filter(({ zone }) => pool.zones.length === 0 || pool.zones.includes(zone ?? ''));
  const group = new autoscaling.Group(`pool-${pool.name}`, {
    name: physicalName('aws:autoscaling/group:Group', owner, pool.name),
    minSize: pool.minimum,
    maxSize: pool.maximum,
    desiredCapacity: pool.desired ?? pool.minimum,
    vpcZoneIdentifiers: subnets.map(({ id }) => id),
    launchTemplate: { id: template.id, version: template.latestVersion.apply(String) },
    targetGroupArns: [endpoint.extra.targetGroup!],
    // An etcd member is removed before its machine, and only Coppice knows when that is done.
    suspendedProcesses: ['AZRebalance', 'ReplaceUnhealthy'],
    protectFromScaleIn: true,
    // The machines themselves report whether they came up.
    waitForCapacityTimeout: '0',
    tags: [{ key: POOL_TAG, value: pool.name, propagateAtLaunch: false }],
  });
  return { group: group.name };
}
