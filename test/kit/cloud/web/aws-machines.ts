import { aws as model } from '../aws/model.ts';
import { digits } from '../digits.ts';
import { type Member, membersOf, removeMembers } from '../members.ts';
import type { Properties, Scene } from '../model.ts';
import type { Store } from '../store.ts';
import { Refused } from './server.ts';

const GROUP = 'aws:autoscaling:Group';

const idOf = ({ group, serial }: Member): string => `i-${digits(17, group.uid, String(serial))}`;

/** All instances of Auto Scaling groups in the region. */
const members = (scene: Scene, store: Store): Member[] =>
  scene
    .all(GROUP)
    .filter(({ region }) => region === scene.region)
    .flatMap((group) => membersOf(group, model.types.get(GROUP)!.machines!(group.inputs, scene)!, store, scene.now));

/** Tags that the launch template puts on instances. */
function tagsOf({ group }: Member, scene: Scene): Record<string, string> {
  const { launchTemplate, mixedInstancesPolicy } = group.inputs;
  const named = launchTemplate ?? mixedInstancesPolicy?.launchTemplate?.launchTemplateSpecification;
  const template = scene.find('aws:ec2:LaunchTemplate', named?.id ?? named?.launchTemplateId);
  const specifications = (template?.inputs.tagSpecifications ?? []) as Properties[];
  return specifications.find(({ resourceType }) => resourceType === 'instance')?.tags ?? {};
}

/** What EC2 answers about images and instances; undefined for other calls. */
export function describeMachines(
  action: string,
  fields: Record<string, string>,
  scene: Scene,
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
  const shown = members(scene, store).filter((member) => key === undefined || tagsOf(member, scene)[key] === value);
  const instancesSet = shown.map((member) => ({
    instanceId: idOf(member),
    instanceState: { name: 'running' },
    privateIpAddress: member.address,
    placement: { availabilityZone: member.zone },
    launchTime: new Date(member.at).toISOString(),
    tagSet: Object.entries(tagsOf(member, scene)).map(([name, one]) => ({ key: name, value: one })),
  }));
  return { reservationSet: instancesSet.length > 0 ? [{ instancesSet }] : [] };
}

/** What Auto Scaling answers about single machines; undefined for other calls. */
export function scaleGroups(
  action: string,
  fields: Record<string, string>,
  scene: Scene,
  store: Store,
): Properties | undefined {
  if (action === 'DescribeScalingActivities') return { Activities: [] };
  if (action !== 'TerminateInstanceInAutoScalingGroup') return undefined;
  const member = members(scene, store).find((one) => idOf(one) === fields.InstanceId);
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
