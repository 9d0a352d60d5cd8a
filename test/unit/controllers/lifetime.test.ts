import { describe, expect, it } from 'vitest';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { SleepOrder } from '../../../operator/capacity/sleep-order.ts';
import { hibernationProblems, sleepOf } from '../../../operator/controllers/workercluster/hibernation.ts';
import { lifetimeOf } from '../../../operator/controllers/workercluster/lifetime.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';

const cluster = (spec: object, status: object = {}, annotations: Record<string, string> = {}) =>
  buildWorkerCluster({
    metadata: { name: 'x', namespace: 'shop', creationTimestamp: '2026-11-20T12:00:00Z', annotations },
    spec: { cloudProvider: 'aws', controlPlaneNodes: 1, ...spec },
    status,
  });
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

  it('ignored by an earlier operator puts no running cluster to sleep, until it is written again', () => {
    // As operators of commit d22f180 tell of hosted clusters.
    const message = 'the spec was accepted; these fields are stored without effect yet: hibernation, maintenance';
    const conditions = [{ type: 'SpecAccepted', status: 'True', message }];
    const spec = { hibernation: { enabled: true, schedules } };
    const first = sleepOf(cluster(spec, { conditions }), at('21T10:00:00'));
    expect([first.asleep, first.next]).toEqual([false, at('21T20:00:00')]);
    const told = [
      {
        type: 'SpecAccepted',
        status: 'True',
        message: 'the spec was accepted; these fields are stored without effect yet: maintenance',
      },
    ];
    const status = { conditions: told, hibernation: first.status };
    expect(sleepOf(cluster(spec, status), at('21T19:00:00')).asleep).toBe(false);
    expect(sleepOf(cluster(spec, status), at('21T20:00:00')).asleep, 'its schedule').toBe(true);
    const off = sleepOf(cluster({ hibernation: { enabled: false } }, status), at('21T11:00:00')).status;
    expect(sleepOf(cluster(spec, { ...status, hibernation: off }), at('21T12:00:00')).asleep).toBe(true);
  });

  it('causes no write between its changes', () => {
    const first = sleepOf(cluster({ hibernation: { schedules } }), at('20T20:00:00')).status;
    const again = sleepOf(cluster({ hibernation: { schedules } }, { hibernation: first }), at('20T23:00:00')).status;
    expect(again).toEqual(first);
  });

  describe("with a policy's sleep order", () => {
    const order = (asleep: boolean, time = '2026-11-21T10:00:00Z') => ({
      asleep,
      by: 'BurstPolicy a/b',
      why: 'x',
      at: time,
    });
    /** Looks at these times, each with what it was told by then; the status of each is what the next has seen. */
    const looks = (hibernation: object | undefined, ...steps: [string, SleepOrder | 'none' | 'unknown', object?][]) => {
      let status: WorkerCluster['status'];
      return steps.map(([time, given, changed]) => {
        const spec = changed ?? hibernation;
        const sleep = sleepOf(cluster(spec ? { hibernation: spec } : {}, status), at(time), given);
        status = { hibernation: sleep.status } as never;
        return sleep.asleep;
      });
    };

    it.each<[string, object | undefined, [string, SleepOrder | 'none' | 'unknown', object?][], boolean[]]>([
      [
        'one that says nothing sleeps by it, and wakes when it is gone',
        undefined,
        [
          ['21T09:00:00', 'none'],
          ['21T10:01:00', order(true)],
          ['21T11:00:00', 'none'],
        ],
        [false, true, false],
      ],
      [
        'one that sleeps is awake by it, and sleeps again when it is gone',
        { enabled: true },
        [
          ['21T09:00:00', 'none'],
          ['21T10:01:00', order(false)],
          ['21T11:00:00', order(false)],
          ['21T12:00:00', 'none'],
        ],
        [true, false, false, true],
      ],
      [
        'its schedule says nothing meanwhile, and what it has said last holds afterwards',
        { schedules },
        [
          ['23T09:00:00', 'none'],
          ['23T10:01:00', order(false, '2026-11-23T10:00:00Z')],
          ['23T21:00:00', order(false, '2026-11-23T10:00:00Z')],
          ['23T22:00:00', 'none'],
        ],
        [false, false, false, true],
      ],
      [
        'who says afterwards that it is to sleep has the last word',
        { enabled: false },
        [
          ['21T09:00:00', 'none'],
          ['21T10:01:00', order(false)],
          ['21T11:00:00', order(false), { enabled: true }],
          ['21T12:00:00', order(false), { enabled: true }],
        ],
        [false, false, true, true],
      ],
      [
        'who has said so before has not',
        { enabled: false },
        [
          ['21T09:00:00', 'none'],
          ['21T09:30:00', 'none', { enabled: true }],
          ['21T10:01:00', order(false), { enabled: true }],
        ],
        [false, true, false],
      ],
      [
        'who wakes what a policy has put to sleep has it awake',
        undefined,
        [
          ['21T10:01:00', order(true)],
          ['21T11:00:00', order(true), { enabled: false }],
        ],
        [true, false],
      ],
      [
        'what nobody can read for a moment goes on',
        { enabled: true },
        [
          ['21T10:01:00', order(false)],
          ['21T11:00:00', 'unknown'],
          ['21T12:00:00', 'none'],
        ],
        [false, false, true],
      ],
    ])('%s', (_, hibernation, steps, asleep) => expect(looks(hibernation, ...steps)).toEqual(asleep));

    it('causes no write between its changes', () => {
      const spec = { hibernation: { enabled: true } };
      const first = sleepOf(cluster(spec), at('21T10:01:00'), order(false)).status;
      expect(first).toMatchObject({ asleep: false, enabled: true, order: { by: 'BurstPolicy a/b', otherwise: true } });
      expect(sleepOf(cluster(spec, { hibernation: first }), at('21T15:00:00'), order(false)).status).toEqual(first);
    });
  });

  it('rejects what it cannot parse', () => {
    const wrong = [{ start: '0 25 * * *', end: '0 6 * * 1-5', location: 'Atlantis' }];
    const problems = hibernationProblems(cluster({ hibernation: { schedules: wrong } }));
    expect(problems.map(({ field }) => field)).toEqual([
      'hibernation.schedules[0].start',
      'hibernation.schedules[0].location',
    ]);
  });
});
