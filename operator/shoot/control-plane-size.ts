import type { EtcdMember } from '../etcd/etcd-client.ts';
import { foreignMember, planMemberRemoval } from './etcd-member-removal.ts';

/** Input of planControlPlaneSize. */
interface ControlPlaneSizeObservation {
  /** Desired machines: 1, 3 or 5. */
  desired: number;
  /** Machines currently requested. */
  asked: number;
  /** Peer URL of machine N's etcd member, by ordinal. */
  peerURLs: string[];
  /** etcd's members; absent: no majority answers. */
  members?: EtcdMember[] | undefined;
  /** Ordinals of existing machines, those being deleted included. */
  machines: number[];
  /** Ordinals of joined machines: kubeadm has labelled their nodes, its last step. */
  joined: number[];
  /** Ordinals with a volume. */
  volumes: number[];
  /** Ordinals of machines whose volume is not the one that they joined with: its data is lost. */
  lost: number[];
  /** Ordinals of machines of another Kubernetes version than desired. */
  outdated: number[];
  /** Ordinals of machines whose API server is ready. */
  ready: number[];
  /** Ordinals of drained machines, where draining is awaited. */
  drained: number[];
  /** Ordinals of machines that get no new requests. */
  closed: number[];
}

/** The next single step. */
export type ControlPlaneSizeAction =
  | { type: 'ask-for'; machines: number }
  | { type: 'transfer-leadership'; from: string; to: string }
  /** `thenAskFor`: requested at once, since the API server of a machine without its member no longer answers. */
  | { type: 'remove-member'; ordinal: number; id: string; thenAskFor?: number }
  | { type: 'remove-node'; ordinal: number }
  | { type: 'forget-volume'; ordinal: number }
  | { type: 'remove-volume'; ordinal: number }
  | { type: 'drain'; ordinal: number }
  | { type: 'close'; ordinal: number }
  | { type: 'replace'; ordinal: number };

/** With fewer members etcd loses its majority while one is recreated. */
export const FEWEST_TO_REPLACE = 3;

/** `waitFor`: the obstacle, for messages. Without action and `waitFor` the control plane is as desired. */
export interface ControlPlaneSizePlan {
  action?: ControlPlaneSizeAction;
  waitFor?: string;
  /** Waiting will not help. */
  blocked?: boolean;
}

/**
 * The next single step from a control plane's present machines to the desired ones. Pure and stateless: after a crash
 * it continues from what it observes. One machine at a time: kubeadm adds its etcd member, first as a learner; on
 * removal the member leaves etcd before its machine and data are deleted. A machine of another version is recreated
 * over its data while all others serve; where there are too few for that, further machines are added until it is done.
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
  // A removal that has begun is finished first: the data of a removed member must never come back.
  const leaving = machines.find((ordinal) => ordinal >= asked);
  if (leaving !== undefined) return { waitFor: `machine ${leaving} to be gone` };
  const left = volumes.find((ordinal) => ordinal >= asked);
  const orphan = members.find((member) => member.ordinal >= asked);
  if (orphan) return leave(orphan, members);
  if (left !== undefined) return { action: { type: 'remove-volume', ordinal: left } };

  // It must join as a new member: a member that has lost its log would endanger acknowledged writes. The node is
  // deleted first: the machine can rejoin as soon as its member is removed, and its kubelet would not notice the
  // deletion of a node it has just created.
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
    // Its member may be healthy while its API server is not serving yet.
    const away = range(desired).find((ordinal) => !observed.ready.includes(ordinal));
    if (step.action && away !== undefined) return { waitFor: `machine ${away} to serve` };
    return step.action?.type === 'remove-member' ? { action: { ...step.action, thenAskFor: asked - 1 } } : step;
  }
  const absent = range(asked).find((ordinal) => !members.some((member) => member.ordinal === ordinal));
  if (absent !== undefined) {
    // It had joined, and its member was removed from etcd: it cannot rejoin.
    const hasLeft = joined.includes(absent) && absent > 0 && absent === asked - 1;
    if (hasLeft) return { action: { type: 'ask-for', machines: absent } };
    // With its own version it could not rejoin.
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

/** The next step to recreate an outdated machine. All members are healthy. */
function replaceOne(
  { asked, closed, drained, outdated, ready }: ControlPlaneSizeObservation,
  members: readonly Located[],
): ControlPlaneSizePlan {
  const away = range(asked).find((ordinal) => !ready.includes(ordinal));
  if (away !== undefined && !outdated.includes(away)) return { waitFor: `machine ${away} to serve` };
  const leads = (ordinal: number) => members.some((member) => member.ordinal === ordinal && member.leader);
  // The leader last: leadership moves once.
  const ordinal = away ?? outdated.find((one) => !leads(one)) ?? outdated[0]!;
  if (!drained.includes(ordinal)) return { action: { type: 'drain', ordinal } };
  if (leads(ordinal)) {
    const from = members.find((member) => member.ordinal === ordinal)!;
    const to = members.find((member) => member.ordinal !== ordinal)!;
    return { action: { type: 'transfer-leadership', from: from.id, to: to.id } };
  }
  return { action: { type: closed.includes(ordinal) ? 'replace' : 'close', ordinal } };
}

/** Whether the others are an answering majority of etcd. */
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
