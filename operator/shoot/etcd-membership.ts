import type { EtcdMember } from '../etcd/etcd-client.ts';
import { foreignMember, planMemberRemoval } from './etcd-member-removal.ts';

/** UIDs of claims, by ordinal of the member. */
export type EtcdVolumes = Readonly<Record<number, string>>;

/** Input of planEtcd. */
export interface EtcdObservation {
  /** Desired members: 1, 3 or 5. */
  desired: number;
  /** `spec.replicas` of the StatefulSet; 0 when it does not exist. */
  replicas: number;
  /** Whether the members have formed their cluster, as recorded. */
  initialised: boolean;
  /** Peer URL of each member with a Service, by ordinal; at least `desired` and `replicas` of them. */
  peerURLs: string[];
  /** Undefined while no member answers. */
  members?: EtcdMember[];
  /**
   * The existing volumes. Observed before the members: an answering member has its data on this volume or a later one.
   */
  volumes: EtcdVolumes;
  /** The volumes on which members were last seen voting. */
  noted: EtcdVolumes;
  /** Ordinals that running API servers use; a member is removed only once none does. */
  inUse: number[];
}

/** One safe step. Members are identified by their pod's ordinal. */
export type EtcdAction =
  | { type: 'scale'; replicas: number }
  | { type: 'mark-initialised'; volumes: EtcdVolumes }
  | { type: 'note-volumes'; volumes: EtcdVolumes }
  /** `volumes`: recorded before; the joining member is told of their members. */
  | { type: 'add-learner'; ordinal: number; peerURL: string; volumes: EtcdVolumes }
  /** `volumes`: recorded after. */
  | { type: 'promote'; ordinal: number; id: string; volumes: EtcdVolumes }
  | { type: 'transfer-leadership'; from: string; to: string }
  /** `lost`: because its volume is lost. */
  | { type: 'remove-member'; ordinal: number; id: string; lost?: true }
  | { type: 'delete-volume'; ordinal: number };

/** The next step, or the obstacle; without either all is as desired. */
interface EtcdPlan {
  action?: EtcdAction;
  /** For messages: why no step can be taken yet. */
  waitFor?: string;
  /** Only a person can resolve this. */
  blocked?: boolean;
  /** Ordinals that API servers should use. */
  endpoints: number[];
  /** Number of members aimed at first; fewer than desired where one in the middle was removed. */
  target: number;
}

type Step = Omit<EtcdPlan, 'endpoints' | 'target'>;

interface Located extends EtcdMember {
  ordinal: number;
}

/**
 * The next single step from the present members to the desired ones. Stateless: after a crash it continues from what it
 * observes. A new member first joins as a learner, so that its loss is harmless; a removed member leaves the cluster
 * before its pod and data are deleted; a member whose volume is lost is removed, and rejoins as a new one.
 */
export function planEtcd(observed: EtcdObservation): EtcdPlan {
  const { desired, replicas, initialised, peerURLs } = observed;
  // New; or the StatefulSet was lost, and the members keep their data and form the same cluster again.
  if (replicas === 0)
    return { action: { type: 'scale', replicas: desired }, endpoints: range(desired), target: desired };
  if (!observed.members)
    return { waitFor: 'etcd does not answer yet', endpoints: range(Math.min(desired, replicas)), target: desired };

  const members = observed.members
    .map((member) => ({ ...member, ordinal: peerURLs.findIndex((url) => member.peerURLs.includes(url)) }))
    .sort((a, b) => a.ordinal - b.ordinal);
  const unknown = members.find((member) => member.ordinal < 0);
  if (unknown) {
    const endpoints = members.filter((member) => member.ordinal >= 0 && !member.learner).map(({ ordinal }) => ordinal);
    return { ...blocked(foreignMember(unknown)), endpoints, target: desired };
  }
  const target = initialised ? (gapOf(members, observed) ?? desired) : desired;
  const voters = members.filter((member) => !member.learner);
  const staying = voters.filter((member) => member.ordinal < target).map((member) => member.ordinal);
  const endpoints = staying.length > 0 ? staying : voters.map((member) => member.ordinal);
  const step = nextStep({ ...observed, desired: target }, members, voters);
  return { ...step, endpoints, target };
}

