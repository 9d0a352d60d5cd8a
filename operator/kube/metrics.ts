import type { Counter as PromCounter, Gauge as PromGauge, Histogram as PromHistogram } from 'prom-client';
// Imports prom-client in parts: the whole also loads OpenTelemetry and garbage collection metrics (2 MiB, 300 ms of
// start-up), which are unused here.
import PromCounterClass from 'prom-client/lib/counter.js';
import PromGaugeClass from 'prom-client/lib/gauge.js';
import PromHistogramClass from 'prom-client/lib/histogram.js';
import PromRegistry from 'prom-client/lib/registry.js';

type Counter<Label extends string = never> = PromCounter<Label>;
type Gauge<Label extends string = never> = PromGauge<Label>;
type Histogram<Label extends string = never> = PromHistogram<Label>;

const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

const CLASSES = { counter: PromCounterClass, gauge: PromGaugeClass, histogram: PromHistogramClass };

/** Metrics of one process or one test; nothing is global. Two calls with one name return the same instrument. */
export class Registry {
  readonly #registry = new PromRegistry();
  readonly #collectors: (() => void)[] = [];
  readonly contentType = PromRegistry.PROMETHEUS_CONTENT_TYPE;

  /** A counter. Throws when the name has another type, and later on a label that is not among `labelNames`. */
  counter<Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []): Counter<Label> {
    return this.#instrument('counter', { name, help, labelNames }) as Counter<Label>;
  }

  /** A gauge. Throws as counter does. */
  gauge<Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []): Gauge<Label> {
    return this.#instrument('gauge', { name, help, labelNames }) as Gauge<Label>;
  }

  /** A histogram of seconds. Throws as counter does. @param buckets upper bounds */
  histogram<Label extends string = never>(
    name: string,
    help: string,
    labelNames: readonly Label[] = [],
    buckets: readonly number[] = SECONDS_BUCKETS,
  ): Histogram<Label> {
    return this.#instrument('histogram', { name, help, labelNames, buckets: [...buckets] }) as Histogram<Label>;
  }

  /**
   * Calls `run` before each rendering, to set gauges that are computed on demand. Returns a function that unsubscribes.
   */
  collect(run: () => void): () => void {
    this.#collectors.push(run);
    return () => {
      const at = this.#collectors.indexOf(run);
      if (at >= 0) this.#collectors.splice(at, 1);
    };
  }

  /** Text exposition format 0.0.4. */
  async render(): Promise<string> {
    for (const run of this.#collectors) run();
    return await this.#registry.metrics();
  }

  #instrument(
    type: keyof typeof CLASSES,
    options: { name: string; help: string; labelNames: readonly string[]; buckets?: number[] },
  ): object {
    const known = this.#registry.getSingleMetric(options.name);
    if (known instanceof CLASSES[type]) return known;
    if (known) throw new Error(`metric ${options.name} is a ${known.constructor.name.toLowerCase()} already`);
    return new CLASSES[type]({ ...options, registers: [this.#registry] });
  }
}

/** Memory, CPU time and age of this process, under the standard Prometheus names. */
export function processMetrics(registry: Registry): void {
  const memory = registry.gauge('process_resident_memory_bytes', 'Resident memory.');
  const heap = registry.gauge('nodejs_heap_used_bytes', 'JavaScript heap in use.');
  const cpu = registry.counter('process_cpu_seconds_total', 'User and system CPU time.');
  const started = registry.gauge('process_start_time_seconds', 'Start, in seconds since 1970.');
  started.set(Math.round(Date.now() / 1000 - process.uptime()));
  registry.collect(() => {
    const { rss, heapUsed } = process.memoryUsage();
    memory.set(rss);
    heap.set(heapUsed);
    const { user, system } = process.cpuUsage();
    cpu.reset();
    cpu.inc((user + system) / 1e6);
  });
}
