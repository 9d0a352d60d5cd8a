import type { EtcdMember } from '../etcd/etcd-client.ts';
import { type MemberRemoval, planMemberRemoval } from './etcd-member-removal.ts';

/** A machine of a control plane in a cloud. */
export interface GroupMachine {
  /** Of its node, and of its etcd member, too. */
  name: string;
  /** Its own, by which its etcd member is known before it has a name. */
  address?: string | undefined;
  /** Whether it is on its way out. */
  going: boolean;
  /** Whether kubeadm has marked its node, which it does last. */
  joined: boolean;
  /** Whether it has had time enough to join. */
  overdue: boolean;
  /** Whether another one is to take its place. */
  outdated: boolean;
  zone?: string | undefined;
}

/** What planControlPlaneGroup decides from. */
export interface ControlPlaneGroupObservation {
  /** Machines wanted: 1, 3 or 5. */
  desired: number;
  /** How many machines the cloud is asked for now. */
  asked: number;
  /** Oldest first. One that is lost is not among them. */
  machines: GroupMachine[];
  /** etcd's members; absent: there is no majority that answers. */
  members?: EtcdMember[] | undefined;
  /** Nodes of the control plane, whether or not there is a machine still. */
  nodes: { name: string; ready: boolean }[];
  /** Machines that pods have left, as far as they are waited for. Absent: none. */
  drained?: readonly string[];
}

/** The next single step. */
export type ControlPlaneGroupAction =
  | { type: 'ask-for'; machines: number }
  /** End what is there of these machines, and ask for as many as are left. */
  | { type: 'end-machines'; names: string[] }
  /** Have pods leave a machine in whose place there is another one, or will be. */
  | { type: 'drain'; name: string }
  | { type: 'transfer-leadership'; from: string; to: string }
  | { type: 'remove-member'; name: string; id: string }
  | { type: 'remove-node'; name: string };

/** `waitFor`: what has to happen first, in words. Neither: all is as wanted. */
export interface ControlPlaneGroupPlan {
  action?: ControlPlaneGroupAction;
  waitFor?: string;
  /** Waiting will not help. */
  blocked?: boolean;
}

/**
 * The next single step from the machines of a control plane that a cloud has to those that are wanted, pure. A machine has its data with
 * it: one that is lost leaves etcd, and another one joins as somebody new. One machine at a time: kubeadm brings its member in, first as a
 * learner; on the way out the member leaves etcd before its machine goes. One that is outdated gives way to another one. Keeps no
 * memory: after a crash at any point it goes on from what it sees.
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
  // Clouds are late to show what is new: a member that answers has a machine.
  const unseen = left.find((member) => member.healthy && !machineOf(member, observed.machines));
  if (unseen) return { waitFor: `the machine of etcd member ${nameOf(unseen)} to be seen` };
  // Before its member leaves: later nobody could tell a machine that is lost from one that is still to come.
  if (left.length > 0 && asked > machines.length)
    // What somebody stops can be started again, with all its data: most of the machines are not ended for it.
    return haveMajority(members, machines)
      ? end(left.map(nameOf))
      : { waitFor: `more machines to be there: without ${left.map(nameOf).join(', ')} too few would stay` };
  if (left[0]) return leave(left[0], members);
  // A node stays Ready for a while after its machine has gone; and clouds are late to show what is new.
  const forsaken = nodes.filter((node) => !observed.machines.some(({ name }) => name === node.name));
  const dead = forsaken.find(({ ready }) => !ready);
  if (dead) return { action: { type: 'remove-node', name: dead.name } };

  const late = machines.filter((machine) => machine.overdue && !machine.joined);
  const overdue = late.find((machine) => !isVoter(memberOf(machine))) ?? late[0];
  if (overdue) {
    const member = memberOf(overdue);
    if (!member) return end([overdue.name]);
    // Nobody is there to go on without the only one.
    if (votersIn(members).some((name) => name !== overdue.name)) return leave(member, members);
  }
  // It had joined, and etcd was told to let it go: it cannot come back as it is.
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

/** Names of the machines that etcd needs a majority of. */
export const votersIn = (members: readonly EtcdMember[]): string[] =>
  members
    .filter(({ learner, name }) => !learner && name !== '')
    .map(({ name }) => name)
    .sort();

/** Whether the voters that answer on these machines are a majority of all. */
function haveMajority(members: readonly EtcdMember[], machines: readonly GroupMachine[]): boolean {
  const voters = members.filter(({ learner }) => !learner);
  const staying = voters.filter((one) => one.healthy && machines.some((machine) => isOf(one, machine)));
  return staying.length >= Math.floor(voters.length / 2) + 1;
}

/**
 * Whether there is to be one machine more as long as some are outdated, so that etcd loses none before it has another. Not where each of
 * several has a zone to itself: one more would come to any of these, and in the end most of etcd might be in one. When an outdated one goes
 * first, its zone is the emptiest, and the cloud puts the other one there.
 */
function needsAnotherFirst(desired: number, machines: readonly GroupMachine[]): boolean {
  const isEachAlone = desired > 1 && new Set(machines.map(({ zone }) => zone)).size === machines.length;
  return !isEachAlone && machines.some(({ outdated }) => outdated);
}

/** Of the outdated machines one in the zone that has most; the one that leads etcd comes last, since leadership moves each time. */
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

/** A member has no name before it was started once. */
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
