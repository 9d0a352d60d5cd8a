import { ipv4Range } from '../../operator/api/address-range.ts';
import { configurationProblem } from '../../operator/api/errors.ts';
import type { CloudContext, Owner } from '../cloud.ts';
import type { MachinePhase, Problem, WantedSpec } from '../contract.ts';
import type { CloudMachine, MachineCloud, MachineImage } from '../machines/machine-cloud.ts';
import { eachPage } from '../pages.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';
import { OWNER_TAGS, POOL_HASH_TAG, POOL_TAG } from '../tags.ts';
import { type AwsConnection, awsCodeOf, query } from './api.ts';
import { tagsIn } from './existing.ts';
import { physicalName } from './names.ts';
import { missingForControlPlane } from './permissions.ts';
import { NODES_BITS } from './subnets.ts';
import { itemsAt, textAt } from './xml.ts';

type Connect = (ctx: CloudContext) => Promise<AwsConnection>;

/** Canonical's account and image names (documentation.ubuntu.com/aws, "Find Ubuntu images on AWS"). */
const CANONICAL = '099720109477';
const imageName = (architecture: string): string =>
  `ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-${architecture}-server-*`;

/** EC2 Auto Scaling groups. Actions and their fields: service models of botocore 1.43.11 (ec2, autoscaling). */
export function awsMachines(layers: LayeredCloud, connect: Connect): MachineCloud {
  return {
    layers,
    group: { type: 'aws:autoscaling/group:Group', size: 'desiredCapacity', places: 'vpcZoneIdentifiers' },
    problems,
    image: async (ctx, architecture) => newestImage(await connect(ctx), architecture),
    machines: async (ctx, pools) => listed(await connect(ctx), ctx.owner, pools),
    async remove(ctx, _pool, machines) {
      const aws = await connect(ctx);
      // The API removes one instance per call; each call reduces the group's size by one.
      for (const { name } of machines) await terminate(aws, name).catch(unlessUnknown);
    },
    failure: async (ctx, pool) => lastFailure(await connect(ctx), groupName(ctx.owner, pool)),
    controlPlane: {
      async missing(ctx) {
        const aws = await connect(ctx);
        const identity = textAt(await query(aws, 'sts', 'GetCallerIdentity'), 'GetCallerIdentityResult', 'Arn');
        return missingForControlPlane(aws, identity, ctx.owner);
      },
      async forget(ctx, pool, names, listed) {
        const aws = await connect(ctx);
        const lost = (await counted(aws, groupName(ctx.owner, pool))).filter((name) => !listed.includes(name));
        for (const name of new Set([...names, ...lost])) await terminate(aws, name).catch(unlessUnknown);
      },
      remade: [
        'aws:ec2/launchTemplate:LaunchTemplate',
        'aws:ec2/route:Route',
        'aws:ec2/routeTableAssociation:RouteTableAssociation',
        'aws:iam/rolePolicyAttachment:RolePolicyAttachment',
        'aws:lb/listener:Listener',
      ],
    },
  };
}

/** Terminates an instance, also one that ended but still counts: a group with suspended replacement keeps it. */
const terminate = (aws: AwsConnection, InstanceId: string) =>
  query(aws, 'autoscaling', 'TerminateInstanceInAutoScalingGroup', {
    InstanceId,
    ShouldDecrementDesiredCapacity: 'true',
  });

/**
 * Instances that count for the group, without those starting or terminating. LifecycleState as in botocore's service
 * model.
 */
async function counted(aws: AwsConnection, group: string): Promise<string[]> {
  const answer = await query(aws, 'autoscaling', 'DescribeAutoScalingGroups', {
    'AutoScalingGroupNames.member.1': group,
  });
  const [found] = itemsAt(answer, 'DescribeAutoScalingGroupsResult', 'AutoScalingGroups');
  return itemsAt(found, 'Instances')
    .filter((instance) => textAt(instance, 'LifecycleState') === 'InService')
    .map((instance) => textAt(instance, 'InstanceId'));
}

/** Ignores the error that the instance left the group ("Instance Id not found") or is terminating. */
function unlessUnknown(error: unknown): void {
  if (awsCodeOf(error) !== 'ValidationError') throw error;
}

