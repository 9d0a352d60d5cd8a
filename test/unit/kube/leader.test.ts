import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { LeaderElector } from '../../../operator/kube/leader.ts';
import type { Lease } from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { FakeClock } from './fake-clock.ts';

type LeaderElectorOptions = ConstructorParameters<typeof LeaderElector>[0];

/** An API server that keeps one Lease, until it is told to refuse. */
function leaseServer() {
  let lease: Lease | undefined;
  let version = 0;
  const server = { refuses: undefined as Error | undefined };
  const write = async (next: Lease) => {
    if (server.refuses) throw server.refuses;
    lease = { ...next, metadata: { ...next.metadata, resourceVersion: String(++version) } };
    return structuredClone(lease);
  };
  const getOrUndefined = async () => {
    if (server.refuses) throw server.refuses;
    return structuredClone(lease);
  };
  return Object.assign(server, { client: partOf<KubeClient>({ getOrUndefined, create: write, update: write }) });
}

const candidate = (client: KubeClient, more: Partial<LeaderElectorOptions>) =>
  new LeaderElector({ client, namespace: 'n', name: 'l', identity: 'a', onStarted: () => {}, ...more });

afterEach(() => {
  vi.useRealTimers();
});

it('LeaderElector ends a process that lost the Lease before another can lead, even if its work hangs', async () => {
  const clock = new FakeClock();
  const server = leaseServer();
  let lostAt: number | undefined;
  let refusedAt = 0;
  const elector = candidate(server.client, {
    clock,
    onStarted: () => new Promise(() => {}),
    onLost: () => {
      lostAt = clock.now();
    },
  });
  const run = elector.run(new AbortController().signal);
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 250) {
      clock.advance(250);
      await turn();
    }
  };
  await expect.poll(() => elector.leading).toBe(true);
  await pass(20_000);
  expect(lostAt).toBeUndefined();
  server.refuses = new KubeApiError('PUT lease', 503, 'not now');
  refusedAt = clock.now();
  await pass(30_000);
  expect(lostAt! - refusedAt).toBeLessThan(15_000);
  await run;
});

it('LeaderElector reports that the Lease can be neither read nor written, until it can', async () => {
  const clock = new FakeClock();
  const server = leaseServer();
  server.refuses = new KubeApiError('GET lease', 403, { reason: 'Forbidden', message: 'no rule' });
  const stop = new AbortController();
  const elector = candidate(server.client, { clock });
  const run = elector.run(stop.signal);
  await expect.poll(() => elector.problem).toMatch(/Lease n\/l cannot be read or written: .*no rule/);
  server.refuses = undefined;
  const problem = () => {
    clock.advance(1000);
    return elector.problem;
  };
  await expect.poll(problem).toBeUndefined();
  stop.abort();
  await run;
});

it.each([1, -1])(
  'LeaderElector keeps leading and its delays when the wall clock steps by an hour (%i)',
  async (sign) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const server = leaseServer();
    const stop = new AbortController();
    const onLost = vi.fn();
    const times = { leaseDurationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 20 };
    const elector = candidate(server.client, { ...times, onLost });
    const run = elector.run(stop.signal);
    await expect.poll(() => elector.leading).toBe(true);
    const queue = new WorkQueue({ baseDelayMs: 50 });
    queue.addAfter('later', 60);
    queue.retry('failed');
    queue.addAfter('much-later', 3_000_000);
    vi.setSystemTime(Date.now() + sign * 3_600_000);
    expect([await queue.get(), await queue.get()].sort()).toEqual(['failed', 'later']);
    expect(queue.delayed).toBe(1);
    expect({ leading: elector.leading, lost: onLost.mock.calls.length }).toEqual({ leading: true, lost: 0 });
    for (const key of ['later', 'failed']) queue.done(key);
    await queue.shutdown();
    stop.abort();
    await run;
  },
);
