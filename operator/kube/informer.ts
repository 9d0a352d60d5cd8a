import type { KubeClient } from './client.ts';
import { AnswerTooLargeError, inWords } from './http/answer-limits.ts';
import type { ObjectBudget } from './http/byte-budget.ts';
import { type Log, silent } from './log.ts';
import { reflect } from './reflector.ts';
import type { ListOptions } from './requests/list-pages.ts';
import { compareResourceVersions, type KubeObject, keyOf, type Resource } from './resources.ts';
import { matchesSelector } from './selector.ts';
import { type ChangeEvent, type Indexes, Store } from './store.ts';
import { type TenantStep, tenantSteps } from './tenant-steps.ts';

export type { ChangeEvent } from './store.ts';

interface InformerOptions<T extends KubeObject> extends ListOptions {
  /**
   * Shrinks objects before they are cached; may change and return its argument. managedFields are passed to it and are
   * not cached.
   */
  transform?: (object: T) => T;
  /** Index functions by name; each returns the values under which an object is found. */
  indexes?: Indexes<T>;
  /** Memory budget shared with other informers. Absent: unlimited. Exceeding the budget is an AnswerTooLargeError. */
  budget?: ObjectBudget;
  log?: Log;
  /** Longest back-off between tries to reach the server; default 10 s. */
  maxDelayMs?: number;
  /** Cluster for which the time to process a list is measured. Absent: our own. */
  owner?: Pick<TenantStep, 'namespace' | 'cluster'>;
  /** Called with the error each time the watch fails, before the retry. */
  failed?: (error: unknown) => void;
}

interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Awaited state for the error, such as "shoot garden/a to be Ready". A function is called on timeout. */
  what: string | (() => string);
}

/** The awaited state was not reached in time. */
export class WaitTimeoutError extends Error {
  override readonly name = 'WaitTimeoutError';
}

type Waiter = () => void;

/** Annotation in which `kubectl apply` stores the applied manifest. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * A cache of one kind that follows the server. Objects in it are shared: do not change them. Handlers are called in the
 * order of changes and must be short, such as adding a key to a queue.
 */
export class Informer<T extends KubeObject = KubeObject> {
  readonly resource: Resource;
  readonly #client: KubeClient;
  readonly #options: InformerOptions<T>;
  readonly #log: Log;
  readonly #store: Store<T>;
  readonly #handlers = new Set<(event: ChangeEvent<T>) => void>();
  readonly #waiters = new Set<Waiter>();
  #wakePending = false;
  #stopping: AbortController | undefined;
  #running: Promise<void> | undefined;
  #resourceVersion: string | undefined;
  #lastError: unknown;
  #lastHeardAt: number | undefined;
  /** Objects that the budget counts and that are on their way to the store. */
  #coming: T[] = [];
  /** Whether the budget counts the objects in the store; false after stop. */
  #isCounted = true;

  constructor(client: KubeClient, resource: Resource, options: InformerOptions<T> = {}) {
    this.#client = client;
    this.resource = resource;
    this.#options = options;
    this.#log = options.log ?? silent;
    this.#store = new Store(options.indexes);
  }

  /** Whether the cache has been complete at least once. */
  get synced(): boolean {
    return this.#resourceVersion !== undefined;
  }

  /** The newest resource version seen. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion;
  }

  /** Error of the watch at present. undefined: the watch works. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /**
   * When the server last sent anything on the watch (a bookmark comes about once a minute), in ms of performance.now().
   * undefined: never.
   */
  get lastHeardAt(): number | undefined {
    return this.#lastHeardAt;
  }

  get size(): number {
    return this.#store.size;
  }

