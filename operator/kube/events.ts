import type { KubeClient } from './client.ts';
import { type Clock, systemClock } from './clock.ts';
import { isNotFound, KubeApiError } from './errors.ts';
import { type Log, silent } from './log.ts';
import { EVENTS, type KubeObject } from './resources.ts';

interface EventRecorderOptions {
  client: KubeClient;
  /** The component in the event's source, as `kubectl describe` shows it. */
  component: string;
  /** Identity of this replica. Absent: none. */
  host?: string;
  clock?: Clock;
  /** Wall clock for the timestamps in events. */
  now?: () => Date;
  log?: Log;
}

/** The object that an event is about. */
type Regarding = Pick<KubeObject, 'apiVersion' | 'kind'> & {
  metadata: { name?: string | undefined; namespace?: string | undefined; uid?: string | undefined };
};

/** Records an event of an object: see EventRecorder.record. */
export type RecordEvent = (object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string) => void;

interface Series {
  name: string;
  namespace: string;
  count: number;
  /** RFC 3339: time of the last occurrence, which is before the write. */
  lastTimestamp: string;
  /** Clock time of the last write. */
  writtenAt: number;
  /** Whether a repetition waits for its next write. */
  pending: boolean;
  /** Whether the create succeeded: only then does the API server have the event. */
  exists: boolean;
}

/** Shortest time between two writes of the same event. */
const REPEAT_MS = 60_000;
/** Rate limit for different events of one object: this many at once, then one per REFILL_MS. */
const BURST = 25;
const REFILL_MS = 60_000;
/** The API server deletes events after an hour. */
const REMEMBER_MS = 3_600_000;
const MAX_SERIES = 4096;
const MAX_MESSAGE = 1024;

/** Writes Kubernetes Events. Never throws and never waits: an event that cannot be written is logged and lost. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Ordered by last use. */
  readonly #series = new Map<string, Series>();
  readonly #budgets = new Map<string, { left: number; at: number }>();
  readonly #running = new Set<Promise<void>>();
  #serial = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silent;
  }

  /** A repetition of the same event of the same object raises its count, written at most once a minute. */
  record(object: Regarding, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message;
    const id = [idOf(object), type, reason, text].join('\n');
    const now = this.#clock.now();
    const known = this.#series.get(id);
    if (known && now - known.writtenAt < REMEMBER_MS) {
      known.count++;
      known.lastTimestamp = this.#now();
      this.#series.delete(id);
      this.#series.set(id, known);
      if (known.pending) return;
      known.pending = true;
      this.#clock.after(Math.max(0, known.writtenAt + REPEAT_MS - now), () =>
        this.#repeat(id, known, object, type, reason, text),
      );
      return;
    }
    if (!this.#spend(idOf(object), now)) {
      this.#log.debug({ object: idOf(object), reason, message: text }, 'event dropped: too many about this object');
      return;
    }
    const namespace = object.metadata.namespace || 'default';
    // Unique across restarts without randomness: time and a serial number. client-go uses the time alone.
    const name = `${(object.metadata.name ?? 'unknown').slice(0, 200)}.${now.toString(16)}${(this.#serial++).toString(16)}`;
    const lastTimestamp = this.#now();
    const series: Series = {
      name,
      namespace,
      count: 1,
      lastTimestamp,
      writtenAt: now,
      pending: false,
      exists: false,
    };
    this.#series.set(id, series);
    for (const oldest of this.#series.keys()) {
      if (this.#series.size <= MAX_SERIES) break;
      this.#series.delete(oldest);
    }
    this.#track(this.#create(series, object, type, reason, text));
  }

  /**
   * Resolves when the recorded events are written or lost. Does not wait for repetitions that wait for their minute.
   */
  async flush(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #repeat(id: string, series: Series, object: Regarding, type: string, reason: string, message: string): void {
    series.pending = false;
    series.writtenAt = this.#clock.now();
    if (this.#series.get(id) !== series) return;
    const write = async () => {
      if (!series.exists) return this.#create(series, object, type, reason, message);
      const patch = { count: series.count, lastTimestamp: series.lastTimestamp };
      try {
        await this.#options.client.mergePatch(EVENTS, series.name, series.namespace, patch);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        series.exists = false;
        await this.#create(series, object, type, reason, message);
      }
    };
    this.#track(write());
  }

  async #create(series: Series, object: Regarding, type: string, reason: string, message: string): Promise<void> {
    const { component, host } = this.#options;
    const { name, namespace, uid } = object.metadata;
    await this.#options.client.create({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: series.name, namespace: series.namespace },
      involvedObject: { apiVersion: object.apiVersion, kind: object.kind, name, namespace, uid },
      type,
      reason,
      message,
      count: series.count,
      firstTimestamp: series.lastTimestamp,
      lastTimestamp: series.lastTimestamp,
      source: { component, ...(host ? { host } : {}) },
      reportingComponent: component,
      reportingInstance: host ?? '',
    });
    series.exists = true;
  }

  #track(write: Promise<void>): void {
    const settled = write.catch((error: unknown) => {
      // A namespace that is being deleted takes no events: this failure is expected.
      const expected = error instanceof KubeApiError && (error.isNamespaceTerminating || error.isNotFound);
      if (!expected) this.#log.warn({ err: error }, 'event could not be written');
    });
    this.#running.add(settled);
    void settled.then(() => this.#running.delete(settled));
  }

  #spend(object: string, now: number): boolean {
    const budget = this.#budgets.get(object) ?? { left: BURST, at: now };
    const refilled = Math.floor((now - budget.at) / REFILL_MS);
    if (refilled > 0) {
      budget.left = Math.min(BURST, budget.left + refilled);
      budget.at += refilled * REFILL_MS;
    }
    this.#budgets.delete(object);
    this.#budgets.set(object, budget);
    for (const oldest of this.#budgets.keys()) {
      if (this.#budgets.size <= MAX_SERIES) break;
      this.#budgets.delete(oldest);
    }
    if (budget.left <= 0) return false;
    budget.left--;
    return true;
  }

  #now(): string {
    // metav1.Time has no fractions of a second.
    return (this.#options.now?.() ?? new Date()).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}

function idOf(object: Regarding): string {
  const { namespace, name, uid } = object.metadata;
  return `${object.kind}/${namespace ?? ''}/${name ?? ''}/${uid ?? ''}`;
}
