import { afterEach, describe, expect, it, vi } from 'vitest';
import { findCondition, isTrue } from '../../../operator/api/conditions.ts';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { Shoot, ShootStatus } from '../../../operator/api/shoot.ts';
import { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import { say } from '../../../operator/controllers/conditions.ts';
import { connectToShoot, inPodOfSeed } from '../../../operator/controllers/shoot/connect.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import type { RunningFacts } from '../../../operator/controllers/shoot/status/facts.ts';
import { runningStatus } from '../../../operator/controllers/shoot/status/running-status.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane, pkiOf } from '../shoot/values.ts';

const THEN = new Date('2026-11-22T00:00:00Z');
const NOW = new Date('2026-11-22T06:00:00Z');
const answers = { ok: true, message: 'it answers' };
const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
const inside = partOf<NonNullable<RunningFacts['inside']>>({
  nodes: [{ metadata: { name: 'n' }, status: ready }],
  pods: [{ metadata: { name: 'dns', labels: { 'k8s-app': 'kube-dns' } }, status: ready }],
  machines: [{ name: 'm', pool: 'workers', nodeName: 'n', phase: 'Running' }],
});

function shootThat(served: boolean, status?: ShootStatus): Shoot {
  const state = served ? 'Succeeded' : 'Processing';
  return buildShoot({
    metadata: { name: 'one', namespace: 'team', generation: 1 },
    spec: { provider: { type: 'local' } },
    status: { ...status, lastOperation: { type: 'Create', state } },
  });
}

const statusAs = (facts: Pick<RunningFacts, 'shoot' | 'usable' | 'inside'>, now: Date): ShootStatus =>
  runningStatus(
    {
      technicalID: 'shoot--team--one',
      seedName: 'local',
      version: '1.36.3',
      endpoint: 'https://127.0.0.1:6443',
      pools: [pool({ count: 1 })],
      operation: undefined,
      errors: [],
      observedGeneration: 1,
      draining: [],
      ...facts,
    },
    { healthy: say('ControlPlaneHealthy', true, 'AllReady', 'all'), desired: 1, ready: 1, resource: undefined },
    now,
  );

it.each([
  ['an API server that nobody has asked yet is told of as it was last', true, undefined, true],
  ['one that is silent is told of at once', true, { ok: false, message: 'it is silent' }, false],
  ['one that has never served is being started', false, undefined, false],
])('%s', (_, served, usable, available) => {
  const before = statusAs({ shoot: shootThat(served), usable: answers, inside }, THEN);
  const after = statusAs({ shoot: shootThat(served, before), usable, inside: undefined }, NOW);
  expect(isTrue(after.conditions, 'APIServerAvailable')).toBe(available);
  expect(isTrue(before.conditions, 'Ready')).toBe(true);
  if (!available) return;
  for (const type of ['Ready', 'APIServerAvailable', 'EveryNodeReady', 'SystemComponentsHealthy'])
    expect(findCondition(after.conditions, type)).toEqual(findCondition(before.conditions, type));
});

afterEach(() => void vi.useRealTimers());

it.each([
  [
    'that has served is said to be silent when it has not answered an operator that starts anew',
    true,
    [9, false, 10, true],
  ],
  ['that has yet to start is waited for', false, [9, false, 10, false]],
])('an API server %s', async (_, served, [before, said, after, saidLater]) => {
  const values = controlPlane();
  const state = newShootState();
  const around = { seed: { isElsewhere: false }, provider: {}, deps: { now: () => NOW } };
  const op = { values, state, pki: await pkiOf(values), shoot: shootThat(served), ...around };
  const over = new AbortController();
  const waits = Promise.withResolvers<void>();
  const wait = {
    started: (_: Operation, signal: AbortSignal) => {
      waits.resolve();
      return new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
    patience: { waits: { first: 1, longest: 1 }, usualMs: 1 },
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const opened = connectToShoot(op as unknown as Operation, over.signal, wait);
  await Promise.race([waits.promise, opened]);
  vi.advanceTimersByTime(Number(before) * 1000);
  expect(state.usable !== undefined).toBe(said);
  vi.advanceTimersByTime((Number(after) - Number(before)) * 1000);
  expect(state.usable?.ok === false).toBe(saidLater);
  over.abort();
  await expect(opened).rejects.toThrow();
  // No machine is repaired soon after: nobody knows for how long it was away.
  expect(state.awayAt).toEqual(served ? NOW : undefined);
});

describe('an API server that has served', () => {
  /** An operator that starts anew connects to it; by fake timers. @param pod resolves when its pod runs */
  async function connecting(ready: () => Promise<boolean>, pod: Promise<void> = Promise.resolve()) {
    const values = controlPlane();
    const state = newShootState();
    const around = { seed: { isElsewhere: false }, provider: {}, deps: { now: () => NOW } };
    const op = { values, state, pki: await pkiOf(values), shoot: shootThat(true), ...around };
    const asked = vi.spyOn(KubeClient.prototype, 'ready').mockImplementation(ready);
    const begun = Promise.withResolvers<void>();
    const started = () => {
      begun.resolve();
      return pod;
    };
    const over = new AbortController();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const wait = { started, patience: { waits: { first: 1000, longest: 1000 }, usualMs: 1000 } };
    const opened = connectToShoot(op as unknown as Operation, over.signal, wait);
    opened.catch(() => {});
    await begun.promise;
    const isSilent = () => state.usable?.ok === false;
    const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);
    const end = async () => {
      over.abort(new Error('enough'));
      await pass(1);
      await opened.catch(() => {});
      asked.mockRestore();
    };
    return { asked, isSilent, pass, end };
  }

  it('is reported silent ten seconds after an actual request, however late that was', async () => {
    const pod = Promise.withResolvers<void>();
    const { asked, isSilent, pass, end } = await connecting(async () => false, pod.promise);
    await pass(9);
    expect(asked).not.toHaveBeenCalled();
    pod.resolve();
    await pass(9);
    expect(asked).toHaveBeenCalled();
    expect(isSilent()).toBe(false);
    await pass(2);
    expect(isSilent()).toBe(true);
    await end();
  });

  it('is not reported silent once it has answered, although reading its objects takes long', async () => {
    const start = vi
      .spyOn(ClusterConnection.prototype, 'start')
      .mockImplementation(
        (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      );
    const { isSilent, pass, end } = await connecting(async () => true);
    await pass(60);
    expect(start).toHaveBeenCalled();
    expect(isSilent()).toBe(false);
    await end();
    start.mockRestore();
  });
});

describe('an API server whose pod does not run', () => {
  const waiting = (annotations: Record<string, string>) => ({
    metadata: { name: 'kube-apiserver-1', labels: { app: 'kube-apiserver' }, annotations },
    spec: { containers: [{ name: 'kube-apiserver' }] },
    status: {
      phase: 'Pending',
      containerStatuses: [{ name: 'kube-apiserver', state: { waiting: { reason: 'ImagePullBackOff' } } }],
    },
  });
  /** Whether it is still waited for, so many minutes after that began, or why not. */
  async function isWaitedFor(pod: object, minutes: number): Promise<boolean | string> {
    const pods = { synced: true, onAnyChange: () => () => {} };
    const op = partOf<Operation>({ values: controlPlane(), seed: { pods, podsOf: () => [pod] } });
    const over = new AbortController();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let why: string | undefined;
    const started = inPodOfSeed(4 * 60_000)
      .started(op, over.signal)
      .catch((error: Error) => {
        why ??= error.message;
      });
    await vi.advanceTimersByTimeAsync(minutes * 60_000);
    const isWaiting = why ?? true;
    over.abort();
    await started;
    return isWaiting;
  }

  it('has four minutes', async () => {
    expect(await isWaitedFor(waiting({}), 3)).toBe(true);
    expect(await isWaitedFor(waiting({}), 5)).toMatch(
      /^waited 240 s for a pod of kube-apiserver to run: .*ErrImagePull/,
    );
  });

  it('has as long as its image is built, up to half an hour', async () => {
    const told = { [ANNOTATIONS.imageProgress]: 'this machine is building Kubernetes 1.35.4, about 14 min left' };
    expect(await isWaitedFor(waiting(told), 30)).toBe(true);
  });

  it('is no longer awaited once its image cannot be built, and the reason is reported', async () => {
    const told = { [ANNOTATIONS.imageFailure]: 'this machine cannot make Kubernetes 1.35.4: no space left on device' };
    expect(await isWaitedFor(waiting(told), 5)).toMatch(/ImageCannotBeMade: .*no space left on device$/);
  });
});
