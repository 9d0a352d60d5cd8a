import { type Clock, systemClock } from './clock.ts';

export interface WorkQueueOptions {
  /** First delay after a failure; default 100 ms. Doubles with each further one. */
  baseDelayMs?: number;
  /** Longest delay; default 60 s. */
  maxDelayMs?: number;
  /** Most keys of one namespace that are worked on at once, even when workers are idle. Absent: no limit. */
  perNamespace?: number;
  clock?: Clock;
  /** In [0, 1); for jitter. */
  random?: () => number;
  observer?: WorkQueueObserver;
}

const BASE_DELAY_MS = 100;
const MAX_DELAY_MS = 60_000;

/** Delay of a key after this many earlier failures, ms. @param random in [0, 1) */
export function backoffMs(failures: number, random: number, base = BASE_DELAY_MS, max = MAX_DELAY_MS): number {
  // 2 ** 1024 is Infinity, and min() takes care of that.
  const full = Math.min(max, base * 2 ** failures);
  // At least half of the full delay, so that back-off stays effective while keys that failed together spread out.
  return full * (0.5 + random / 2);
}

/** Observes the queue; see queueMetrics in controller.ts. */
export interface WorkQueueObserver {
  added?(key: string): void;
  /** `waitedMs`: time in line; excludes time in which the key was added while being worked on. */
  taken?(key: string, waitedMs: number): void;
  done?(key: string, workedMs: number): void;
  retried?(key: string, failures: number, delayMs: number): void;
}

/** A key in line, in work, or to be worked on again after the present work. */
interface Entry {
  waitsSince: number;
  startedAt?: number;
  dirty: boolean;
}

interface Delayed<K> {
  key: K;
  due: number;
  /** Arrival order, which breaks ties. */
  order: number;
}

/**
 * Keys to reconcile. A key is in the queue at most once, is never worked on by two workers, and when added during its
 * work is worked on once more. Namespaces take turns, so that a namespace with thousands of keys does not starve
 * others; `perNamespace` holds that even when each key takes an hour.
 */