/**
 * Ordinal of a removed member below remaining ones. A StatefulSet only removes pods from the top: the pods above it
 * must go too, and its data be deleted, before it can rejoin. Not where its data is already lost.
 */
function gapOf(members: readonly Located[], observed: EtcdObservation): number | undefined {
  const has = (ordinal: number) => members.some((member) => member.ordinal === ordinal);
  const absent = range(Math.max(0, ...members.map(({ ordinal }) => ordinal))).find(
    (ordinal) => !has(ordinal) && !isLost(observed, ordinal),
  );
  return absent !== undefined && observed.replicas > absent ? absent : undefined;
}

/** Whether the volume on which the member voted is gone or replaced. */
const isLost = ({ volumes, noted }: Pick<EtcdObservation, 'volumes' | 'noted'>, ordinal: number): boolean =>
  noted[ordinal] !== undefined && noted[ordinal] !== volumes[ordinal];

/**
 * Why the cluster's data is lost for good, when the lost volumes leave no majority; for messages. Pure.
 * @param ready ordinals of answering members: they have data, whatever its source
 */
export function lostMajority(
  observed: Pick<EtcdObservation, 'volumes' | 'noted' | 'replicas'>,
  ready: readonly number[],
): string | undefined {
  const noted = range(observed.replicas).filter((ordinal) => observed.noted[ordinal] !== undefined);
  const lost = noted.filter((ordinal) => isLost(observed, ordinal) && !ready.includes(ordinal));
  if (noted.length - lost.length >= Math.floor(noted.length / 2) + 1 || lost.length === 0) return undefined;
  return noted.length === 1
    ? 'the volume of the only etcd member is lost, and the state of the cluster with it'
    : `the volumes of ${lost.length} of ${noted.length} etcd members are lost (${lost.join(', ')}): those left are no majority, and none of them is removed`;
}

function nextStep(observed: EtcdObservation, members: Located[], voters: Located[]): Step {
  const { desired, initialised, replicas } = observed;
  if (!initialised) {
    const starting = voters.find((member) => !member.healthy || !member.name);
    return starting
      ? { waitFor: `etcd member ${starting.ordinal} is starting` }
      : { action: { type: 'mark-initialised', volumes: observed.volumes } };
  }
  const forgetful = voters.find(
    (member) => member.ordinal < desired && !member.healthy && isLost(observed, member.ordinal),
  );
  if (forgetful) return letGo(forgetful, members);
  const volumes = noting(observed, voters);
  if (voters.some(({ ordinal }) => volumes[ordinal] !== observed.noted[ordinal]))
    return { action: { type: 'note-volumes', volumes } };
  const surplus = members.filter((member) => member.ordinal >= desired);
  // A member that lost its volume is restored first: the others alone could be too few.
  const comesBack = range(desired).some((ordinal) => {
    const member = members.find((found) => found.ordinal === ordinal);
    return member ? member.learner : isLost(observed, ordinal);
  });
  if (surplus.length > 0 && !comesBack) return shrink(observed, members, voters, surplus);
  if (comesBack || members.length < desired || members.some((member) => member.learner))
    return grow(observed, members, voters);
  if (replicas > desired) return { action: { type: 'scale', replicas: desired } };
  if (replicas < desired) return { action: { type: 'scale', replicas: replicas + 1 } };
  const leftover = ordinalsOf(observed.volumes).findLast((ordinal) => ordinal >= desired);
  if (leftover !== undefined) return { action: { type: 'delete-volume', ordinal: leftover } };
  const ill = members.find((member) => !member.healthy);
  return ill ? { waitFor: `etcd member ${ill.ordinal} does not answer` } : {};
}

