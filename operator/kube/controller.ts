import { setImmediate as nextTurn } from 'node:timers/promises';
import { KubeApiError } from './errors.ts';
import { type Log, silent } from './log.ts';
import type { Registry } from './metrics.ts';
import type { WorkQueue, WorkQueueObserver } from './workqueue.ts';

/** When to reconcile again. Absent: on the next change. */
export interface ReconcileResult {
  requeueAfterMs?: number | undefined;
}

export interface ControllerOptions<K extends string = string> {
  name: string;
  queue: WorkQueue<K>;
  /** Reconciles the object of this key. When it throws, the queue retries the key with back-off. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most reconcilers return nothing
  reconcile(key: K, signal: AbortSignal): Promise<ReconcileResult | void>;
  /**
   * Called with the error of a failed reconcile and the number of failures in a row. Not called for conflicts, nor for
   * errors while the process ends.
   */
  failed?(key: K, error: unknown, failures: number): Promise<void>;
  /** Keys that are reconciled at the same time; default 4. */
  concurrency?: number;
  /** A reconcile that takes longer is aborted by its signal and counts as failed; default 10 minutes. */
  timeoutMs?: number;
  log?: Log;
  metrics?: Registry;
}

export interface Controller {
  /** Hands out no more keys, aborts reconciles that run longer than `graceMs`, and resolves when all have ended. */
  stop(graceMs?: number): Promise<void>;
}

/** Starts the workers of one controller. */
export function runController<K extends string>(options: ControllerOptions<K>): Controller {
  const { name, queue, concurrency = 4, timeoutMs = 600_000, log = silent, metrics } = options;
  const stopping = new AbortController();
  const total = metrics?.counter('coppice_reconcile_total', 'Reconcile runs by controller and result.', [
    'controller',
    'result',
  ]);
  const seconds = metrics?.histogram('coppice_reconcile_seconds', 'Length of reconcile runs.', ['controller']);
  const depth = metrics?.gauge('coppice_queue_depth', 'Work queue: objects that wait for a worker.', ['controller']);
  const busy = metrics?.gauge('coppice_queue_processing', 'Work queue: objects that workers process.', ['controller']);
  const delayed = metrics?.gauge('coppice_queue_delayed', 'Work queue: objects that are queued again later.', [
    'controller',
  ]);
  const uncollect = metrics?.collect(() => {
    depth?.set({ controller: name }, queue.depth);
    busy?.set({ controller: name }, queue.processing);
    delayed?.set({ controller: name }, queue.delayed);
  });

  const runOne = async (key: K) => {
    const started = performance.now();
    const deadline = new AbortController();
    const timer = setTimeout(() => {
      deadline.abort(new Error(`reconcile of ${key} took longer than ${timeoutMs} ms`));
    }, timeoutMs);
    const signal = AbortSignal.any([stopping.signal, deadline.signal]);
    let result = 'success';
    try {
      const next = await options.reconcile(key, signal);
      queue.forget(key);
      if (next?.requeueAfterMs !== undefined) {
        result = 'requeue';
        queue.addAfter(key, next.requeueAfterMs);
      }
    } catch (error) {
      result = 'error';
      if (stopping.signal.aborted) {
        result = 'aborted';
      } else if (error instanceof KubeApiError && error.isConflict) {
        // Another client wrote between our read and our write. The newer object is on its way to the cache.
        result = 'conflict';
        queue.retry(key);
        log.debug({ controller: name, key, err: error }, 'conflict; trying again');
      } else {
        const retryInMs = Math.round(queue.retry(key));
        const failures = queue.failures(key);
        log.warn({ controller: name, key, err: error, failures, retryInMs }, 'reconcile failed');
        await options.failed?.(key, error, failures).catch((untold: unknown) => {
          log.warn({ controller: name, key, err: untold }, 'failure not told');
        });
      }
    } finally {
      clearTimeout(timer);
      queue.done(key);
      total?.inc({ controller: name, result });
      seconds?.observe({ controller: name }, (performance.now() - started) / 1000);
    }
  };

  const work = async () => {
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
      await runOne(key);
      // A reconcile that changes nothing awaits nothing. Without this pause, a thousand of them would block timers and
      // answers for ten seconds: health checks would fail and the leader's Lease would run out.
      await nextTurn();
    }
  };
  const workers = Array.from({ length: concurrency }, work);

  return {
    async stop(graceMs = 5000) {
      const ended = Promise.all([queue.shutdown(), ...workers]);
      const timer = setTimeout(() => stopping.abort(new Error(`${name} is stopping`)), graceMs);
      await ended;
      clearTimeout(timer);
      stopping.abort(new Error(`${name} has stopped`));
      uncollect?.();
    },
  };
}

/** An observer for WorkQueueOptions that counts adds and retries and measures waiting times. */
export function queueMetrics(registry: Registry, name: string): WorkQueueObserver {
  const adds = registry.counter('coppice_queue_adds_total', 'Work queue: objects that were added.', ['controller']);
  const retries = registry.counter(
    'coppice_queue_retries_total',
    'Work queue: objects that are tried again after a failure.',
    ['controller'],
  );
  const waited = registry.histogram(
    'coppice_queue_wait_seconds',
    'Work queue: how long an object waits for a worker.',
    ['controller'],
  );
  const labels = { controller: name };
  return {
    added: () => adds.inc(labels),
    retried: () => retries.inc(labels),
    taken: (_key, waitedMs) => waited.observe(labels, waitedMs / 1000),
  };
}
