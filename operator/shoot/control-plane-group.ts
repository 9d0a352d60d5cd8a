import type { EtcdMember } from '../etcd/etcd-client.ts';
import { type MemberRemoval, planMemberRemoval } from './etcd-member-removal.ts';

/** A machine of a control plane in a cloud. */
interface GroupMachine {
  /** Name of its node and of its etcd member. */
  name: string;
  /** Private address, which identifies its etcd member before the member has a name. */
  address?: string | undefined;
  /** Whether it is being deleted. */
  going: boolean;
  /** Whether kubeadm has labelled its node, its last step. */
  joined: boolean;
  /** Whether its time to join is over. */
  overdue: boolean;
  /** Whether it is to be replaced. */
  outdated: boolean;
  zone?: string | undefined;
}

/** Input of planControlPlaneGroup. */
export interface ControlPlaneGroupObservation {
  /** Desired machines: 1, 3 or 5. */
  desired: number;
  /** Machines currently requested from the cloud. */
  asked: number;
  /** Oldest first, without lost machines. */
  machines: GroupMachine[];
  /** etcd's members; absent: no majority answers. */
  members?: EtcdMember[] | undefined;
  /** Control plane nodes, with or without a machine. */
  nodes: { name: string; ready: boolean }[];
  /** Drained machines, where draining is awaited. Absent: none. */
  drained?: readonly string[];
}

/** The next single step. */
export type ControlPlaneGroupAction =
  | { type: 'ask-for'; machines: number }
  /** Delete these machines, and request the number that remains. */
  | { type: 'end-machines'; names: string[] }
  /** Drain a machine that has, or will have, a replacement. */
  | { type: 'drain'; name: string }
  | { type: 'transfer-leadership'; from: string; to: string }
  | { type: 'remove-member'; name: string; id: string }
  | { type: 'remove-node'; name: string };

/** `waitFor`: the obstacle, for messages. Without action and `waitFor` the group is as desired. */
export interface ControlPlaneGroupPlan {
  action?: ControlPlaneGroupAction;
  waitFor?: string;
  /** Waiting will not help. */
  blocked?: boolean;
}

/**
 * The next single step from a control plane's present machines to the desired ones. Pure and stateless: after a crash
 * it continues from what it observes. Data is local to a machine: a lost one leaves etcd, and its replacement joins as
 * a new member. One machine at a time: kubeadm adds its member, first as a learner; on removal the member leaves etcd
 * before its machine is deleted. Outdated machines are replaced.
 */
export function planControlPlaneGroup(observed: ControlPlaneGroupObservation): ControlPlaneGroupPlan {
  const { asked, members, nodes } = observed;
  if (!members) return { waitFor: 'etcd to answer' };
  const machines = observed.machines.filter(({ going }) => !going);
  const desired = observed.desired + (needsAnotherFirst(observed.desired, machines) ? 1 : 0);
  const memberOf = (machine: GroupMachine) => members.find((member) => isOf(member, machine));
  const machineOf = (member: EtcdMember, among: readonly GroupMachine[]) =>
    among.find((machine) => isOf(member, machine));

  const left = members.filter((member) => !machineOf(member, machines));
  // Clouds list new machines late: a member that answers has a machine.
  const unseen = left.find((member) => member.healthy && !machineOf(member, observed.machines));
  if (unseen) return { waitFor: `the machine of etcd member ${nameOf(unseen)} to be seen` };
  // Before its member leaves: afterwards a lost machine could not be told from one still to come.
  if (left.length > 0 && asked > machines.length)
    // Stopped machines can be started again with all their data: a majority is not deleted for it.
    return haveMajority(members, machines)
      ? end(left.map(nameOf))
      : { waitFor: `more machines to be there: without ${left.map(nameOf).join(', ')} too few would stay` };
  if (left[0]) return leave(left[0], members);
  // A node stays Ready for a while after its machine is gone, and clouds list new machines late.
  const forsaken = nodes.filter((node) => !observed.machines.some(({ name }) => name === node.name));
  const dead = forsaken.find(({ ready }) => !ready);
  if (dead) return { action: { type: 'remove-node', name: dead.name } };

  const late = machines.filter((machine) => machine.overdue && !machine.joined);
  const overdue = late.find((machine) => !isVoter(memberOf(machine))) ?? late[0];
  if (overdue) {
    const member = memberOf(overdue);
    if (!member) return end([overdue.name]);
    // The only voter is never removed.
    if (votersIn(members).some((name) => name !== overdue.name)) return leave(member, members);
  }
  // It had joined, and its member was removed from etcd: it cannot rejoin.
  const hasLeft = machines.find((machine) => machine.joined && !memberOf(machine));
  if (hasLeft) return end([hasLeft.name]);
  const useless = machines.filter((machine) => !isVoter(memberOf(machine))).at(-1);
  if (machines.length > desired || (machines.length > asked && useless)) {
    const last =
      useless ??
      machines.find((machine) => !memberOf(machine)!.healthy) ??
      firstToBeReplaced(machines, members) ??
      machines.at(-1)!;
    const member = memberOf(last);
    return member ? leave(member, members) : end([last.name]);
  }
  if (asked > desired) return { action: { type: 'ask-for', machines: desired } };
  if (machines.length > asked) return { action: { type: 'ask-for', machines: machines.length } };
  if (machines.length < asked) return { waitFor: `${asked - machines.length} more machines to be made` };
  for (const machine of machines) {
    const member = memberOf(machine);
    if (!member) return { waitFor: `machine ${machine.name} to join etcd` };
    if (member.learner) return { waitFor: `etcd member ${machine.name} to have all data` };
    if (!member.healthy) return { waitFor: `etcd member ${machine.name} to answer` };
    if (!machine.joined) return { waitFor: `machine ${machine.name} to join` };
  }
  if (asked < desired) return { action: { type: 'ask-for', machines: asked + 1 } };
  const outdated = firstToBeReplaced(machines, members);
  if (outdated)
    return observed.drained?.includes(outdated.name)
      ? leave(memberOf(outdated)!, members)
      : { action: { type: 'drain', name: outdated.name } };
  return forsaken[0]
    ? { waitFor: `the API server to mark node ${forsaken[0].name} NotReady, since its machine is gone` }
    : {};
}

