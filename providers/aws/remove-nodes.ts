import type { CloudNode, ManagedClusterOutputs, Owner, PoolLeft } from '../cloud.ts';
import { eachPage } from '../pages.ts';
import { removalRefusalOf } from '../refused-removal.ts';
import { OWNER_TAGS, POOL_TAG } from '../tags.ts';
import { type AwsConnection, getJson, query } from './api.ts';
import { type Element, itemsAt, textAt } from './xml.ts';

/** The fields of an EKS Nodegroup that are read (service model of botocore 1.43.11). */
interface NodeGroup {
  tags?: Record<string, string>;
  resources?: { autoScalingGroups?: { name: string }[] };
}

/**
 * Terminates nodes of managed node groups; see ManagedClusters.removeNodes. An Auto Scaling group terminates a named
 * instance and lowers its size in one call (TerminateInstanceInAutoScalingGroup of the Amazon EC2 Auto Scaling API
 * reference), and EKS reports that as the node group's size.
 */
export async function removeNodes(
  aws: AwsConnection,
  owner: Owner,
  { name: cluster }: Pick<ManagedClusterOutputs, 'name'>,
  pool: string,
  nodes: readonly CloudNode[],
): Promise<PoolLeft> {
  const named = new Set(nodes.map(({ providerID }) => instanceOf(providerID)));
  const groups = await groupsOf(aws, owner, cluster, pool);
  let refused: PoolLeft['refused'];
  for (const group of await described(aws, groups)) {
    const going = itemsAt(group, 'Instances')
      // EKS drains an instance for minutes by a lifecycle hook: a terminating one no longer counts.
      .filter((instance) => !textAt(instance, 'LifecycleState').startsWith('Terminat'))
      .map((instance) => textAt(instance, 'InstanceId'))
      .filter((id) => named.has(id));
    if (going.length > 0) refused ??= await removalRefusalOf(keepPlaces(aws, group));
    for (const id of refused ? [] : going) refused ??= await removalRefusalOf(terminate(aws, id));
  }
  const left = await described(aws, groups);
  const size = left.reduce((sum, group) => sum + Number(textAt(group, 'DesiredCapacity')), 0);
  return { size, ...(refused && { refused }) };
}

/** `aws:///eu-central-1a/i-0123`. */
const instanceOf = (providerID: string): string => /^aws:\/\/\/[^/]*\/(i-\w+)$/.exec(providerID)?.[1] ?? '';

const terminate = (aws: AwsConnection, InstanceId: string) =>
  query(aws, 'autoscaling', 'TerminateInstanceInAutoScalingGroup', {
    InstanceId,
    ShouldDecrementDesiredCapacity: 'true',
  });

/**
 * Suspends zone rebalancing: "rebalancing might terminate instances in other zones", states the reference of the next
 * call, and those have pods on them (kubernetes/autoscaler issue 3693).
 */
async function keepPlaces(aws: AwsConnection, group: Element): Promise<void> {
  const isSuspended = itemsAt(group, 'SuspendedProcesses').some((one) => textAt(one, 'ProcessName') === 'AZRebalance');
  if (isSuspended || itemsAt(group, 'AvailabilityZones').length < 2) return;
  await query(aws, 'autoscaling', 'SuspendProcesses', {
    AutoScalingGroupName: textAt(group, 'AutoScalingGroupName'),
    'ScalingProcesses.member.1': 'AZRebalance',
  });
}

/** Names of the Auto Scaling groups behind the pool's node groups, identified by tags, never by names. */
async function groupsOf(aws: AwsConnection, owner: Owner, cluster: string, pool: string): Promise<string[]> {
  const path = `/clusters/${encodeURIComponent(cluster)}/node-groups`;
  const found: string[] = [];
  await eachPage(`node groups of ${cluster}`, async (page) => {
    const at = page === undefined ? path : `${path}?nextToken=${encodeURIComponent(page)}`;
    const answer = await getJson<{ nodegroups?: string[]; nextToken?: string }>(aws, 'eks', 'ListNodegroups', at);
    for (const name of answer.nodegroups ?? []) {
      const told = await getJson<{ nodegroup: NodeGroup }>(aws, 'eks', 'DescribeNodegroup', `${path}/${name}`);
      const { tags = {}, resources } = told.nodegroup;
      if (tags[OWNER_TAGS.uid] === owner.uid && tags[POOL_TAG] === pool)
        found.push(...(resources?.autoScalingGroups ?? []).map((group) => group.name));
    }
    return answer.nextToken;
  });
  return found;
}

async function described(aws: AwsConnection, groups: readonly string[]): Promise<Element[]> {
  if (groups.length === 0) return [];
  const names = Object.fromEntries(groups.map((name, index) => [`AutoScalingGroupNames.member.${index + 1}`, name]));
  const answer = await query(aws, 'autoscaling', 'DescribeAutoScalingGroups', names);
  return itemsAt(answer, 'DescribeAutoScalingGroupsResult', 'AutoScalingGroups');
}
