import { findCondition, rfc3339 } from '../../api/conditions.ts';
import type { Membership, MembershipState, MembershipStatus } from '../../api/membership.ts';
import { type ForeignEntry, JOIN_STEPS, type JoinStep } from '../../hubs/contract.ts';
import { type Said, say, withConditions } from '../conditions.ts';
import type { EmptyingVerdict, KeptAwake, LeaveVerdict } from './judge.ts';
import type { MembershipReceipt } from './receipt.ts';

/** Status of a membership. */
export interface Told {
  readonly state: MembershipState;
  /** '' if it waits for nothing. */
  readonly waiting: string;
  readonly conditions: readonly Said<'Membership'>[];
  readonly codes?: readonly string[];
  /** Its name in the hub, without a receipt. */
  readonly name?: string;
}

const LONGEST = 1024;

/** The status for the object. Pure. */
export function membershipStatusOf(
  { metadata, status: before }: Membership,
  { state, waiting, conditions, codes = [], name }: Told,
  receipt: MembershipReceipt | undefined,
  now: Date,
): MembershipStatus {
  const text = waiting.slice(0, LONGEST);
  const ready = say(
    'Ready',
    state === 'Joined' && text === '',
    codes.length > 0 ? 'CannotGoOn' : state,
    text || 'the cluster is in the hub and takes work',
    [...codes],
  );
  return {
    conditions: withConditions<'Membership'>(before?.conditions, [ready, ...conditions], now),
    state,
    since: before?.state === state && before.since ? before.since : rfc3339(now),
    ...(text && { waiting: text }),
    ...((receipt || name) && { memberName: name ?? receipt!.member.name }),
    ...(receipt &&
      receipt.credentials.length > 0 && {
        credentials: receipt.credentials.map(({ identity, side, account, expiresAt }) => ({
          name: identity,
          side,
          account: `${account.namespace}/${account.name}`,
          ...(expiresAt && { expiresAt }),
        })),
      }),
    observedGeneration: metadata.generation,
  };
}

/** Condition of a cluster with a foreign entry that stays foreign. */
export const OBSERVED = 'Observed';

/** Status for a foreign entry. Pure. */
export const toldOfOthers = ({ name, places: [place] }: ForeignEntry): Told => {
  const what = place ? `${place.resource.kind} ${place.namespace ? `${place.namespace}/` : ''}${place.name}` : name;
  const text = `${what} of the hub is this cluster, and somebody else made it: it is never drained, changed or deleted`;
  return { state: 'Joined', waiting: '', conditions: [say(OBSERVED, true, 'MadeByOthers', text)], name };
};

const SENTENCES: Record<JoinStep, string> = {
  IdentityReady: 'the identities of the hub and of the cluster are made, with their rights',
  CredentialsReady: 'the credentials are handed over',
  Registered: 'the cluster is known to the hub',
  CapacityVisible: 'the hub shows the capacity of the cluster',
};

/** A condition per step of a join. Pure. */
export const stepConditions = (
  done: readonly JoinStep[],
  at: { readonly type: JoinStep; readonly waiting: string } | undefined,
): Said<'Membership'>[] => [
  ...JOIN_STEPS.filter((type) => done.includes(type)).map((type) => say(type, true, 'Done', SENTENCES[type])),
  ...(at ? [say(at.type, false, 'Waiting', at.waiting)] : []),
];

/** Newly done steps, as text; '' if none. Pure. */
export function newlyDone({ status }: Membership, said: readonly Said<'Membership'>[]): string {
  const fresh = said.filter(
    ({ type, status: now }) => now === 'True' && findCondition(status?.conditions, type)?.status !== 'True',
  );
  return fresh.map(({ message }) => message).join('; ');
}

/**
 * Conditions about moving work off a cluster that stays. Pure. Before a drain begins there is no condition Drained, so
 * that room elsewhere is checked again: otherwise work would be ended without a place.
 */
export function parkedConditions(
  awake: KeptAwake | undefined,
  emptying: EmptyingVerdict | undefined,
): Said<'Membership'>[] {
  return [
    ...(awake?.drain ? [say('Drained', false, 'FallingAsleep', awake.why)] : []),
    ...(awake && !awake.drain ? [say('RoomElsewhere', false, 'NoRoom', awake.why)] : []),
    ...(emptying
      ? [
          emptying.reason === 'NoRoom'
            ? say('RoomElsewhere', emptying.drained, emptying.reason, emptying.message)
            : say('Drained', emptying.drained, emptying.reason, emptying.message),
        ]
      : []),
  ];
}

/** A condition per stage of a leave. Pure. @param left reason to wait during withdrawal */
export function leaveConditions(verdict: LeaveVerdict, left: string): Said<'Membership'>[] {
  const { drained, drain, withdraw, reason, waiting, noRoom, held, overdue } = verdict;
  const isOfDrain = !held && reason !== 'NoRoom' && reason !== 'Exported' && reason !== 'OwnWork';
  return [
    say('Cordoned', true, 'Cordoned', 'the hub places nothing new on the cluster'),
    ...(noRoom ? [say('RoomElsewhere', false, overdue ? 'DrainBlocked' : 'NoRoom', waiting)] : []),
    ...(drain || drained
      ? [
          say(
            'Drained',
            drained,
            isOfDrain ? reason : 'Drained',
            drained ? 'nothing of the hub counts on the cluster any more' : waiting,
          ),
        ]
      : []),
    ...(held === 'Exported' ? [say('ExportsWithdrawn', false, overdue ? 'DrainBlocked' : held, waiting)] : []),
    ...(held === 'OwnWork' ? [say('OwnWorkGone', false, overdue ? 'DrainBlocked' : held, waiting)] : []),
    ...(withdraw ? [say('Withdrawn', false, 'Withdrawing', left)] : []),
  ];
}