/** Names of the voting machines of etcd. */
export const votersIn = (members: readonly EtcdMember[]): string[] =>
  members
    .filter(({ learner, name }) => !learner && name !== '')
    .map(({ name }) => name)
    .sort();

/** Whether the answering voters on these machines are a majority of all voters. */
function haveMajority(members: readonly EtcdMember[], machines: readonly GroupMachine[]): boolean {
  const voters = members.filter(({ learner }) => !learner);
  const staying = voters.filter((one) => one.healthy && machines.some((machine) => isOf(one, machine)));
  return staying.length >= Math.floor(voters.length / 2) + 1;
}

/**
 * Whether to add a machine before an outdated one goes, so that etcd loses none. Not where each of several machines has
 * its own zone: an additional one would share a zone, and in the end a majority might be in one. When an outdated
 * machine goes first, its zone is the emptiest, and the cloud puts the replacement there.
 */
function needsAnotherFirst(desired: number, machines: readonly GroupMachine[]): boolean {
  const isEachAlone = desired > 1 && new Set(machines.map(({ zone }) => zone)).size === machines.length;
  return !isEachAlone && machines.some(({ outdated }) => outdated);
}

/**
 * The outdated machine to replace first: one in the fullest zone; etcd's leader last, since each replacement of the
 * leader moves leadership.
 */
function firstToBeReplaced(
  machines: readonly GroupMachine[],
  members: readonly EtcdMember[],
): GroupMachine | undefined {
  const beside = (one: GroupMachine): number => machines.filter(({ zone }) => zone === one.zone).length;
  const leads = (one: GroupMachine): number => Number(members.some((member) => member.leader && isOf(member, one)));
  return machines
    .filter(({ outdated }) => outdated)
    .sort((one, other) => beside(other) - beside(one) || leads(one) - leads(other))[0];
}

/** A member has no name before its first start. */
const isOf = ({ name, peerURLs }: EtcdMember, machine: GroupMachine): boolean =>
  name === '' ? peerURLs.some((url) => URL.parse(url)?.hostname === machine.address) : name === machine.name;

const isVoter = (member: EtcdMember | undefined): boolean => member !== undefined && !member.learner;

const nameOf = ({ name, id }: EtcdMember): string => name || id;

const end = (names: string[]): ControlPlaneGroupPlan => ({ action: { type: 'end-machines', names } });

function leave(going: EtcdMember, members: readonly EtcdMember[]): ControlPlaneGroupPlan {
  const step: MemberRemoval = planMemberRemoval(going, members, nameOf(going));
  if (!('action' in step)) return step;
  const { action } = step;
  return { action: action.type === 'remove-member' ? { ...action, name: nameOf(going) } : action };
}