function grow(observed: EtcdObservation, members: Located[], voters: Located[]): Step {
  const { replicas, peerURLs, volumes } = observed;
  const learner = members.find((member) => member.learner);
  if (learner) {
    const { ordinal, id } = learner;
    if (replicas <= ordinal) return { action: { type: 'scale', replicas: ordinal + 1 } };
    if (!learner.name || !learner.healthy) return { waitFor: `etcd member ${ordinal} is starting as a learner` };
    if (!learner.caughtUp) return { waitFor: `etcd member ${ordinal} is still copying the data` };
    return { action: { type: 'promote', ordinal, id, volumes: noting(observed, [...voters, learner]) } };
  }
  // While one voter is down, the loss of another could cost the majority.
  const ill = voters.find((member) => !member.healthy);
  if (ill) return { waitFor: `etcd member ${ill.ordinal} must answer before another one joins` };

  const ordinal = range(peerURLs.length).find((candidate) => members.every((member) => member.ordinal !== candidate))!;
  const isNew = isLost(observed, ordinal);
  if (replicas > ordinal && !isNew) {
    // A removed member's pod must go first, with its data, or it would come back under its old identity.
    return { action: { type: 'scale', replicas: ordinal } };
  }
  if (volumes[ordinal] !== undefined && !isNew) return { action: { type: 'delete-volume', ordinal } };
  return { action: { type: 'add-learner', ordinal, peerURL: peerURLs[ordinal]!, volumes: noting(observed, voters) } };
}

/**
 * The volumes of voting members. An answering member has its data on the present volume: without data it would not
 * start (see etcdConfig), so a person must have restored it.
 */
const noting = ({ volumes, noted }: EtcdObservation, voters: readonly Located[]): EtcdVolumes =>
  Object.fromEntries(
    voters.flatMap(({ ordinal, healthy }) => {
      const uid = (healthy ? volumes[ordinal] : undefined) ?? noted[ordinal];
      return uid === undefined ? [] : [[ordinal, uid]];
    }),
  );

/** Removes a member that has lost its log. */
function letGo(going: Located, members: readonly Located[]): Step {
  const step = planMemberRemoval(going, members, String(going.ordinal));
  if (!('action' in step)) return { ...step, waitFor: `etcd waits for ${step.waitFor}` };
  const { action } = step;
  return { action: action.type === 'remove-member' ? { ...action, ordinal: going.ordinal, lost: true } : action };
}

function shrink(observed: EtcdObservation, members: Located[], voters: Located[], surplus: Located[]): Step {
  const learner = surplus.find((member) => member.learner);
  if (learner) return remove(learner);
  // A dead member is removed first: while it is a voter, one more loss would cost the majority.
  const last = surplus.findLast((member) => !member.healthy) ?? surplus.at(-1)!;
  if (voters.every((member) => member.ordinal >= observed.desired)) {
    return blocked('none of the etcd members that should stay is in the cluster');
  }
  if (observed.inUse.some((ordinal) => ordinal >= observed.desired)) {
    return { waitFor: `API servers still talk to etcd member ${last.ordinal}` };
  }
  const leader = voters.find((member) => member.leader);
  if (!leader) return { waitFor: 'etcd is electing a leader' };
  if (leader.ordinal >= observed.desired) {
    const heir = voters.find((member) => member.ordinal < observed.desired && member.healthy);
    if (!heir) return { waitFor: 'no etcd member that stays is fit to lead' };
    return { action: { type: 'transfer-leadership', from: leader.id, to: heir.id } };
  }
  const healthyAfter = members.filter((member) => !member.learner && member.healthy && member !== last).length;
  const majorityAfter = Math.floor((voters.length - 1) / 2) + 1;
  if (healthyAfter < majorityAfter) {
    return { waitFor: `without etcd member ${last.ordinal} too few of the others would answer` };
  }
  return remove(last);
}

const remove = ({ ordinal, id }: Located): Step => ({
  action: { type: 'remove-member', ordinal, id },
});

const blocked = (waitFor: string): Step => ({ waitFor, blocked: true });

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);
const ordinalsOf = (volumes: EtcdVolumes): number[] => Object.keys(volumes).map(Number);