  /** Starts the watch; a second call has no effect. */
  start(): void {
    if (this.#running) return;
    const stopping = new AbortController();
    this.#stopping = stopping;
    const { namespace, labelSelector, fieldSelector, maxDelayMs } = this.#options;
    const options = { namespace, labelSelector, fieldSelector, log: this.#log, ...(maxDelayMs ? { maxDelayMs } : {}) };
    const target = {
      keep: (object: T) => this.#keep(object),
      replace: (objects: T[], version: string) => {
        this.#heard();
        const { owner } = this.#options;
        if (!owner) return this.#replace(objects, version);
        const step = { ...owner, step: `list ${this.resource.plural}` };
        return tenantSteps.measure(step, () => this.#replace(objects, version));
      },
      event: (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T) => {
        this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion;
        const event = type === 'DELETED' ? this.#remove(this.#trim(object)) : this.#put(object);
        this.#forgetComing();
        this.#tell(event);
      },
      failed: (error: unknown) => {
        this.#lastError = error;
        this.#forgetComing();
        this.#options.failed?.(error);
        this.#wake();
      },
      heard: () => this.#heard(),
    };
    this.#running = reflect<T>(this.#client, this.resource, options, target, stopping.signal);
  }

  /** Ends the watch. The cache stays readable and becomes stale; pending waits fail. */
  async stop(): Promise<void> {
    this.#stopping?.abort(new Error(`the informer of ${this.resource.plural} has stopped`));
    for (const waiter of this.#waiters) waiter();
    await this.#running;
    this.#running = undefined;
    // The cache stays readable for a short time only: release its budget now.
    if (this.#isCounted) this.#settle([], this.#store.list());
    this.#isCounted = false;
  }

  /**
   * Resolves when the cache is complete; rejects when the signal aborts, the informer is stopped, or the server's answer is too large.
   */
  whenSynced(signal?: AbortSignal): Promise<void> {
    const look = () => {
      if (!this.synced && this.#lastError instanceof AnswerTooLargeError) throw this.#lastError;
      return this.synced || undefined;
    };
    return waitUntil([this], look, signal).then(() => {});
  }

  /** Looks an object up by `namespace/name`, or `name` for a cluster-scoped kind. */
  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): T[] {
    return this.#store.list();
  }

  byIndex(name: string, value: string): T[] {
    return this.#store.byIndex(name, value);
  }

  indexValues(name: string): string[] {
    return this.#store.indexValues(name);
  }

  /**
   * Calls the handler for every object in the cache (as added) and for every later change. Returns a function that
   * unsubscribes.
   */
  onChange(handler: (event: ChangeEvent<T>) => void): () => void {
    for (const object of this.#store.list()) this.#call(handler, { type: 'added', object });
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /**
   * Stores the answer to our own write before the watch delivers it, so that the next read of the cache sees it.
   * Ignored when the watch has passed that version, so that a deleted object does not come back.
   */
  absorb(object: T): void {
    const version = object.metadata.resourceVersion;
    if (!this.synced || compareResourceVersions(version, this.#resourceVersion) <= 0) return;
    // Answer to the write that removed the last finalizer: the object is gone.
    if (object.metadata.deletionTimestamp && !object.metadata.finalizers?.length) return;
    const { namespace, labelSelector, fieldSelector } = this.#options;
    if (namespace && namespace !== object.metadata.namespace) return;
    if (!this.#store.get(keyOf(object))) {
      // Only the server can evaluate field selectors.
      if (fieldSelector) return;
      if (labelSelector && !matchesSelector(labelSelector, object.metadata.labels)) return;
    }
    this.#tell(this.#put(this.#trim(structuredClone(object))));
  }

  /** See waitFor below, for this informer alone. */
  waitFor<R>(predicate: () => R | undefined | false, options: WaitOptions): Promise<R> {
    return waitFor([this], predicate, options);
  }

  /** Calls `run` after changes (changes in one tick count once) and when the informer stops. */
  onAnyChange(run: () => void): () => void {
    this.#waiters.add(run);
    return () => this.#waiters.delete(run);
  }

  get stopped(): AbortSignal | undefined {
    return this.#stopping?.signal;
  }

  #replace(objects: T[], version: string): void {
    const restored = compareResourceVersions(version, this.#resourceVersion) < 0;
    const before = this.#isCounted ? this.#store.list() : [];
    this.#isCounted = true;
    const events = this.#store.replace(objects, version, restored);
    this.#settle(this.#store.list(), before);
    this.#resourceVersion = version;
    for (const event of events) this.#emit(event);
    this.#wake();
  }

  /**
   * Trims and counts an object of a list. Reuses the cached copy during a relist, so that no object is in memory twice.
   */
  #keep(object: T): T {
    const kept = this.#trim(object);
    const { budget } = this.#options;
    if (!budget) return kept;
    const known = this.#store.get(keyOf(kept));
    const { uid, resourceVersion } = kept.metadata;
    if (known && known.metadata.uid === uid && known.metadata.resourceVersion === resourceVersion) return known;
    if (!budget.take(kept)) {
      const room = `${inWords(budget.limit)} that the operator has room for`;
      throw new AnswerTooLargeError(`WATCH ${this.resource.plural} at ${this.#client.server}`, room);
    }
    this.#coming.push(kept);
    return kept;
  }

  #put(object: T): ChangeEvent<T> | undefined {
    const event = this.#store.put(object);
    if (event) this.#count(event.object, event.old);
    return event;
  }

  #remove(object: T): ChangeEvent<T> | undefined {
    const known = this.#store.get(keyOf(object));
    const event = this.#store.remove(object);
    if (event) this.#count(undefined, known);
    return event;
  }

  #tell(event: ChangeEvent<T> | undefined): void {
    if (!event) return;
    this.#emit(event);
    this.#wake();
  }

  #count(object: T | undefined, old: T | undefined): void {
    const { budget } = this.#options;
    if (!budget || !this.#isCounted) return;
    if (object) budget.count(object);
    if (old) budget.release(old);
  }

  #forgetComing(): void {
    for (const object of this.#coming.splice(0)) this.#options.budget?.release(object);
  }

  /** Tells the budget that `objects` replace `before`. */
  #settle(objects: readonly T[], before: readonly T[]): void {
    const { budget } = this.#options;
    if (!budget) return;
    for (const object of objects) budget.count(object);
    for (const object of before) budget.release(object);
    this.#forgetComing();
  }

  #heard(): void {
    this.#lastError = undefined;
    this.#lastHeardAt = performance.now();
  }

  #trim(object: T): T {
    object.apiVersion ??= this.resource.group
      ? `${this.resource.group}/${this.resource.version}`
      : this.resource.version;
    object.kind ??= this.resource.kind;
    const kept = this.#options.transform ? this.#options.transform(object) : object;
    delete kept.metadata.managedFields;
    if (kept.metadata.annotations?.[LAST_APPLIED]) delete kept.metadata.annotations[LAST_APPLIED];
    return kept;
  }

  #emit(event: ChangeEvent<T>): void {
    for (const handler of this.#handlers) this.#call(handler, event);
  }

  #call(handler: (event: ChangeEvent<T>) => void, event: ChangeEvent<T>): void {
    try {
      handler(event);
    } catch (error) {
      this.#log.error(
        { resource: this.resource.plural, key: keyOf(event.object), err: error },
        'change handler failed',
      );
    }
  }

