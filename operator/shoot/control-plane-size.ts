import type { EtcdMember } from '../etcd/etcd-client.ts';
import { foreignMember, planMemberRemoval } from './etcd-member-removal.ts';

/** Input of planControlPlaneSize. */
export interface ControlPlaneSizeObservation {
  /** Machines wanted: 1, 3 or 5. */
  desired: number;
  /** How many machines are asked for now. */
  asked: number;
  /** Peer URL that machine N's etcd member has, by ordinal. */
  peerURLs: string[];
  /** etcd's members; absent: there is no majority that answers. */
  members?: EtcdMember[] | undefined;
  /** Ordinals of machines that exist, those on their way out included. */
  machines: number[];
  /** Ordinals of machines that have joined: kubeadm has marked their nodes, which it does last. */
  joined: number[];
  /** Ordinals of which there is a volume. */
  volumes: number[];
  /** Ordinals of machines whose volume is not the one that they joined from: what was on that is lost. */
  lost: number[];
  /** Ordinals of machines of another Kubernetes version than is wanted. */
  outdated: number[];
  /** Ordinals of machines whose API server is ready. */
  ready: number[];
  /** Ordinals of machines that pods have left, as far as they are waited for. */
  drained: number[];
  /** Ordinals of machines that get no new requests. */
  closed: number[];
}

/** The next single step. */
export type ControlPlaneSizeAction =
  | { type: 'ask-for'; machines: number }
  | { type: 'transfer-leadership'; from: string; to: string }
  /** `thenAskFor`: at once, since the API server of a machine whose member has left answers nobody any more. */
  | { type: 'remove-member'; ordinal: number; id: string; thenAskFor?: number }
  | { type: 'remove-node'; ordinal: number }
  | { type: 'forget-volume'; ordinal: number }
  | { type: 'remove-volume'; ordinal: number }
  | { type: 'drain'; ordinal: number }
  | { type: 'close'; ordinal: number }
  | { type: 'replace'; ordinal: number };

/** With fewer members etcd has no majority while one of them is made anew. */
export const FEWEST_TO_REPLACE = 3;

/** `waitFor`: what has to happen first, in words. Neither: all is as wanted. */
export interface ControlPlaneSizePlan {
  action?: ControlPlaneSizeAction;
  waitFor?: string;
  /** Waiting will not help. */
  blocked?: boolean;
}

/**
 * The next single step from the machines of a control plane that there are to those that are wanted, pure. One machine at a time:
 * kubeadm brings its etcd member in, first as a learner; on the way out the member leaves etcd before its machine and its data go. One of
 * another version is made anew over its data while all others serve; where there are too few for that, there are more until it is done.
 * Keeps no memory: after a crash at any point it goes on from what it sees.
 */
