import { describe, expect, it } from 'vitest';
import {
  judgeEmptying,
  judgeJoin,
  judgeLeave,
  judgeSleep,
  type LeaveView,
} from '../../../operator/controllers/membership/judge.ts';
import type { HubStep } from '../../../operator/hubs/contract.ts';

type SleepView = Parameters<typeof judgeSleep>[0];

const NOW = new Date('2026-11-22T12:00:00Z');
const ago = (minutes: number) => new Date(+NOW - minutes * 60_000);

describe('judgement of a join', () => {
  const steps: HubStep[] = [
    { type: 'IdentityReady' },
    { type: 'CredentialsReady' },
    { type: 'Registered', waiting: 'Cluster x is not Ready' },
    { type: 'CapacityVisible' },
  ];
  it.each<[string, readonly HubStep[], string[], number, string[], string | undefined]>([
    [
      'takes no step before the credentials are there',
      steps,
      ['access'],
      1,
      [],
      'credentials of access are to be made',
    ],
    [
      'takes each step when those before are done',
      steps,
      [],
      3,
      ['IdentityReady', 'CredentialsReady'],
      'Cluster x is not Ready',
    ],
    [
      'is over when nothing waits',
      steps.map(({ type }) => ({ type })),
      [],
      4,
      steps.map(({ type }) => type),
      undefined,
    ],
  ])('%s', (_, given, missing, acting, done, waiting) => {
    const verdict = judgeJoin(given, missing);
    expect(verdict.acting).toHaveLength(acting);
    expect(verdict.done).toEqual(done);
    expect(verdict.at?.waiting).toBe(waiting);
  });
});

describe('judgement of a leave', () => {
  const view = (more: Partial<LeaveView>): LeaveView => ({
    placements: [],
    effect: 'Moves',
    allowDelete: false,
    began: ago(1),
    timeoutMs: 10 * 60_000,
    force: false,
    others: [],
    ...more,
  });
  const work = ['ResourceBinding shop/web'];
  const other = (...reached: LeaveView['others'][number]['reached']) => [{ hub: 'Hub karmada', reached }];
  it.each<[string, Partial<LeaveView>, boolean, string, string]>([
    ['withdraws what nothing is placed on', {}, true, 'Drained', ''],
    ['withdraws where the hub cannot tell', { placements: undefined, effect: 'None' }, true, 'Drained', ''],
    [
      'waits while the hub moves work',
      { placements: work },
      false,
      'Draining',
      'the hub moves ResourceBinding shop/web',
    ],
    [
      'is blocked when the time is over',
      { placements: work, began: ago(11) },
      false,
      'DrainBlocked',
      'make room elsewhere, or force it',
    ],
    [
      'does not begin to drain where nobody has room',
      { placements: work, noRoom: 'the other 2 members have no room' },
      false,
      'NoRoom',
      'have no room: add nodes there, or force it',
    ],
    [
      'is blocked where nobody has had room in all that time',
      { placements: work, noRoom: 'the other 2 members have no room', began: ago(11) },
      false,
      'DrainBlocked',
      'have no room',
    ],
    [
      'is forced although nobody has room',
      { placements: work, noRoom: 'no room', force: true, began: ago(11) },
      true,
      'Forced',
      '',
    ],
    [
      'stops where work would be deleted',
      { placements: work, effect: 'Deletes' },
      false,
      'DrainNotPossible',
      'drain.allowDelete',
    ],
    [
      'also when the time is over',
      { placements: work, effect: 'Waits', began: ago(11) },
      false,
      'DrainNotPossible',
      'drain.allowDelete',
    ],
    [
      'deletes work where the Hub allows it',
      { placements: work, effect: 'Deletes', allowDelete: true },
      true,
      'Drained',
      '',
    ],
    [
      'does not take that leave for work that can be moved',
      { placements: work, allowDelete: true },
      false,
      'Draining',
      'the hub moves',
    ],
    ['is not forced before its time', { placements: work, force: true }, false, 'Draining', 'the hub moves'],
    ['is forced after it', { placements: work, force: true, began: ago(11) }, true, 'Forced', ''],
    [
      'waits while other clusters use its Services',
      { exported: ['ServiceImport web/web of the hub'] },
      false,
      'Exported',
      'other clusters still send traffic to it through ServiceImport web/web of the hub',
    ],
    [
      'is blocked when they do after its time',
      { exported: ['ServiceExport web/web'], began: ago(11) },
      false,
      'DrainBlocked',
      'ServiceExport web/web: remove it, or force it',
    ],
    [
      'waits for what no hub has placed, where it is to be kept',
      { ownWork: ['Pod shop/db-0', 'PersistentVolumeClaim shop/db'] },
      false,
      'OwnWork',
      'no hub placed Pod shop/db-0, PersistentVolumeClaim shop/db, which would be deleted with the cluster',
    ],
    [
      'is blocked where that is still there after its time',
      { ownWork: ['Pod shop/db-0'], began: ago(11) },
      false,
      'DrainBlocked',
      'remove it, or force it',
    ],
    [
      'is forced although they do',
      { exported: ['ServiceExport web/web'], force: true, began: ago(11) },
      true,
      'Forced',
      '',
    ],
    [
      'drains only when all hubs keep new work away',
      { others: other() },
      false,
      'Draining',
      'Hub karmada may still place new work on it',
    ],
    [
      'withdraws only when all hubs are drained',
      { others: other('Cordoned') },
      false,
      'Drained',
      'not drained yet: Hub karmada',
    ],
    ['withdraws with all others', { others: other('Cordoned', 'Drained') }, true, 'Drained', ''],
    [
      'does not wait for a hub that is gone, by force',
      { others: other(), force: true, began: ago(11) },
      true,
      'Drained',
      '',
    ],
  ])('%s', (_, more, withdraw, reason, waiting) => {
    const verdict = judgeLeave(view(more), NOW);
    expect(verdict).toMatchObject({ withdraw, reason });
    expect(verdict.waiting).toContain(waiting);
    if (waiting === '') expect(verdict.waiting).toBe('');
  });

  it('names three of many placements, and the next check', () => {
    const verdict = judgeLeave(view({ placements: ['A', 'B', 'C', 'D', 'E'] }), NOW);
    expect(verdict.waiting).toBe('the hub moves A, B, C and 2 more');
    expect(verdict.until).toEqual(new Date(+NOW + 9 * 60_000));
  });
});