  #wake(): void {
    if (this.#wakePending || this.#waiters.size === 0) return;
    this.#wakePending = true;
    // One call for all events that arrived in one chunk of the stream.
    queueMicrotask(() => {
      this.#wakePending = false;
      for (const waiter of this.#waiters) waiter();
    });
  }
}

/**
 * Resolves with the predicate's first value that is neither undefined nor false. The predicate runs once the informers
 * are synced and after each change. Rejects with WaitTimeoutError, the signal's reason, the predicate's own error, or
 * when an informer stops.
 */
export async function waitFor<R>(
  informers: readonly Informer<any>[],
  predicate: () => R | undefined | false,
  options: WaitOptions,
): Promise<R> {
  const { timeoutMs, signal, what } = options;
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    const text = typeof what === 'string' ? what : what();
    const causes = informers.map((informer) => informer.lastError).filter((error) => error !== undefined);
    const because = causes[0] instanceof Error ? ` (the API server cannot be followed: ${causes[0].message})` : '';
    deadline.abort(new WaitTimeoutError(`waited ${Math.round(timeoutMs / 100) / 10} s for ${text}${because}`));
  }, timeoutMs);
  try {
    const ready = () => (informers.every((informer) => informer.synced) ? predicate() : undefined);
    const signals = signal ? [deadline.signal, signal] : [deadline.signal];
    return await waitUntil(informers, ready, AbortSignal.any(signals));
  } finally {
    clearTimeout(timer);
  }
}

function waitUntil<R>(
  informers: readonly Informer<any>[],
  predicate: () => R | undefined | false,
  signal?: AbortSignal,
): Promise<R> {
  return new Promise((resolve, reject) => {
    const unsubscribe: (() => void)[] = [];
    const finish = () => {
      for (const run of unsubscribe) run();
      signal?.removeEventListener('abort', look);
    };
    const look = () => {
      try {
        signal?.throwIfAborted();
        const value = predicate();
        if (value !== undefined && value !== false) {
          finish();
          resolve(value);
          return;
        }
        for (const informer of informers) informer.stopped?.throwIfAborted();
      } catch (error) {
        finish();
        reject(error);
      }
    };
    signal?.addEventListener('abort', look);
    for (const informer of informers) unsubscribe.push(informer.onAnyChange(look));
    look();
  });
}
