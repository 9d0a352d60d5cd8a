import { type Clock, systemClock } from './clock.ts';

export interface WorkQueueOptions {
  /** First delay after a failure; default 100 ms. Doubles with each further one. */
  baseDelayMs?: number;
  /** Longest delay; default 60 s. */
  maxDelayMs?: number;
  /** How many keys of one namespace are worked on at the same time, whoever else waits. Absent: as many as there are workers. */
  perNamespace?: number;
  clock?: Clock;
  /** In [0, 1); for jitter. */
  random?: () => number;
  observer?: WorkQueueObserver;
}

const BASE_DELAY_MS = 100;
const MAX_DELAY_MS = 60_000;

/** How long a key waits after so many failures before this one, in ms. @param random in [0, 1). */
export function backoffMs(failures: number, random: number, base = BASE_DELAY_MS, max = MAX_DELAY_MS): number {
  // 2 ** 1024 is Infinity, and min() takes care of that.
  const full = Math.min(max, base * 2 ** failures);
  // Never below half: the point of backing off stays, keys that failed together come back apart.
  return full * (0.5 + random / 2);
}

/** Told what happens; see queueMetrics in controller.ts. */
export interface WorkQueueObserver {
  added?(key: string): void;
  /** `waitedMs`: how long the key could have been taken; not how long work on it went on that it was added during. */
  taken?(key: string, waitedMs: number): void;
  done?(key: string, workedMs: number): void;
  retried?(key: string, failures: number, delayMs: number): void;
}

/** A key waits in the line, is being worked on, or is to be worked on again as soon as the present work is done. */
interface Entry {
  waitsSince: number;
  startedAt?: number;
  dirty: boolean;
}

interface Delayed<K> {
  key: K;
  due: number;
  /** Ties are served in the order they came. */
  order: number;
}

/**
 * Keys to reconcile. A key is in it at most once, is never worked on by two workers, and when added during its work is
 * worked on once more afterwards. Namespaces take turns, so that one with thousands of keys does not starve the others; with `perNamespace`
 * not even where each of them is worked on for an hour.
 */
export class WorkQueue<K extends string = string> {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #base: number;
  readonly #max: number;
  readonly #observer: WorkQueueObserver;
  readonly #entries = new Map<K, Entry>();
  readonly #lines = new Map<string, Fifo<K>>();
  /** Namespaces that have keys in line, in the order of their turns. */
  #turns = new Fifo<string>();
  /** Namespaces that have keys in line, and no turn before one of theirs is done. */
  readonly #full = new Set<string>();
  /** How many keys of a namespace are worked on. */
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

  /** Keys that wait to be taken. */
  get depth(): number {
    return this.#waiting;
  }

  /** Keys taken and not done. */
  get processing(): number {
    return this.#processing;
  }

  /** Keys that come back later by addAfter or retry. */
  get delayed(): number {
    return this.#delayed.size;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Puts the key in line now, whatever delay it may also be waiting for. */
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

  /** Puts the key in line after `ms`. Of several delays of one key the shortest counts. */
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
    // The old one stays in the heap and is skipped when its time comes.
    this.#delayed.set(key, delayed);
    push(this.#heap, delayed);
    this.#arm();
  }

  /** Puts a failed key in line again after its back-off, which it returns in ms. */
  retry(key: K): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const delay = backoffMs(failures, this.#random(), this.#base, this.#max);
    this.#observer.retried?.(key, failures + 1, delay);
    this.addAfter(key, delay);
    return delay;
  }

  /** The key is well: its next failure starts from the shortest delay. */
  forget(key: K): void {
    this.#failures.delete(key);
  }

  failures(key: K): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, as soon as there is one; undefined once the queue is shut down. Call done with it afterwards. */
  get(): Promise<K | undefined> {
    if (this.#stopped) return Promise.resolve(undefined);
    const key = this.#next();
    if (key !== undefined) return Promise.resolve(this.#take(key));
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** Work on the key has ended. */
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

  /** Takes no more keys and gives none out; resolves when the work that is under way has ended. */
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
    // Who is in line already comes first.
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

  /** Gives workers that wait what has room now. */
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
    // This one is about to be worked on.
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
    // Stale entries are dropped when they come up; the timer only has to be early enough.
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

/** A queue whose shift does not move what is behind, nor leave holes that the next one must step over. */
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
