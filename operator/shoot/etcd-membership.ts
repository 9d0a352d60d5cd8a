import type { EtcdMember } from '../etcd/etcd-client.ts';
import { foreignMember, planMemberRemoval } from './etcd-member-removal.ts';

/** UIDs of claims, by the ordinal of the member. */
export type EtcdVolumes = Readonly<Record<number, string>>;

/** What planEtcd decides from. */
export interface EtcdObservation {
  /** Members wanted: 1, 3 or 5. */
  desired: number;
  /** `spec.replicas` of the StatefulSet; 0 when there is none yet. */
  replicas: number;
  /** Whether the members are recorded to have formed their cluster. */
  initialised: boolean;
  /** Peer URL of every member that has a Service, by ordinal; at least `desired` and `replicas` of them. */
  peerURLs: string[];
  /** Undefined while no member answers. */
  members?: EtcdMember[];
  /** The volumes that there are. Seen before the members: a member that answers has data on this one, or on a later one. */
  volumes: EtcdVolumes;
  /** The volumes on which members were last seen to vote. */
  noted: EtcdVolumes;
  /** Ordinals that running API servers talk to; a member is only removed once none does. */
  inUse: number[];
}

/** One safe step. Members are named by the ordinal of their pod. */
export type EtcdAction =
  | { type: 'scale'; replicas: number }
  | { type: 'mark-initialised'; volumes: EtcdVolumes }
  | { type: 'note-volumes'; volumes: EtcdVolumes }
  /** `volumes`: to be noted before; who joins is told of their members. */
  | { type: 'add-learner'; ordinal: number; peerURL: string; volumes: EtcdVolumes }
  /** `volumes`: to be noted after. */
  | { type: 'promote'; ordinal: number; id: string; volumes: EtcdVolumes }
  | { type: 'transfer-leadership'; from: string; to: string }
  /** `lost`: since its volume is. */
  | { type: 'remove-member'; ordinal: number; id: string; lost?: true }
  | { type: 'delete-volume'; ordinal: number };

/** The next step, or what is waited for, or neither: then all is as wanted. */
interface EtcdPlan {
  action?: EtcdAction;
  /** For people: why there is nothing to do yet. */
  waitFor?: string;
  /** Only a person can go on from here. */
  blocked?: boolean;
  /** Ordinals that API servers should talk to. */
  endpoints: number[];
  /** Members that it goes to first; fewer than wanted where one has left from the middle. */
  target: number;
}

type Step = Omit<EtcdPlan, 'endpoints' | 'target'>;

interface Located extends EtcdMember {
  ordinal: number;
}

/**
 * The next single step from the members there are to the members wanted. Keeps no memory: after a crash at any point it
 * goes on from what it sees. A new member first learns as a non-voter, so that the cluster can lose it at any time; a member
 * that goes leaves the cluster before its pod and its data do; one whose volume is lost leaves, and joins as somebody new.
 */
export function planEtcd(observed: EtcdObservation): EtcdPlan {
  const { desired, replicas, initialised, peerURLs } = observed;
  // New; or lost, and the members keep their data and form the same cluster again.
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
 * The ordinal of a member that has left the cluster while one above it has not. A StatefulSet takes pods away from the top only: that
 * one's must go, with its data, before it can join anew, and those above it with it. Not where that data is lost already.
 */
function gapOf(members: readonly Located[], observed: EtcdObservation): number | undefined {
  const has = (ordinal: number) => members.some((member) => member.ordinal === ordinal);
  const absent = range(Math.max(0, ...members.map(({ ordinal }) => ordinal))).find(
    (ordinal) => !has(ordinal) && !isLost(observed, ordinal),
  );
  return absent !== undefined && observed.replicas > absent ? absent : undefined;
}

/** Whether the volume on which the member voted is there no more: there is none, or a new one. */
const isLost = ({ volumes, noted }: Pick<EtcdObservation, 'volumes' | 'noted'>, ordinal: number): boolean =>
  noted[ordinal] !== undefined && noted[ordinal] !== volumes[ordinal];

/**
 * What is lost for good when so many volumes are that the members left cannot agree on anything, in words; pure.
 * @param ready ordinals of members that answer: they have data, wherever it came from
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
  // Who has lost its volume comes back first: the others that stay could be too few.
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
  // While one voter is away, one more of them could cost the majority.
  const ill = voters.find((member) => !member.healthy);
  if (ill) return { waitFor: `etcd member ${ill.ordinal} must answer before another one joins` };

  const ordinal = range(peerURLs.length).find((candidate) => members.every((member) => member.ordinal !== candidate))!;
  const isNew = isLost(observed, ordinal);
  if (replicas > ordinal && !isNew) {
    // A pod of a member that has left: gone first, with its data, or it would come back as who it was.
    return { action: { type: 'scale', replicas: ordinal } };
  }
  if (volumes[ordinal] !== undefined && !isNew) return { action: { type: 'delete-volume', ordinal } };
  return { action: { type: 'add-learner', ordinal, peerURL: peerURLs[ordinal]!, volumes: noting(observed, voters) } };
}

/**
 * The volumes of members that vote. One that answers has its data on the volume that is there: without data it would not start (see
 * etcdConfig), so a person has brought it there.
 */
const noting = ({ volumes, noted }: EtcdObservation, voters: readonly Located[]): EtcdVolumes =>
  Object.fromEntries(
    voters.flatMap(({ ordinal, healthy }) => {
      const uid = (healthy ? volumes[ordinal] : undefined) ?? noted[ordinal];
      return uid === undefined ? [] : [[ordinal, uid]];
    }),
  );

/** By which a member that has forgotten what it agreed to leaves. */
function letGo(going: Located, members: readonly Located[]): Step {
  const step = planMemberRemoval(going, members, String(going.ordinal));
  if (!('action' in step)) return { ...step, waitFor: `etcd waits for ${step.waitFor}` };
  const { action } = step;
  return { action: action.type === 'remove-member' ? { ...action, ordinal: going.ordinal, lost: true } : action };
}

function shrink(observed: EtcdObservation, members: Located[], voters: Located[], surplus: Located[]): Step {
  const learner = surplus.find((member) => member.learner);
  if (learner) return remove(learner);
  // One that is dead goes first: with it still among those that vote, the loss of one more would stop the rest.
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
