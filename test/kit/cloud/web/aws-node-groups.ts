import type { CloudNode } from '../../../../providers/cloud.ts';
import { aws as model } from '../aws/model.ts';
import { digits } from '../digits.ts';
import { type Member, membersOf, removeMembers } from '../members.ts';
import type { CloudResource, Properties, Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { groupNames } from './aws-machines.ts';
import { Refused } from './server.ts';

const NODE_GROUP = 'aws:eks:NodeGroup';

const idOf = ({ group, serial }: Pick<Member, 'group' | 'serial'>): string =>
  `i-${digits(17, group.uid, String(serial))}`;

const membersIn = (group: CloudResource, testbed: Testbed, store: Store): Member[] =>
  membersOf(group, model.types.get(NODE_GROUP)!.machines!(group.inputs, testbed)!, store, testbed.now, () => ({}));

const scalingGroupOf = (group: CloudResource, testbed: Testbed): string =>
  testbed.outputs(group).resources[0].autoscalingGroups[0].name;

/** Instances that were ended: EKS drains each by a lifecycle hook, so they go on being listed for minutes. */
const endingIn = (group: CloudResource): string[] => group.facts.ending ?? [];

/** Nodes of a node group, as their kubelets register them. */
export const nodesOfGroup = (group: CloudResource, testbed: Testbed, store: Store): CloudNode[] =>
  membersIn(group, testbed, store).map((member) => ({
    name: idOf(member),
    providerID: `aws:///${member.zone}/${idOf(member)}`,
  }));

/** A node group as EKS' API tells it, where the provider's words are others. */
export const toldByEKS = (outputs: Properties): Properties => ({
  ...outputs,
  resources: { autoScalingGroups: outputs.resources[0].autoscalingGroups },
});

/** What Auto Scaling answers about the groups behind node groups; undefined for other calls, and other groups. */
export function scaleNodeGroups(
  action: string,
  fields: Record<string, string>,
  testbed: Testbed,
  store: Store,
): Properties | undefined {
  const groups = testbed.all(NODE_GROUP).filter(({ region }) => region === testbed.region);
  const named = (name: string | undefined) => groups.find((group) => scalingGroupOf(group, testbed) === name);
  if (action === 'DescribeAutoScalingGroups') {
    const found = groupNames(fields).flatMap((name) => named(name) ?? []);
    return found.length === 0 ? undefined : { AutoScalingGroups: found.map((one) => described(one, testbed, store)) };
  }
  if (action === 'SuspendProcesses') {
    const group = named(fields.AutoScalingGroupName);
    if (!group) return undefined;
    const { suspended = [] } = group.facts;
    group.facts = { ...group.facts, suspended: [...suspended, fields['ScalingProcesses.member.1']] };
    store.put(group);
    return {};
  }
  if (action !== 'TerminateInstanceInAutoScalingGroup') return undefined;
  const { InstanceId = '' } = fields;
  if (groups.some((group) => endingIn(group).includes(InstanceId)))
    throw new Refused(400, 'ScalingActivityInProgress', `${InstanceId} is being terminated`);
  const member = groups.flatMap((group) => membersIn(group, testbed, store)).find((one) => idOf(one) === InstanceId);
  if (!member) return undefined;
  const { group } = member;
  const { scalingConfig } = group.inputs;
  const isCounted = fields.ShouldDecrementDesiredCapacity === 'true';
  if (isCounted && Number(scalingConfig.desiredSize) <= Number(scalingConfig.minSize))
    throw new Refused(
      400,
      'ValidationError',
      "Terminating instance without replacement will violate the group's min size constraint.",
    );
  group.facts = { ...group.facts, ending: [...endingIn(group), InstanceId] };
  // "Amazon EC2 Auto Scaling tries to rebalance the group, and rebalancing might terminate instances in other zones."
  const others = membersIn(group, testbed, store).filter(({ zone }) => zone !== member.zone);
  const rebalanced = isCounted && !(group.facts.suspended ?? []).includes('AZRebalance') ? others.slice(0, 1) : [];
  // EKS tells the capacity of the group as the size of the node group.
  removeMembers(group, [member, ...rebalanced], store, (inputs) => {
    if (isCounted) inputs.scalingConfig = { ...scalingConfig, desiredSize: Number(scalingConfig.desiredSize) - 1 };
  });
  return { Activity: { StatusCode: 'InProgress' } };
}

function described(group: CloudResource, testbed: Testbed, store: Store): Properties {
  const { scalingConfig } = group.inputs;
  const members = membersIn(group, testbed, store);
  const there = members.map((member) => ({ InstanceId: idOf(member), LifecycleState: 'InService' }));
  const ending = endingIn(group).map((InstanceId) => ({ InstanceId, LifecycleState: 'Terminating:Wait' }));
  const { zones } = model.types.get(NODE_GROUP)!.machines!(group.inputs, testbed)!;
  return {
    AutoScalingGroupName: scalingGroupOf(group, testbed),
    MinSize: scalingConfig.minSize,
    DesiredCapacity: scalingConfig.desiredSize,
    AvailabilityZones: zones,
    Instances: [...there, ...ending],
    SuspendedProcesses: (group.facts.suspended ?? []).map((ProcessName: string) => ({ ProcessName })),
  };
}
