import { findCondition } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership, MembershipState } from '../../api/membership.ts';
import { adviceFor, type LeftOver, whatOf, whoseOf } from '../../controllers/membership/left-overs.ts';
import { ageOf } from './age.ts';
import type { Cell } from './table.ts';
import { type Tone, textCell } from './text.ts';

export const HUBS_HEADER = ['HUB', 'TYPE', 'READY', 'JOINED', 'AGE', 'MESSAGE'];
export const MEMBERSHIPS_HEADER = ['NAMESPACE', 'NAME', 'HUB', 'STATE', 'SINCE', 'WAITING'];

type Row = (Cell | string)[];

/** One row per hub. @param now milliseconds since the epoch */
export function hubRows(hubs: readonly Hub[], now: number): Row[] {
  return hubs.map(({ metadata, spec, status }) => {
    const ready = findCondition(status?.conditions, 'Ready');
    const tone: Tone = ready?.status === 'True' ? 'good' : ready ? 'bad' : 'busy';
    const problem = [
      ready?.status === 'True' ? '' : (ready?.message ?? 'the operator has not processed it yet'),
      ...['Deleting', 'LeavesApproved'].map((type) => findCondition(status?.conditions, type)?.message ?? ''),
    ];
    return [
      metadata.name,
      spec.type,
      { text: ready?.status ?? 'Unknown', tone },
      `${status?.joined ?? 0}/${status?.memberships ?? 0}`,
      ageOf(metadata.creationTimestamp, now),
      textCell(problem.filter((text) => text !== '').join('; ')),
    ];
  });
}

const TONES: Record<MembershipState, Tone> = {
  Pending: 'busy',
  Joining: 'busy',
  Joined: 'good',
  Asleep: 'busy',
  Leaving: 'busy',
};

/** One row per membership. @param now milliseconds since the epoch */
export function membershipRows(memberships: readonly Membership[], now: number): Row[] {
  return memberships.map(({ metadata, spec, status }) => {
    const state = status?.state ?? (metadata.deletionTimestamp ? 'Leaving' : 'Pending');
    const isStuck = findCondition(status?.conditions, 'Ready')?.reason === 'CannotGoOn';
    return [
      metadata.namespace ?? '',
      spec.cluster,
      spec.hub,
      { text: state, tone: isStuck ? 'bad' : TONES[state] },
      ageOf(status?.since ?? metadata.creationTimestamp, now),
      textCell(status?.waiting ?? (status ? '' : 'the cluster is not ready for work yet')),
    ];
  });
}

export const LEFT_OVERS_HEADER = ['WHAT', 'WHERE', 'WHOSE', 'WHAT TO DO'];

/** One row per object that a membership left behind. @param garden see gardenIdentity */
export const leftOverRows = (leftOvers: readonly LeftOver[], garden: string): Row[] =>
  leftOvers.map((one) => [
    textCell(whatOf(one)),
    textCell(one.where),
    textCell(whoseOf(one)),
    textCell(adviceFor(one, garden)),
  ]);