describe('judgement of a cluster that is to sleep', () => {
  const ends = new Date(+NOW + 60_000);
  const view: SleepView = { placements: ['ResourceBinding shop/web'], effect: 'Moves', noRoom: undefined, ends };
  it.each<[string, Partial<SleepView>, string | undefined]>([
    ['stays awake while the hub moves its work', {}, 'the hub moves ResourceBinding shop/web'],
    ['sleeps when nothing is left', { placements: [] }, undefined],
    ['sleeps where the hub cannot tell', { placements: undefined }, undefined],
    ['sleeps with work that the hub does not move: it waits there', { effect: 'Waits' }, undefined],
    ['sleeps when the time is over', { ends: NOW }, undefined],
    [
      'stays awake as long as nobody has room, but not for ever',
      { noRoom: 'nobody has room' },
      'nobody has room: it sleeps at 2026-11-22T12:01:00Z all the same',
    ],
  ])('%s', (_, given, expected) => expect(judgeSleep({ ...view, ...given }, NOW)).toBe(expected));
});

describe('judgement of a cluster that its BurstPolicy empties', () => {
  const view = { placements: ['ResourceBinding shop/web'], effect: 'Moves', noRoom: undefined } as const;
  it.each<[string, Partial<Omit<SleepView, 'ends'>>, string]>([
    ['is drained', {}, 'Draining'],
    ['is empty when nothing is placed there', { placements: [] }, 'Drained'],
    ['is not drained before there is room elsewhere', { noRoom: 'nobody has room' }, 'NoRoom'],
    ['is not drained where the hub moves nothing', { effect: 'Deletes' }, 'DrainNotPossible'],
    ['nor where the hub cannot tell what is placed', { placements: undefined }, 'DrainNotPossible'],
  ])('%s', (_, given, reason) => {
    const verdict = judgeEmptying({ ...view, ...given });
    expect(verdict).toMatchObject({ reason, drained: reason === 'Drained' });
  });
});
