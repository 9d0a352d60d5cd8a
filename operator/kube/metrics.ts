type Labels = Record<string, string | number>;

export interface Counter {
  /** `by` must not be negative. */
  inc(labels?: Labels, by?: number): void;
  get(labels?: Labels): number;
}

export interface Gauge {
  set(value: number, labels?: Labels): void;
  add(by: number, labels?: Labels): void;
  get(labels?: Labels): number;
  /** Forgets one series, for things that are gone. */
  remove(labels?: Labels): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

export const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

interface Family {
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  instrument: Counter | Gauge | Histogram;
  write(lines: string[]): void;
}

/** Metrics in Prometheus' text format. Asking twice for one name gives the same instrument. */
export class Registry {
  readonly #families = new Map<string, Family>();
  readonly #collectors: (() => void)[] = [];

  counter(name: string, help: string): Counter {
    return this.#family(name, help, 'counter', () => {
      const values = new Map<string, number>();
      return {
        instrument: {
          inc(labels, by = 1) {
            const series = name + labelText(labels);
            values.set(series, (values.get(series) ?? 0) + by);
          },
          get: (labels) => values.get(name + labelText(labels)) ?? 0,
        } satisfies Counter,
        write: (lines) => writeValues(lines, values),
      };
    }) as Counter;
  }

  gauge(name: string, help: string): Gauge {
    return this.#family(name, help, 'gauge', () => {
      const values = new Map<string, number>();
      return {
        instrument: {
          set: (value, labels) => void values.set(name + labelText(labels), value),
          add(by, labels) {
            const series = name + labelText(labels);
            values.set(series, (values.get(series) ?? 0) + by);
          },
          get: (labels) => values.get(name + labelText(labels)) ?? 0,
          remove: (labels) => void values.delete(name + labelText(labels)),
        } satisfies Gauge,
        write: (lines) => writeValues(lines, values),
      };
    }) as Gauge;
  }

  histogram(name: string, help: string, buckets: readonly number[] = SECONDS_BUCKETS): Histogram {
    return this.#family(name, help, 'histogram', () => {
      const series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();
      return {
        instrument: {
          observe(value, labels = {}) {
            const id = labelText(labels);
            let found = series.get(id);
            if (!found) {
              found = { labels, counts: buckets.map(() => 0), sum: 0, count: 0 };
              series.set(id, found);
            }
            const bucket = buckets.findIndex((bound) => value <= bound);
            if (bucket >= 0) found.counts[bucket]!++;
            found.sum += value;
            found.count++;
          },
        } satisfies Histogram,
        write(lines) {
          for (const [id, { labels, counts, sum, count }] of series) {
            let below = 0;
            for (const [index, bound] of buckets.entries()) {
              below += counts[index]!;
              lines.push(`${name}_bucket${labelText({ ...labels, le: bound })} ${below}`);
            }
            lines.push(`${name}_bucket${labelText({ ...labels, le: '+Inf' })} ${count}`);
            lines.push(`${name}_sum${id} ${sum}`, `${name}_count${id} ${count}`);
          }
        },
      };
    }) as Histogram;
  }

  /** Called before each rendering, to set gauges that are read rather than kept. Returns how to take it away. */
  collect(run: () => void): () => void {
    this.#collectors.push(run);
    return () => {
      const at = this.#collectors.indexOf(run);
      if (at >= 0) this.#collectors.splice(at, 1);
    };
  }

  /** Text exposition format 0.0.4. */
  render(): string {
    for (const run of this.#collectors) run();
    const lines: string[] = [];
    for (const [name, family] of this.#families) {
      lines.push(`# HELP ${name} ${family.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`);
      lines.push(`# TYPE ${name} ${family.type}`);
      family.write(lines);
    }
    return lines.join('\n') + '\n';
  }

  #family(
    name: string,
    help: string,
    type: Family['type'],
    make: () => Pick<Family, 'instrument' | 'write'>,
  ): Family['instrument'] {
    let family = this.#families.get(name);
    if (!family) {
      family = { help, type, ...make() };
      this.#families.set(name, family);
    } else if (family.type !== type) {
      throw new Error(`metric ${name} is a ${family.type} already`);
    }
    return family.instrument;
  }
}

/** Memory, CPU time, event loop delay and age of this process, under the names that every Prometheus client uses. */
export function processMetrics(registry: Registry): void {
  const memory = registry.gauge('process_resident_memory_bytes', 'Resident memory.');
  const heap = registry.gauge('nodejs_heap_used_bytes', 'JavaScript heap in use.');
  const cpu = registry.gauge('process_cpu_seconds_total', 'User and system CPU time.');
  const started = registry.gauge('process_start_time_seconds', 'Start, in seconds since 1970.');
  started.set(Math.round(Date.now() / 1000 - process.uptime()));
  registry.collect(() => {
    const { rss, heapUsed } = process.memoryUsage();
    memory.set(rss);
    heap.set(heapUsed);
    const { user, system } = process.cpuUsage();
    cpu.set((user + system) / 1e6);
  });
}

function labelText(labels: Labels | undefined): string {
  if (!labels) return '';
  const parts: string[] = [];
  for (const name in labels) {
    const value = String(labels[name]).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
    parts.push(`${name}="${value}"`);
  }
  return parts.length > 0 ? `{${parts.join(',')}}` : '';
}

function writeValues(lines: string[], values: Map<string, number>): void {
  for (const [series, value] of values) lines.push(`${series} ${value}`);
}
