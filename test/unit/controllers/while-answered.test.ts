import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ConnectionHealth } from '../../../operator/clusters/connection-health.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { runFlow } from '../../../operator/controllers/shoot/run-flow.ts';
import { newShootState, noteChange } from '../../../operator/controllers/shoot/state.ts';
import { whileAnswered } from '../../../operator/controllers/shoot/tasks/while-answered.ts';
import { type Task, TaskDurations } from '../../../operator/flow/graph.ts';
import { partOf } from '../../kit/builders/partial.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const forever = (signal: AbortSignal): Promise<void> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
const task = (id: string, after: string[], run: Task['run'] = async () => {}): Task => ({ id, title: id, after, run });

/** A shoot with an open connection whose server can be made to fall silent; told: when its status was written. */
function testbed() {
  const server = { answers: true };
  const health = new ConnectionHealth({ ask: async () => server.answers, told: () => {} });
  const began = Date.now();
  const told: number[] = [];
  const state = partOf<Operation['state']>({ ...newShootState(), connection: { health } });
  const op = partOf<Operation>({
    shoot: { metadata: { name: 'one', namespace: 'team' } },
    state,
    deps: { now: () => new Date(), durations: new TaskDurations() },
    notice: () => {
      state.told?.();
      told.push((Date.now() - began) / 1000);
    },
  });
  const run = (tasks: Task[], visible = false) =>
    runFlow(op, { tasks: whileAnswered(op, tasks), type: 'Reconcile', visible }, new AbortController().signal);
  return { server, health, op, state, told, run };
}

it('waits in a cluster end when its API server falls silent, and no others', async () => {
  const { server, health, run } = testbed();
  const seed = Promise.withResolvers<void>();
  const result = run([
    task('etcd', []),
    task('access', ['etcd']),
    task('nodes-ready', ['access'], forever),
    task('system-ready', ['nodes-ready']),
    task('etcd-members', ['etcd'], () => seed.promise),
  ]);
  await vi.advanceTimersByTimeAsync(1000);
  server.answers = false;
  health.doubt();
  await vi.advanceTimersByTimeAsync(15_000);
  seed.resolve();
  const { failures, succeeded, blocked } = await result;
  expect(failures).toEqual([
    {
      taskID: 'nodes-ready',
      error: expect.objectContaining({ message: 'the API server of the cluster does not answer', retryable: true }),
    },
  ]);
  expect(succeeded).toEqual(['etcd', 'access', 'etcd-members']);
  expect(blocked).toEqual(['system-ready']);
  health.stop();
});

it('changes during a wait are reported, but not of a wait that ends at once', async () => {
  const { run, state, told } = testbed();
  const waiting = Promise.withResolvers<void>();
  const slow = run([task('access', [], () => waiting.promise)]);
  await vi.advanceTimersByTimeAsync(500);
  state.changed?.();
  state.changed?.();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(told).toEqual([1.5]);
  // Those that come together, or soon after, are told together.
  state.changed?.();
  state.changed?.();
  await vi.advanceTimersByTimeAsync(1000);
  state.changed?.();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(told).toEqual([1.5, 21.5, 26.5]);
  waiting.resolve();
  await slow;
  expect(state.changed).toBeUndefined();

  const quick = run([task('access', [])]);
  state.changed?.();
  await quick;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(told).toHaveLength(3);
});

it.each<[string, number, boolean]>([
  ['before an operation began that waits', -1, false],
  ['while a look waits', 700, false],
  ['while a change is carried out, just after its progress was told', 5_100, true],
])('what befalls a pod %s is told within 15 s', async (_, atMs, visible) => {
  const { run, state, told } = testbed();
  const waiting = Promise.withResolvers<void>();
  if (atMs < 0) noteChange(state);
  const flow = run([task('namespace', []), task('api-server-serves', ['namespace'], () => waiting.promise)], visible);
  await vi.advanceTimersByTimeAsync(Math.max(0, atMs));
  const before = told.length;
  if (atMs >= 0) noteChange(state);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(told.slice(before).length).toBeGreaterThan(0);
  expect(told[before]! - Math.max(0, atMs) / 1000).toBeLessThanOrEqual(6);
  // The scheduler says it once: nothing else would have it told.
  waiting.resolve();
  await flow;
});

it('pending reports of a stopped operation are made by the next', async () => {
  const { run, state, told } = testbed();
  const first = Promise.withResolvers<void>();
  const stopped = run([task('api-server-serves', [], () => first.promise)]);
  await vi.advanceTimersByTimeAsync(100);
  noteChange(state);
  first.resolve();
  await stopped;
  expect(told).toEqual([]);
  const second = Promise.withResolvers<void>();
  const next = run([task('api-server-serves', [], () => second.promise)]);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(told).toEqual([1.1]);
  second.resolve();
  await next;
});

it('a task that only checks is reported once it has found work', async () => {
  const { run, state } = testbed();
  const [waits, looks, acts] = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const description = () => state.operation?.description;
  const flow = run(
    [
      task('access', [], () => waits!.promise),
      {
        ...task('roll', ['access'], async (_, begins) => {
          await looks!.promise;
          begins?.();
          await acts!.promise;
        }),
        looksFirst: true,
      },
    ],
    true,
  );
  const said: (string | undefined)[] = [];
  for (const step of [waits, looks, acts]) {
    await vi.advanceTimersByTimeAsync(100);
    said.push(description());
    step!.resolve();
  }
  await flow;
  expect(said).toEqual(['access', 'access', 'roll']);
});