export class WorkQueue<K extends string = string> {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #base: number;
  readonly #max: number;
  readonly #observer: WorkQueueObserver;
  readonly #entries = new Map<K, Entry>();
  readonly #lines = new Map<string, Fifo<K>>();
  /** Namespaces with keys in line, in the order of their turns. */
  #turns = new Fifo<string>();
  /** Namespaces with keys in line that are at `perNamespace`. */
  readonly #full = new Set<string>();
  /** Keys in work, by namespace. */
  readonly #working = new Map<string, number>();
  readonly #perNamespace: number;
  readonly #failures = new Map<K, number>();
  readonly #delayed = new Map<K, Delayed<K>>();
  #heap: Delayed<K>[] = [];
  #cancelTimer: (() => void) | undefined;
  #timerDue = Number.POSITIVE_INFINITY;
  #order = 0;
  #waiting = 0;
  #takers: ((key: K | undefined) => void)[] = [];
  #processing = 0;
  #stopped = false;
  #idle: (() => void)[] = [];

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#base = options.baseDelayMs ?? BASE_DELAY_MS;
    this.#max = options.maxDelayMs ?? MAX_DELAY_MS;
    this.#perNamespace = options.perNamespace ?? Number.POSITIVE_INFINITY;
    this.#observer = options.observer ?? {};
  }

  /** Keys in line. */
  get depth(): number {
    return this.#waiting;
  }

  /** Keys in work. */
  get processing(): number {
    return this.#processing;
  }

  /** Keys with a pending addAfter or retry. */
  get delayed(): number {
    return this.#delayed.size;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Puts the key in line now; a pending delay is ignored. */
  add(key: K): void {
    if (this.#stopped) return;
    const entry = this.#entries.get(key);
    if (entry) {
      if (entry.startedAt !== undefined && !entry.dirty) {
        entry.dirty = true;
        this.#observer.added?.(key);
      }
      return;
    }
    this.#entries.set(key, { waitsSince: this.#clock.now(), dirty: false });
    this.#observer.added?.(key);
    this.#enqueue(key);
  }

  /** Puts the key in line after `ms`. The shortest of several delays of one key counts. */
  addAfter(key: K, ms: number): void {
    if (this.#stopped) return;
    if (!(ms > 0)) {
      this.add(key);
      return;
    }
    const due = this.#clock.now() + ms;
    const known = this.#delayed.get(key);
    if (known && known.due <= due) return;
    const delayed = { key, due, order: this.#order++ };
    // The old entry stays in the heap and is skipped when it comes up.
    this.#delayed.set(key, delayed);
    push(this.#heap, delayed);
    this.#arm();
  }

  /** Puts a failed key in line again after its back-off. Returns the back-off in ms. */
  retry(key: K): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const delay = backoffMs(failures, this.#random(), this.#base, this.#max);
    this.#observer.retried?.(key, failures + 1, delay);
    this.addAfter(key, delay);
    return delay;
  }

  /** Resets the back-off of the key. */
  forget(key: K): void {
    this.#failures.delete(key);
  }

  failures(key: K): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Resolves with the next key; undefined once the queue is shut down. Call `done` with the key afterwards. */
  get(): Promise<K | undefined> {
    if (this.#stopped) return Promise.resolve(undefined);
    const key = this.#next();
    if (key !== undefined) return Promise.resolve(this.#take(key));
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** Ends work on the key. */
  done(key: K): void {
    const entry = this.#entries.get(key);
    if (entry?.startedAt === undefined) return;
    this.#processing--;
    const namespace = namespaceOf(key);
    const left = (this.#working.get(namespace) ?? 1) - 1;
    if (left === 0) this.#working.delete(namespace);
    else this.#working.set(namespace, left);
    if (this.#full.delete(namespace)) this.#turns.push(namespace);
    this.#observer.done?.(key, this.#clock.now() - entry.startedAt);
    if (entry.dirty && !this.#stopped) {
      this.#entries.set(key, { waitsSince: this.#clock.now(), dirty: false });
      this.#enqueue(key);
    } else {
      this.#entries.delete(key);
    }
    this.#serve();
    if (this.#processing === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Hands out no more keys; resolves when work in progress has ended. */
  shutdown(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#heap = [];
    this.#delayed.clear();
    this.#lines.clear();
    this.#turns = new Fifo();
    this.#full.clear();
    this.#waiting = 0;
    for (const [key, entry] of this.#entries) if (entry.startedAt === undefined) this.#entries.delete(key);
    for (const resolve of this.#takers.splice(0)) resolve(undefined);
    if (this.#processing === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #enqueue(key: K): void {
    const namespace = namespaceOf(key);
    // Keys already in line go first.
    const isNext = this.#hasRoom(namespace) && !this.#lines.has(namespace);
    const taker = isNext ? this.#takers.shift() : undefined;
    if (taker) {
      taker(this.#take(key));
      return;
    }
    const line = this.#lines.get(namespace);
    if (line) {
      line.push(key);
    } else {
      const fresh = new Fifo<K>();
      fresh.push(key);
      this.#lines.set(namespace, fresh);
      if (this.#hasRoom(namespace)) this.#turns.push(namespace);
      else this.#full.add(namespace);
    }
    this.#waiting++;
  }

  #hasRoom(namespace: string): boolean {
    return (this.#working.get(namespace) ?? 0) < this.#perNamespace;
  }

  /** Hands keys to waiting workers. */
  #serve(): void {
    while (this.#takers.length > 0 && this.#turns.length > 0) this.#takers.shift()!(this.#take(this.#next()!));
  }

  #next(): K | undefined {
    const namespace = this.#turns.shift();
    if (namespace === undefined) return undefined;
    const line = this.#lines.get(namespace)!;
    const key = line.shift();
    this.#waiting--;
    if (line.length === 0) this.#lines.delete(namespace);
    // Counts the key that is about to be worked on.
    else if ((this.#working.get(namespace) ?? 0) + 1 < this.#perNamespace) this.#turns.push(namespace);
    else this.#full.add(namespace);
    return key;
  }

  #take(key: K): K {
    const entry = this.#entries.get(key)!;
    const now = this.#clock.now();
    entry.startedAt = now;
    this.#processing++;
    const namespace = namespaceOf(key);
    this.#working.set(namespace, (this.#working.get(namespace) ?? 0) + 1);
    this.#observer.taken?.(key, now - entry.waitsSince);
    return key;
  }

  #arm(): void {
    const first = this.#heap[0];
    const due = first ? first.due : Number.POSITIVE_INFINITY;
    // Stale entries are dropped when they come up; the timer must only be early enough.
    if (due >= this.#timerDue && this.#cancelTimer) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#timerDue = due;
    if (!first) return;
    this.#cancelTimer = this.#clock.after(due - this.#clock.now(), () => {
      this.#cancelTimer = undefined;
      this.#timerDue = Number.POSITIVE_INFINITY;
      this.#ripen();
    });
  }

  #ripen(): void {
    const now = this.#clock.now();
    for (let first = this.#heap[0]; first && first.due <= now; first = this.#heap[0]) {
      pop(this.#heap);
      if (this.#delayed.get(first.key) !== first) continue;
      this.#delayed.delete(first.key);
      this.add(first.key);
    }
    this.#arm();
  }
}

/** A queue with constant-time shift that frees its memory. */
class Fifo<V> {
  #items: V[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: V): void {
    this.#items.push(item);
  }

  shift(): V | undefined {
    const item = this.#items[this.#head];
    if (this.length > 0) this.#head++;
    if (this.#head > 1000 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}

function namespaceOf(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? '' : key.slice(0, slash);
}

function before<K>(a: Delayed<K>, b: Delayed<K>): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}

function push<K>(heap: Delayed<K>[], item: Delayed<K>): void {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!before(item, heap[parent]!)) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = item;
}

function pop<K>(heap: Delayed<K>[]): void {
  const item = heap.pop();
  if (heap.length === 0 || !item) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
    if (!before(heap[child]!, item)) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = item;
}
