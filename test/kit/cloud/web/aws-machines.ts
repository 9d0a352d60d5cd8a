import { aws as model } from '../aws/model.ts';
import { digits } from '../digits.ts';
import type { LaunchedInstance } from '../launched.ts';
import { forgetLost, loseMember, lostIn, type Member, membersOf, removeMembers } from '../members.ts';
import type { CloudResource, Properties, Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { withTagList } from './aws-answers.ts';
import { Refused } from './server.ts';

const GROUP = 'aws:autoscaling:Group';

const idOf = ({ group, serial }: Pick<Member, 'group' | 'serial'>): string =>
  `i-${digits(17, group.uid, String(serial))}`;

/** All instances of Auto Scaling groups in the region. */
const members = (testbed: Testbed, store: Store): Member[] =>
  testbed
    .all(GROUP)
    .filter(({ region }) => region === testbed.region)
    .flatMap((group) =>
      membersOf(group, model.types.get(GROUP)!.machines!(group.inputs, testbed)!, store, testbed.now, () =>
        tagsOf(group, testbed),
      ),
    );

function templateOf(group: CloudResource, testbed: Testbed): CloudResource | undefined {
  const { launchTemplate, mixedInstancesPolicy } = group.inputs;
  const named = launchTemplate ?? mixedInstancesPolicy?.launchTemplate?.launchTemplateSpecification;
  return testbed.find('aws:ec2:LaunchTemplate', named?.id ?? named?.launchTemplateId);
}

/** Tags that the launch template puts on instances that are made now. */
function tagsOf(group: CloudResource, testbed: Testbed): Record<string, string> {
  const specifications = (templateOf(group, testbed)?.inputs.tagSpecifications ?? []) as Properties[];
  return specifications.find(({ resourceType }) => resourceType === 'instance')?.tags ?? {};
}

/** All instances in the region of the testbed, with what they would be told if they were launched now. */
export const launched = (testbed: Testbed, store: Store): LaunchedInstance[] =>
  members(testbed, store).map((member) => {
    const { imageId = '', instanceType = '', userData = '' } = templateOf(member.group, testbed)?.inputs ?? {};
    const { address, zone } = member;
    return {
      id: idOf(member),
      name: idOf(member),
      address,
      zone,
      region: testbed.region,
      account: testbed.caller.account,
      machineType: instanceType,
      image: imageId,
      attributes: { 'user-data': userData },
    };
  });

/** Takes an instance away as a failure of its host does: its group notices and makes another, unless it was told to replace none. */
export function lose(id: string, testbed: Testbed, store: Store): void {
  const member = members(testbed, store).find((one) => idOf(one) === id);
  if (!member) throw new Error(`there is no instance ${id} in ${testbed.region}`);
  const suspended: string[] = member.group.inputs.suspendedProcesses ?? [];
  if (suspended.includes('ReplaceUnhealthy')) loseMember(member.group, member, store);
  else removeMembers(member.group, [member], store, () => {});
}

/** The group that still counts an instance that is gone. */
function groupOfLost(id: string | undefined, testbed: Testbed): { group: CloudResource; serial: number } | undefined {
  for (const group of testbed.all(GROUP)) {
    const serial = lostIn(group).find((one) => idOf({ group, serial: one }) === id);
    if (serial !== undefined) return { group, serial };
  }
  return undefined;
}

/** Ids of the instances that a group has, as it sees them: one that is gone is among them until it is let go of. */
const instancesOf = (group: CloudResource, testbed: Testbed, store: Store): string[] => [
  ...members(testbed, store)
    .filter((member) => member.group.id === group.id)
    .map(idOf),
  ...lostIn(group).map((serial) => idOf({ group, serial })),
];

/** What EC2 answers about images and instances; undefined for other calls. */
export function describeMachines(
  action: string,
  fields: Record<string, string>,
  testbed: Testbed,
  store: Store,
): Properties | undefined {
  if (action === 'DescribeImages') {
    const name = String(fields['Filter.1.Value.1']).replace('*', '20261101');
    const older = { imageId: `ami-${digits(17, name, '1')}`, name, creationDate: '2026-10-01T00:00:00.000Z' };
    const newer = { imageId: `ami-${digits(17, name, '2')}`, name, creationDate: '2026-11-01T00:00:00.000Z' };
    return { imagesSet: [older, newer].map((image) => ({ ...image, rootDeviceName: '/dev/sda1' })) };
  }
  if (action !== 'DescribeInstances') return undefined;
  // Filter 1 is the one tag by which Coppice asks.
  const [key, value] = [fields['Filter.1.Name']?.replace('tag:', ''), fields['Filter.1.Value.1']];
  const shown = members(testbed, store).filter(({ born }) => key === undefined || born[key] === value);
  const instancesSet = shown.map((member) => ({
    instanceId: idOf(member),
    instanceState: { name: 'running' },
    privateIpAddress: member.address,
    placement: { availabilityZone: member.zone },
    launchTime: new Date(member.at).toISOString(),
    tagSet: Object.entries(member.born).map(([name, one]) => ({ key: name, value: one })),
  }));
  return { reservationSet: instancesSet.length > 0 ? [{ instancesSet }] : [] };
}

/** The groups that a call names. */
export const groupNames = (fields: Record<string, string>): string[] =>
  Object.entries(fields).flatMap(([key, value]) => (key.startsWith('AutoScalingGroupNames.member.') ? [value] : []));

/** What Auto Scaling answers about groups and single machines; undefined for other calls. */
export function scaleGroups(
  action: string,
  fields: Record<string, string>,
  testbed: Testbed,
  store: Store,
): Properties | undefined {
  if (action === 'DescribeAutoScalingGroups') {
    const groups = groupNames(fields).flatMap((name) => testbed.find(GROUP, name) ?? []);
    return {
      AutoScalingGroups: groups.map((group) => {
        const ids = instancesOf(group, testbed, store);
        const Instances = ids.map((InstanceId) => ({ InstanceId, LifecycleState: 'InService' }));
        return withTagList(group, { AutoScalingGroupName: group.name, Instances });
      }),
    };
  }
  if (action === 'DescribeScalingActivities') return { Activities: [] };
  if (action !== 'TerminateInstanceInAutoScalingGroup') return undefined;
  const member = members(testbed, store).find((one) => idOf(one) === fields.InstanceId);
  const lost = groupOfLost(fields.InstanceId, testbed);
  if (lost) {
    forgetLost(lost.group, lost.serial, store, (inputs) => {
      inputs.desiredCapacity = Number(inputs.desiredCapacity) - 1;
    });
    return { Activity: { StatusCode: 'InProgress' } };
  }
  if (!member) {
    throw new Refused(
      400,
      'ValidationError',
      `Instance Id not found - No managed instance found for instance ID ${fields.InstanceId}`,
    );
  }
  const decrement = fields.ShouldDecrementDesiredCapacity === 'true';
  if (decrement && Number(member.group.inputs.desiredCapacity) <= Number(member.group.inputs.minSize)) {
    throw new Refused(
      400,
      'ValidationError',
      "Terminating instance without replacement will violate the group's min size constraint.",
    );
  }
  removeMembers(member.group, [member], store, (inputs, by) => {
    if (decrement) inputs.desiredCapacity = Number(inputs.desiredCapacity) + by;
  });
  return { Activity: { StatusCode: 'InProgress' } };
}
