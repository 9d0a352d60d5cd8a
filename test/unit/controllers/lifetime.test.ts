import { describe, expect, it } from 'vitest';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { hibernationProblems, sleepOf } from '../../../operator/controllers/workercluster/hibernation.ts';
import { lifetimeOf } from '../../../operator/controllers/workercluster/lifetime.ts';

const cluster = (spec: object, status: object = {}, annotations: Record<string, string> = {}) =>
  ({
    metadata: { name: 'x', namespace: 'shop', creationTimestamp: '2026-11-20T12:00:00Z', annotations },
    spec: { cloudProvider: 'aws', controlPlaneNodes: 1, ...spec },
    status,
  }) as unknown as WorkerCluster;
const at = (text: string) => new Date(`2026-11-${text}Z`);

describe('ttl', () => {
  const warned = (when: string) => ({
    conditions: [{ type: 'Expiring', status: 'True', lastTransitionTime: at(when).toISOString() }],
  });
  const never = {};

  it.each<[string, string | undefined, object, string, boolean, string | undefined, string | undefined]>([
    ['absent', undefined, never, '21T00:00:00', false, undefined, undefined],
    ['far from over', '8h', never, '20T13:00:00', false, undefined, '20T19:12:00'],
    ['nearly over', '8h', never, '20T19:12:00', false, 'EndIsNear', '20T20:00:00'],
    ['nearly over, as was said', '8h', warned('20T19:12:00'), '20T19:59:59', false, 'EndIsNear', '20T20:00:00'],
    ['over', '8h', warned('20T19:12:00'), '20T20:00:00', true, 'Over', undefined],
    ['long: warned of an hour before', '240h', never, '30T11:00:00', false, 'EndIsNear', '30T12:00:00'],
    ['prolonged', '9h', never, '20T19:12:00', false, undefined, '20T20:06:00'],
    [
      'over by a clock that stepped forward: warned of first',
      '8h',
      never,
      '25T00:00:00',
      false,
      'EndIsNear',
      '25T00:24:00',
    ],
    ['warned of too late', '8h', warned('25T00:00:00'), '25T00:23:59', false, 'EndIsNear', '25T00:24:00'],
    ['warned of late, and long enough', '8h', warned('25T00:00:00'), '25T00:24:00', true, 'Over', undefined],
    [
      'warned of by a clock that was ahead',
      '8h',
      warned('25T00:00:00'),
      '20T20:00:00',
      false,
      'EndIsNear',
      '20T20:24:00',
    ],
    ['longer than dates are', '9999999999h', never, '20T20:00:00', false, undefined, undefined],
  ])('%s', (_, ttl, status, now, isOver, reason, next) => {
    const life = lifetimeOf(cluster({ ttl }, status), at(now));
    expect([life.isOver, life.warning?.reason, life.next]).toEqual([isOver, reason, next && at(next)]);
  });

  it.each([
    ['spec', { deletionProtection: true }, {}],
    ['annotation', {}, { 'multi-cluster.demo.io/deletion-protection': 'true' }],
  ])('does not get past deletion protection by %s, and says so', (_, spec, annotations) => {
    const life = lifetimeOf(cluster({ ttl: '8h', ...spec }, warned('20T19:12:00'), annotations), at('20T21:00:00'));
    expect(life).toMatchObject({ isOver: false, warning: { reason: 'Protected' }, next: undefined });
  });
});

describe('hibernation', () => {
  // Working hours of a week: asleep from 20:00, awake from 06:00.
  const schedules = [{ start: '0 20 * * *', end: '0 6 * * 1-5' }];

  it.each<[string, object | undefined, object | undefined, string, boolean, string | undefined]>([
    ['nothing is said', undefined, undefined, '20T13:00:00', false, undefined],
    ['said at once', { enabled: true }, undefined, '20T13:00:00', true, undefined],
    ['scheduled, before the first time', { schedules }, undefined, '20T13:00:00', false, '20T20:00:00'],
    ['from its time on', { schedules }, undefined, '20T20:00:00', true, '21T20:00:00'],
    [
      'over the weekend',
      { schedules },
      { asleep: true, since: '2026-11-20T20:00:00Z' },
      '22T13:00:00',
      true,
      '22T20:00:00',
    ],
    [
      'until its end',
      { schedules },
      { asleep: true, since: '2026-11-22T20:00:00Z' },
      '23T06:00:00',
      false,
      '23T20:00:00',
    ],
    [
      'woken by hand',
      { schedules, enabled: false },
      { asleep: true, since: '2026-11-20T20:00:00Z' },
      '21T10:00:00',
      false,
      '21T20:00:00',
    ],
    [
      'woken by hand, a minute later',
      { schedules, enabled: false },
      { asleep: false, since: '2026-11-21T10:00:00Z', enabled: false },
      '21T10:01:00',
      false,
      '21T20:00:00',
    ],
    [
      'woken by hand, until its schedule says otherwise',
      { schedules, enabled: false },
      { asleep: false, since: '2026-11-21T10:00:00Z', enabled: false },
      '21T20:00:00',
      true,
      '22T20:00:00',
    ],
    [
      'after days without an operator',
      { schedules },
      { asleep: false, since: '2026-11-10T06:00:00Z' },
      '21T00:00:00',
      true,
      '21T20:00:00',
    ],
  ])('%s', (_, hibernation, status, now, asleep, next) => {
    const sleep = sleepOf(cluster({ hibernation }, status && { hibernation: status }), at(now));
    expect([sleep.asleep, sleep.next]).toEqual([asleep, next && at(next)]);
  });

  it('says the same at every look in between: an idle fleet writes nothing', () => {
    const first = sleepOf(cluster({ hibernation: { schedules } }), at('20T20:00:00')).status;
    const again = sleepOf(cluster({ hibernation: { schedules } }, { hibernation: first }), at('20T23:00:00')).status;
    expect(again).toEqual(first);
  });

  it('refuses what it cannot understand', () => {
    const wrong = [{ start: '0 25 * * *', end: '0 6 * * 1-5', location: 'Atlantis' }];
    const problems = hibernationProblems(cluster({ hibernation: { schedules: wrong } }));
    expect(problems.map(({ field }) => field)).toEqual([
      'hibernation.schedules[0].start',
      'hibernation.schedules[0].location',
    ]);
  });
});
