import { findCondition, rfc3339 } from '../../api/conditions.ts';
import type { Membership, MembershipState, MembershipStatus } from '../../api/membership.ts';
import { type ForeignEntry, JOIN_STEPS, type JoinStep } from '../../hubs/contract.ts';
import { type Said, say, withConditions } from '../conditions.ts';
import type { EmptyingVerdict, KeptAwake, LeaveVerdict } from './judge.ts';
import type { MembershipReceipt } from './receipt.ts';

/** What there is to say of a membership. */
export interface Told {
  readonly state: MembershipState;
  /** '' where it waits for nothing. */
  readonly waiting: string;
  readonly conditions: readonly Said<'Membership'>[];
  readonly codes?: readonly string[];
  /** Its name in the hub, where there is no receipt of it. */
  readonly name?: string;
}

const LONGEST = 1024;

/** The status that says so. Pure. */
export function statusOf(
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

/** Condition of a cluster that somebody else has put into the hub, while it stays theirs. */
export const OBSERVED = 'Observed';

/** It is in the hub, and not by us. Pure. */
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

/** A condition for each step of a join. Pure. */
export const stepConditions = (
  done: readonly JoinStep[],
  at: { readonly type: JoinStep; readonly waiting: string } | undefined,
): Said<'Membership'>[] => [
  ...JOIN_STEPS.filter((type) => done.includes(type)).map((type) => say(type, true, 'Done', SENTENCES[type])),
  ...(at ? [say(at.type, false, 'Waiting', at.waiting)] : []),
];

/** Steps that are done now and were not before, in words; '' where there are none. Pure. */
export function newlyDone({ status }: Membership, said: readonly Said<'Membership'>[]): string {
  const fresh = said.filter(
    ({ type, status: now }) => now === 'True' && findCondition(status?.conditions, type)?.status !== 'True',
  );
  return fresh.map(({ message }) => message).join('; ');
}

/**
 * What a hub says of work that it is to move off a cluster which stays. Pure. A drain that has not begun has no condition Drained: by that the
 * room elsewhere is asked for again, and work would else be ended that nobody has room for.
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

/** A condition for each stage of a leave. Pure. @param left what it waits for while it is withdrawn */
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
