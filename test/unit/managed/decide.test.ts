import { describe, expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../operator/api/errors.ts';
import { retryDelayMs } from '../../../operator/controllers/backoff.ts';
import {
  attempt,
  decide,
  type Failure,
  type Situation,
  type StepName,
} from '../../../operator/controllers/managed/decide.ts';

type ManagedStep = ReturnType<typeof decide>;

const NOW = new Date('2026-11-21T12:00:00Z');
const inMinutes = (minutes: number) => new Date(+NOW + minutes * 60_000);
const HOUR_MS = 3600_000;

/** Made, and all in order. */
const settled: Situation = {
  deleting: false,
  wish: 'w1',
  exists: true,
  applied: 'w1',
  reachable: true,
  credentials: 'c1',
  accepted: 'c1',
  forced: false,
  drift: { lookedAt: inMinutes(-60), everyMs: 6 * HOUR_MS, found: false, mend: false },
  access: { open: true, dueAt: inMinutes(5) },
  failures: new Map(),
};
const DUE = { of: 'web/u1', begun: false };
const fresh: Partial<Situation> = {
  exists: false,
  applied: undefined,
  reachable: false,
  accepted: undefined,
  drift: { ...settled.drift, lookedAt: undefined },
  access: { open: false, dueAt: undefined },
};

function failing(step: StepName, retryAt: Date | undefined, by: Partial<Situation> = {}): Partial<Situation> {
  const situation = { ...settled, ...by };
  const failure: Failure = { of: attempt(step, situation), count: 1, retryAt };
  return { ...by, failures: new Map([[step, failure]]) };
}

const wait = (until?: Date): ManagedStep => ({ do: 'wait', ...(until && { until }) });

describe('the next step of a managed cluster', () => {
  it.each<[string, Partial<Situation>, ManagedStep]>([
    ['all in order: access is looked at when it is due', {}, wait(inMinutes(5))],
    ['new: who the credentials are comes first', fresh, { do: 'check' }],
    ['new, credentials accepted', { ...fresh, accepted: 'c1' }, { do: 'apply' }],
    ['new, without credentials: the check says why', { ...fresh, credentials: undefined }, { do: 'check' }],
    ['new, but it cannot be had', { ...fresh, wish: undefined }, wait()],
    ['a changed spec', { wish: 'w2' }, { do: 'apply' }],
    ['a changed spec with changed credentials', { wish: 'w2', credentials: 'c2' }, { do: 'check' }],
    ['rotated credentials', { credentials: 'c2' }, { do: 'check' }],
    ['a spec that cannot be had leaves what there is, and its access, alone', { wish: undefined }, wait(inMinutes(5))],
    ['asked for although nothing changed', { forced: true }, { do: 'apply' }],
    ['named nodes go before anything else is changed', { wish: 'w2', removal: DUE }, { do: 'remove' }],
    [
      'while nobody knows whether they have gone, no size is applied',
      failing('remove', inMinutes(2), { wish: 'w2', removal: { ...DUE, begun: true } }),
      wait(inMinutes(2)),
    ],
    [
      'a cloud that does not let them go holds up nothing else',
      failing('remove', inMinutes(2), { wish: 'w2', removal: DUE }),
      { do: 'apply' },
    ],
    ['nodes that cannot go yet are looked at again soon', { removal: 'waits' }, wait(new Date(+NOW + 5_000))],
    ['no nodes are removed of what is taken away', { deleting: true, removal: DUE }, { do: 'destroy' }],
    ['no line yet', { access: { open: false, dueAt: undefined } }, { do: 'access' }],
    ['access due', { access: { open: true, dueAt: inMinutes(0) } }, { do: 'access' }],
    ['time to look for drift', { drift: { ...settled.drift, lookedAt: inMinutes(-361) } }, { do: 'look' }],
    ['never looked', { drift: { ...settled.drift, lookedAt: undefined, everyMs: 0 } }, { do: 'look' }],
    ['drift, to be reported', { drift: { ...settled.drift, found: true } }, wait(inMinutes(5))],
    ['drift, to be mended', { drift: { ...settled.drift, found: true, mend: true } }, { do: 'apply' }],
    ['deleting what was never made', { ...fresh, deleting: true }, { do: 'release' }],
    ['deleting', { deleting: true }, { do: 'destroy' }],
    ['deleting, credentials not yet checked', { deleting: true, accepted: undefined }, { do: 'check' }],
    ['deleting, although the spec cannot be had', { deleting: true, wish: undefined }, { do: 'destroy' }],
  ])('%s', (_what, changes, step) => {
    expect(decide({ ...settled, ...changes }, NOW)).toEqual(step);
  });

  it.each<[string, Partial<Situation>, ManagedStep]>([
    ['a failed run waits, access goes on', failing('apply', inMinutes(3), { wish: 'w2' }), wait(inMinutes(3))],
    ['a hopeless run waits for a change only', failing('apply', undefined, { wish: 'w2' }), wait(inMinutes(5))],
    ['its time has come', failing('apply', inMinutes(0), { wish: 'w2' }), { do: 'apply' }],
    [
      'another spec is worth a try at once',
      { ...failing('apply', undefined, { wish: 'w2' }), wish: 'w3' },
      { do: 'apply' },
    ],
    [
      'so are other credentials',
      { ...failing('apply', undefined, { wish: 'w2' }), credentials: 'c2', accepted: 'c2' },
      { do: 'apply' },
    ],
    [
      'refused credentials do not end access',
      { ...failing('check', undefined, { accepted: undefined }), access: { open: true, dueAt: inMinutes(0) } },
      { do: 'access' },
    ],
    ['a failed destroy waits', failing('destroy', inMinutes(2), { deleting: true }), wait(inMinutes(2))],
    ['a hopeless destroy waits for a change', failing('destroy', undefined, { deleting: true }), wait()],
    [
      'a failed look waits',
      failing('look', inMinutes(1), { drift: { ...settled.drift, lookedAt: inMinutes(-400) } }),
      wait(inMinutes(1)),
    ],
  ])('after a failure: %s', (_what, changes, step) => {
    expect(decide({ ...settled, ...changes }, NOW)).toEqual(step);
  });

  it('never creates or deletes with rejected credentials', () => {
    const flags = [true, false];
    for (const deleting of flags)
      for (const exists of flags)
        for (const forced of flags)
          for (const mend of flags)
            for (const wish of ['w1', 'w2', undefined])
              for (const accepted of [undefined, 'c0']) {
                const drift = { ...settled.drift, found: true, mend };
                const step = decide({ ...settled, deleting, exists, forced, wish, accepted, drift }, NOW);
                expect(['apply', 'destroy', 'look']).not.toContain(step.do);
              }
  });
});

describe('the backoff of a managed cluster', () => {
  it.each<[ErrorCode | undefined, number[]]>([
    [undefined, [10, 20, 40, 600]],
    ['ERR_RETRYABLE_INFRA_DEPENDENCIES', [10, 20, 40, 600]],
    ['ERR_INFRA_RESOURCES_DEPLETED', [60, 120, 240, 1800]],
    ['ERR_INFRA_RATE_LIMITS_EXCEEDED', [300, 600, 1200, 3600]],
    ['ERR_INFRA_QUOTA_EXCEEDED', [300, 600, 1200, 1800]],
    ['ERR_INFRA_DEPENDENCIES', [60, 120, 240, 1800]],
  ])('%s', (code, seconds) => {
    const failures = [1, 2, 3, 20];
    expect(failures.map((count) => retryDelayMs(code, count, 0.5)! / 1000)).toEqual(seconds);
  });

  it('ends where only a change helps, but never in a deletion', () => {
    // A webhook is mended in the cluster, of which nobody tells.
    const endsByItself = [
      'ERR_INFRA_RATE_LIMITS_EXCEEDED',
      'ERR_INFRA_QUOTA_EXCEEDED',
      'ERR_INFRA_DEPENDENCIES',
      'ERR_PROBLEMATIC_WEBHOOK',
    ];
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      const hopeless = !ERROR_CODES[code].retryable && !endsByItself.includes(code);
      expect([code, retryDelayMs(code, 1, 0) === undefined]).toEqual([code, hopeless]);
      const inDeletion = [1, 30].map((failures) => retryDelayMs(code, failures, 0.5, true));
      expect(inDeletion).toEqual(hopeless ? [60_000, 1_800_000] : [1, 30].map((n) => retryDelayMs(code, n, 0.5)));
    }
  });

  it('is announced only where a retry follows', () => {
    for (const [code, { advice }] of Object.entries(ERROR_CODES)) {
      const promised = /tried again/.test(advice);
      if (promised) expect([code, retryDelayMs(code as ErrorCode, 1, 0)]).not.toEqual([code, undefined]);
      expect(advice).not.toContain('"retry"');
    }
  });

  it('of a failed operation does not delay a deletion', () => {
    const refused = failing('check', undefined, { accepted: undefined });
    expect(decide({ ...settled, ...refused }, NOW)).toEqual(wait(inMinutes(5)));
    expect(decide({ ...settled, ...refused, deleting: true }, NOW)).toEqual({ do: 'check' });
  });

  it('is spread after simultaneous failures', () => {
    expect(retryDelayMs(undefined, 1, 0)).toBe(7500);
    expect(retryDelayMs(undefined, 1, 0.999)).toBeGreaterThan(12_000);
  });
});
