import { expect, it } from 'vitest';
import { CoppiceError, type ErrorCode } from '../../../operator/api/errors.ts';
import type { LastOperation } from '../../../operator/api/meta.ts';
import { hasServed, type Shoot } from '../../../operator/api/shoot.ts';
import type { ShootDependencies } from '../../../operator/controllers/shoot/dependencies.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { retryOf } from '../../../operator/controllers/shoot/retry.ts';
import { runFlow } from '../../../operator/controllers/shoot/run-flow.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { tellFailures } from '../../../operator/controllers/shoot/tell-failures.ts';
import { TaskDurations } from '../../../operator/flow/graph.ts';
import { silent } from '../../../operator/kube/log.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

type Retry = ReturnType<typeof retryOf>;

const failed = (code: ErrorCode | undefined, count = 1) => ({
  error: code ? new CoppiceError(code, 'no') : new Error('no'),
  count,
});
const done = (type: LastOperation['type']): LastOperation => ({
  type,
  state: 'Succeeded',
  progress: 100,
  description: '',
  lastUpdateTime: '',
});
const minutes = (count: number): Retry => ({ afterMs: count * 60_000 });

it.each<[string, ReturnType<typeof failed>[], Retry, Retry]>([
  ['an error of nobody knows what', [failed(undefined)], 'by-queue', 'by-queue'],
  ['something that is not ready yet', [failed('ERR_RETRYABLE_INFRA_DEPENDENCIES')], 'by-queue', 'by-queue'],
  ['throttling', [failed('ERR_INFRA_RATE_LIMITS_EXCEEDED')], minutes(5), minutes(5)],
  ['throttling that lasts', [failed('ERR_INFRA_RATE_LIMITS_EXCEEDED', 9)], minutes(60), minutes(60)],
  ['a dependency', [failed('ERR_INFRA_DEPENDENCIES', 2)], minutes(2), minutes(2)],
  ['a quota', [failed('ERR_INFRA_QUOTA_EXCEEDED')], minutes(5), minutes(5)],
  ['a quota that nobody raises', [failed('ERR_INFRA_QUOTA_EXCEEDED', 9)], minutes(30), minutes(30)],
  ['what needs most patience', [failed(undefined), failed('ERR_INFRA_QUOTA_EXCEEDED')], minutes(5), minutes(5)],
  ['credentials that are refused', [failed('ERR_INFRA_UNAUTHENTICATED', 2)], 'never', minutes(2)],
  ['a spec that cannot be', [failed(undefined), failed('ERR_CONFIGURATION_PROBLEM', 30)], 'never', minutes(30)],
])('%s: when it is tried again, and when in a deletion', (_, failures, kept, deleting) => {
  expect(retryOf(failures, false, 0.5)).toEqual(kept);
  expect(retryOf(failures, true, 0.5)).toEqual(deleting);
});

it('errors of tasks outside the running graph are forgotten', async () => {
  const state = newShootState();
  for (const taskID of ['machines', 'namespace'])
    state.errors.set(taskID, { taskID, description: 'no', codes: ['ERR_INFRA_UNAUTHORIZED'] });
  const op = partOf<Operation>({
    shoot: { metadata: { name: 'one' } },
    state,
    deps: { now: () => new Date(0), durations: new TaskDurations() },
    notice: () => {},
  });
  const tasks = [
    {
      id: 'namespace',
      title: 'Removing',
      run: async () => {
        throw new Error('later');
      },
    },
  ];
  await runFlow(op, { tasks, type: 'Delete', visible: true }, new AbortController().signal);
  expect([...state.errors.keys()]).toEqual(['namespace']);
});

it.each<[string, LastOperation | undefined, LastOperation['type']]>([
  ['one that was made is not said to be made again', done('Create'), 'Reconcile'],
  ['one that sleeps goes on with that', done('Hibernate'), 'Hibernate'],
  ['one that was never made is being made', undefined, 'Create'],
])('of a look that fails: %s', async (_, lastOperation, type) => {
  const written: Shoot[] = [];
  const deps = partOf<ShootDependencies>({
    garden: {
      apply: async (object: Shoot) => {
        written.push(object);
        return object;
      },
    },
    shoots: { get: () => undefined, absorb: () => {} },
    recordEvent: () => {},
    log: silent,
    now: () => new Date(0),
  });
  const shoot = buildShoot({
    metadata: { name: 'one', namespace: 'team' },
    spec: { provider: { type: 'test' }, hibernation: { enabled: lastOperation?.type === 'Hibernate' } },
    status: { lastOperation },
  });
  // It found all as it was last time.
  const state = { ...newShootState(), operation: lastOperation };
  const error = new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', 'the API server does not answer');
  await expect(tellFailures({ deps, shoot, state }, [{ taskID: 'one', error }])).rejects.toThrow(error);
  expect(written[0]?.status?.lastOperation).toMatchObject({ type, state: 'Error' });
  expect(hasServed(written[0]!)).toBe(hasServed(shoot));
});