export function planControlPlaneSize(observed: ControlPlaneSizeObservation): ControlPlaneSizePlan {
  const { asked, peerURLs, machines, joined, volumes, lost, outdated } = observed;
  const desired = outdated.length > 0 ? Math.max(observed.desired, FEWEST_TO_REPLACE) : observed.desired;
  if (!observed.members) return { waitFor: 'a majority of etcd to answer' };
  const members = observed.members.map((member) => ({
    ...member,
    ordinal: peerURLs.findIndex((url) => member.peerURLs.includes(url)),
  }));
  const unknown = members.find((member) => member.ordinal < 0);
  if (unknown) return { waitFor: foreignMember(unknown), blocked: true };
  // What left in the middle of being taken away goes before anything else: data of a member that etcd has let go must never come back.
  const leaving = machines.find((ordinal) => ordinal >= asked);
  if (leaving !== undefined) return { waitFor: `machine ${leaving} to be gone` };
  const left = volumes.find((ordinal) => ordinal >= asked);
  const orphan = members.find((member) => member.ordinal >= asked);
  if (orphan) return leave(orphan, members);
  if (left !== undefined) return { action: { type: 'remove-volume', ordinal: left } };

  // It must join as somebody new: a member that has forgotten what it agreed to would endanger what the others know. The node goes first:
  // the machine can join again as soon as etcd has let it go, and its kubelet would miss the loss of a node that it has just made.
  const forgetful = lost[0];
  if (forgetful !== undefined) {
    if (joined.includes(forgetful)) return { action: { type: 'remove-node', ordinal: forgetful } };
    const member = members.find(({ ordinal }) => ordinal === forgetful);
    return member ? leave(member, members) : { action: { type: 'forget-volume', ordinal: forgetful } };
  }
  if (asked > desired) {
    const last = members.find((member) => member.ordinal === asked - 1);
    const step: ControlPlaneSizePlan = last
      ? leave(last, members)
      : { action: { type: 'ask-for', machines: asked - 1 } };
    // Its member may be fine where its API server is still to come.
    const away = range(desired).find((ordinal) => !observed.ready.includes(ordinal));
    if (step.action && away !== undefined) return { waitFor: `machine ${away} to serve` };
    return step.action?.type === 'remove-member' ? { action: { ...step.action, thenAskFor: asked - 1 } } : step;
  }
  const absent = range(asked).find((ordinal) => !members.some((member) => member.ordinal === ordinal));
  if (absent !== undefined) {
    // It had joined, and etcd was told to let it go: it cannot come back as it is.
    const hasLeft = joined.includes(absent) && absent > 0 && absent === asked - 1;
    if (hasLeft) return { action: { type: 'ask-for', machines: absent } };
    // By its own version it could not join any more.
    if (outdated.includes(absent)) return { action: { type: 'replace', ordinal: absent } };
    return { waitFor: `machine ${absent} to join etcd` };
  }
  const ill = members.find((member) => member.learner || !member.healthy);
  if (ill && outdated.includes(ill.ordinal) && keepMajority(ill, members))
    return { action: { type: 'replace', ordinal: ill.ordinal } };
  if (ill) return { waitFor: `etcd member ${ill.ordinal} to ${ill.learner ? 'have all data' : 'answer'}` };
  const joining = range(asked).find((ordinal) => !joined.includes(ordinal));
  if (joining !== undefined) return { waitFor: `machine ${joining} to join` };
  if (asked < desired) return { action: { type: 'ask-for', machines: asked + 1 } };
  return outdated.length > 0 ? replaceOne(observed, members) : {};
}

/** The next step by which an outdated machine is made anew. All members are healthy. */
function replaceOne(
  { asked, closed, drained, outdated, ready }: ControlPlaneSizeObservation,
  members: readonly Located[],
): ControlPlaneSizePlan {
  const away = range(asked).find((ordinal) => !ready.includes(ordinal));
  if (away !== undefined && !outdated.includes(away)) return { waitFor: `machine ${away} to serve` };
  const leads = (ordinal: number) => members.some((member) => member.ordinal === ordinal && member.leader);
  // Who leads comes last: leadership moves once.
  const ordinal = away ?? outdated.find((one) => !leads(one)) ?? outdated[0]!;
  if (!drained.includes(ordinal)) return { action: { type: 'drain', ordinal } };
  if (leads(ordinal)) {
    const from = members.find((member) => member.ordinal === ordinal)!;
    const to = members.find((member) => member.ordinal !== ordinal)!;
    return { action: { type: 'transfer-leadership', from: from.id, to: to.id } };
  }
  return { action: { type: closed.includes(ordinal) ? 'replace' : 'close', ordinal } };
}

/** Whether the others are a majority of etcd that answers. */
const keepMajority = (one: Located, members: readonly Located[]): boolean =>
  !one.learner &&
  members.filter(({ healthy, id, learner }) => id !== one.id && healthy && !learner).length >
    members.filter(({ learner }) => !learner).length / 2;

type Located = EtcdMember & { ordinal: number };

function leave(going: Located, members: readonly Located[]): ControlPlaneSizePlan {
  const inOrder = [...members].sort((one, other) => one.ordinal - other.ordinal);
  const step = planMemberRemoval(going, inOrder, String(going.ordinal));
  if (!('action' in step)) return step;
  const { action } = step;
  return { action: action.type === 'remove-member' ? { ...action, ordinal: going.ordinal } : action };
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);
