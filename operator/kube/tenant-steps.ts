import type { KubeObject } from '../api/meta.ts';
import { type Log, silent } from './log.ts';
import type { Registry } from './metrics.ts';

/**
 * Longest part of one turn of the event loop for steps of all tenants, ms: Leases, watches and health checks need the
 * rest.
 */
export const TURN_MS = 50;
/** Longest part of such a turn for one namespace while others wait, ms. */
const SHARE_MS = 10;
/** A stretch without a pause that is longer is logged, ms. */
const OVERRUN_MS = 2 * TURN_MS;
/** Time between two log lines about the same step of the same cluster, in ms. */
const LOG_AGAIN_MS = 60_000;
/** Number of clusters and steps whose last log time is kept. */
const MOST_REMEMBERED = 1_000;

/** Work whose size a tenant chooses: the cluster and the step, for metrics and logs. */
export interface TenantStep {
  /** Namespace of the cluster in the garden; '' for a hub, which has none. */
  readonly namespace: string;
  /** Name of the cluster, or URL of its API server. */
  readonly cluster: string;
  /** One of a few words: a label of metrics. */
  readonly step: string;
}

/** The step of the cluster that a garden object stands for. */
export const stepOwnerOf = ({ metadata }: Pick<KubeObject, 'metadata'>, step: string): TenantStep => ({
  namespace: metadata.namespace ?? '',
  cluster: metadata.name,
  step,
});

interface Job {
  /** Runs until `end` (ms of the clock) or the end of the work. @returns whether the work has ended */
  readonly goOn: (end: number) => boolean;
}

/**
 * Runs work over objects of tenants' clusters in time slices: a turn lasts 50 ms, namespaces share it, and the event
 * loop is free between turns. Stretches without a pause are measured; a long one is counted and logged with its
 * namespace.
 */
export class TenantSteps {
  readonly #now: () => number;
  /** By namespace, in the order of their turns. */
  readonly #waiting = new Map<string, Job[]>();
  readonly #logged = new Map<string, number>();
  #isArmed = false;
  #log: Log = silent;
  #seconds: ReturnType<typeof secondsIn> | undefined;
  #overruns: ReturnType<typeof overrunsIn> | undefined;

  /** @param now milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Sets the log and metrics for overruns. */
  reportTo(log: Log, metrics: Registry): void {
    this.#log = log;
    this.#seconds = secondsIn(metrics);
    this.#overruns = overrunsIn(metrics);
  }

  /**
   * Calls `handle` for each item, with pauses between items. Rejects with what `handle` throws, and with the signal's
   * reason.
   */
  each<T>(of: TenantStep, items: Iterable<T>, handle: (item: T) => void, signal?: AbortSignal): Promise<void> {
    return this.run(of, eachOf(items, handle), signal);
  }

  /**
   * Runs work that may pause at each `yield`. Resolves or rejects as the work does; rejects with the signal's reason on
   * abort.
   */
  run<T>(of: TenantStep, work: Generator<unknown, T>, signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const goOn = (end: number): boolean => {
        try {
          signal?.throwIfAborted();
          let next = this.measure(of, () => work.next());
          while (!next.done && this.#now() < end) next = this.measure(of, () => work.next());
          if (next.done) resolve(next.value);
          return next.done === true;
        } catch (error) {
          reject(error);
          // Runs the `finally` blocks of the work.
          if (signal?.aborted) work.return(undefined as T);
          return true;
        }
      };
      const line = this.#waiting.get(of.namespace);
      if (line) line.push({ goOn });
      else this.#waiting.set(of.namespace, [{ goOn }]);
      this.#arm();
    });
  }

  /** Runs work that cannot pause, and measures it. Returns or throws what the work does. */
  measure<T>(of: TenantStep, work: () => T): T {
    const began = this.#now();
    try {
      return work();
    } finally {
      this.#took(of, this.#now() - began);
    }
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      const end = this.#now() + TURN_MS;
      do this.#takeTurn(end);
      while (this.#waiting.size > 0 && this.#now() < end);
      if (this.#waiting.size > 0) this.#arm();
    });
  }

  #takeTurn(end: number): void {
    const [first] = this.#waiting;
    if (!first) return;
    const [namespace, line] = first;
    this.#waiting.delete(namespace);
    const share = Math.min(end, this.#now() + SHARE_MS);
    do if (line[0]?.goOn(share)) line.shift();
    while (line.length > 0 && this.#now() < share);
    if (line.length === 0) return;
    // Jobs that the work added meanwhile go behind it.
    this.#waiting.set(namespace, [...line, ...(this.#waiting.get(namespace) ?? [])]);
  }

  #took(of: TenantStep, ms: number): void {
    const { namespace, cluster, step } = of;
    this.#seconds?.observe({ step }, ms / 1000);
    if (ms <= OVERRUN_MS) return;
    this.#overruns?.inc({ step, namespace });
    const key = `${namespace}\n${cluster}\n${step}`;
    const last = this.#logged.get(key);
    if (last !== undefined && this.#now() - last < LOG_AGAIN_MS) return;
    if (this.#logged.size >= MOST_REMEMBERED) this.#logged.clear();
    this.#logged.set(key, this.#now());
    const fields = { namespace, cluster, step, ms: Math.round(ms) };
    this.#log.warn(
      fields,
      'work over objects of one cluster kept the operator from all else: look what is in that cluster',
    );
  }
}

const secondsIn = (metrics: Registry) =>
  metrics.histogram(
    'coppice_tenant_step_seconds',
    'Length of stretches without a pause in work over objects of clusters of tenants.',
    ['step'],
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  );

const overrunsIn = (metrics: Registry) =>
  metrics.counter(
    'coppice_tenant_step_overruns_total',
    'Stretches of more than 100 ms, by whose cluster they were for.',
    ['step', 'namespace'],
  );

function* eachOf<T>(items: Iterable<T>, handle: (item: T) => void): Generator<void, void> {
  for (const item of items) {
    handle(item);
    yield;
  }
}

/** The instance of this process. */
export const tenantSteps = new TenantSteps();
