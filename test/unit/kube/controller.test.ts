import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { queueMetrics, runController } from '../../../operator/kube/controller.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { Log } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';

function recordingLog() {
  const lines: string[] = [];
  const at = (level: string) => (_fields: object, message: string) => void lines.push(`${level}: ${message}`);
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  return { log, lines };
}

describe('runController', () => {
  it('never works on a key twice at once, and works again on a key added meanwhile', async () => {
    const queue = new WorkQueue();
    const running = new Map<string, number>();
    const runs = new Map<string, number>();
    let most = 0;
    const controller = runController({
      name: 'test',
      queue,
      concurrency: 3,
      async reconcile(key) {
        running.set(key, (running.get(key) ?? 0) + 1);
        expect(running.get(key)).toBe(1);
        most = Math.max(
          most,
          [...running.values()].reduce((sum, count) => sum + count, 0),
        );
        runs.set(key, (runs.get(key) ?? 0) + 1);
        await delay(5);
        running.set(key, running.get(key)! - 1);
      },
    });
    for (const key of ['n/a', 'n/b', 'n/c', 'n/d']) queue.add(key);
    await delay(1);
    queue.add('n/a');
    queue.add('n/a');
    const all = () => [...runs.values()].reduce((sum, count) => sum + count, 0);
    await expect.poll(() => [all(), queue.depth], { interval: 5 }).toEqual([5, 0]);
    await controller.stop();
    expect(Object.fromEntries(runs)).toEqual({ 'n/a': 2, 'n/b': 1, 'n/c': 1, 'n/d': 1 });
    expect(most).toBe(3);
  });

  it('retries with back-off after errors, without a log after conflicts, and after requeueAfterMs', async () => {
    const registry = new Registry();
    const { log, lines } = recordingLog();
    const queue = new WorkQueue({ baseDelayMs: 1, observer: queueMetrics(registry, 'test') });
    let run = 0;
    const finished = Promise.withResolvers<void>();
    const controller = runController({
      name: 'test',
      queue,
      log,
      metrics: registry,
      async reconcile() {
        run++;
        if (run === 1) throw new Error('boom');
        if (run === 2) throw new KubeApiError('PUT /x', 409, { reason: 'Conflict' });
        if (run === 3) return { requeueAfterMs: 1 };
        finished.resolve();
        return undefined;
      },
    });
    queue.add('n/a');
    await finished.promise;
    await controller.stop();
    expect(run).toBe(4);
    expect(lines).toEqual(['warn: reconcile failed', 'debug: conflict; trying again']);
    expect(queue.failures('n/a')).toBe(0);
    const text = await registry.render();
    for (const result of ['error', 'conflict', 'requeue', 'success']) {
      expect(text).toContain(`coppice_reconcile_total{controller="test",result="${result}"} 1`);
    }
    expect(text).toContain('coppice_queue_retries_total{controller="test"} 2');
  });

  it('aborts a reconcile that exceeds its timeout, and goes on', async () => {
    const { log, lines } = recordingLog();
    const queue = new WorkQueue({ baseDelayMs: 60_000 });
    const controller = runController({
      name: 'test',
      queue,
      log,
      timeoutMs: 10,
      reconcile: (_key, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    queue.add('n/a');
    await delay(50);
    expect(lines).toEqual(['warn: reconcile failed']);
    await controller.stop();
  });

  it('on stop waits for reconciles, aborts long ones, and starts none', async () => {
    const queue = new WorkQueue();
    const seen: string[] = [];
    const controller = runController({
      name: 'test',
      queue,
      concurrency: 2,
      async reconcile(key, signal) {
        seen.push(key);
        if (key === 'n/quick') {
          await delay(10);
          return;
        }
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        signal.throwIfAborted();
      },
    });
    for (const key of ['n/quick', 'n/slow', 'n/never']) queue.add(key);
    await delay(1);
    await controller.stop(30);
    expect(seen).toEqual(['n/quick', 'n/slow']);
  });

  it('yields to the event loop between keys whose reconcile awaits nothing', async () => {
    const queue = new WorkQueue();
    let runs = 0;
    const controller = runController({ name: 'test', queue, reconcile: async () => void runs++ });
    for (let i = 0; i < 1000; i++) queue.add(`n/${i}`);
    const turn = new Promise<number>((resolve) => setImmediate(() => resolve(runs)));
    expect(await turn).toBeLessThan(10);
    await controller.stop();
  });
});
