import { say } from '../conditions.ts';
import type { JoinOutcome } from './join.ts';
import type { MembershipReceipt } from './receipt.ts';
import { parkedConditions, stepConditions, type Told } from './status.ts';

const PARKED: Record<NonNullable<MembershipReceipt['parked']>, string> = {
  FallingAsleep: 'the cluster is to sleep, and the hub moves work away first',
  Asleep: 'the cluster sleeps: the hub places nothing on it until it wakes',
  Waking: 'the cluster wakes: it is opened to work when it has new credentials and a node that runs pods',
  Emptying: 'its BurstPolicy has the hub move all work away, and may give the cluster back then',
};
const WARM = 'the cluster waits warm, closed to work: its BurstPolicy opens it when work needs it';

/** Whether the cluster joined the hub and was opened. Pure. */
export const hasJoined = ({ verdict, receipt }: JoinOutcome): boolean =>
  verdict.at === undefined && receipt.opened === true;

/**
 * Whether the join is complete but stays closed until its BurstPolicy opens it. Pure. @param warm whether it should
 * wait
 */
export const waitsWarm = ({ verdict, receipt }: JoinOutcome, warm: boolean): boolean =>
  warm && verdict.at === undefined && receipt.opened !== true;

/**
 * Status of a join. Pure.
 * @param wasIn joined before: repeating a step does not undo that
 * @param warm its BurstPolicy keeps it closed
 * @param silent why its API server does not answer; '' if it does
 */
export function toldOfJoin(
  outcome: JoinOutcome,
  { wasIn, warm, silent }: { readonly wasIn: boolean; readonly warm: boolean; readonly silent: string },
): Told {
  const { verdict, receipt, awake, emptying } = outcome;
  const { parked } = receipt;
  const sleeps = parked === 'Asleep' || parked === 'Waking';
  const staysClosed = warm && receipt.opened !== true;
  return {
    state: sleeps ? 'Asleep' : hasJoined(outcome) || wasIn ? 'Joined' : 'Joining',
    waiting: verdict.at?.waiting ?? awake?.why ?? (parked ? PARKED[parked] : staysClosed ? WARM : silent),
    conditions: [
      ...stepConditions(verdict.done, verdict.at),
      ...parkedConditions(awake, emptying),
      ...(waitsWarm(outcome, warm) ? [say('Warm', true, 'WaitsWarm', WARM)] : []),
    ],
  };
}