const groupName = (owner: Owner, pool: string): string => physicalName('aws:autoscaling/group:Group', owner, pool);

function problems({ networking: { nodes } }: WantedSpec): Problem[] {
  const range = nodes === undefined ? undefined : ipv4Range(nodes);
  if (!range || (range.prefix >= NODES_BITS.from && range.prefix <= NODES_BITS.to)) return [];
  const message = `${nodes} does not fit AWS: choose a range from /${NODES_BITS.from} to /${NODES_BITS.to}`;
  return [{ field: 'networking.nodes', message, code: 'ERR_CONFIGURATION_PROBLEM' }];
}

async function newestImage(aws: AwsConnection, architecture: string): Promise<MachineImage> {
  const name = imageName(architecture);
  const answer = await query(aws, 'ec2', 'DescribeImages', {
    'Owner.1': CANONICAL,
    'Filter.1.Name': 'name',
    'Filter.1.Value.1': name,
    'Filter.2.Name': 'state',
    'Filter.2.Value.1': 'available',
  });
  const images = itemsAt(answer, 'imagesSet').map((image) => ({
    image: textAt(image, 'imageId'),
    rootDevice: textAt(image, 'rootDeviceName'),
    made: textAt(image, 'creationDate'),
  }));
  const newest = images.sort((a, b) => (a.made < b.made ? 1 : -1))[0];
  if (!newest) throw configurationProblem(`there is no image ${name} of Canonical's in ${aws.region}`);
  return { image: newest.image, rootDevice: newest.rootDevice };
}

/** EC2's InstanceStateName. A group replaces a stopped instance as unhealthy. */
const PHASES: Readonly<Record<string, MachinePhase>> = {
  pending: 'Pending',
  running: 'Running',
  'shutting-down': 'Terminating',
  stopping: 'Terminating',
  stopped: 'Terminating',
};

async function listed(aws: AwsConnection, owner: Owner, pools: readonly string[]): Promise<CloudMachine[]> {
  const found: CloudMachine[] = [];
  await eachPage(`machines of ${owner.technicalID}`, async (page) => {
    const answer = await query(aws, 'ec2', 'DescribeInstances', {
      'Filter.1.Name': `tag:${OWNER_TAGS.uid}`,
      'Filter.1.Value.1': owner.uid,
      'Filter.2.Name': 'tag-key',
      'Filter.2.Value.1': POOL_TAG,
      'Filter.3.Name': 'instance-state-name',
      ...Object.fromEntries(Object.keys(PHASES).map((state, index) => [`Filter.3.Value.${index + 1}`, state])),
      MaxResults: '1000',
      ...(page && { NextToken: page }),
    });
    const instances = itemsAt(answer, 'reservationSet').flatMap((one) => itemsAt(one, 'instancesSet'));
    for (const instance of instances) {
      const { [POOL_TAG]: pool, [POOL_HASH_TAG]: hash } = tagsIn(instance, 'tagSet');
      if (pool === undefined || !pools.includes(pool)) continue;
      const name = textAt(instance, 'instanceId');
      const address = textAt(instance, 'privateIpAddress');
      found.push({
        name,
        pool,
        // install.sh names the node so: AWS derives host names from addresses, which are reused.
        nodeName: name,
        phase: PHASES[textAt(instance, 'instanceState', 'name')] ?? 'Failed',
        createdAt: textAt(instance, 'launchTime'),
        zone: textAt(instance, 'placement', 'availabilityZone'),
        ...(hash !== undefined && { hash }),
        ...(address && { address }),
      });
    }
    return textAt(answer, 'nextToken');
  });
  return found;
}

/** Message of the group's latest activity, if it failed. */
async function lastFailure(aws: AwsConnection, group: string): Promise<string | undefined> {
  const answer = await query(aws, 'autoscaling', 'DescribeScalingActivities', {
    AutoScalingGroupName: group,
    MaxRecords: '1',
  });
  const [newest] = itemsAt(answer, 'DescribeScalingActivitiesResult', 'Activities');
  const isFailed = ['Failed', 'Cancelled'].includes(textAt(newest, 'StatusCode'));
  return isFailed ? textAt(newest, 'StatusMessage').split('\n')[0]!.slice(0, 300) : undefined;
}
