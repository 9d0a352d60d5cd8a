import { compareResourceVersions, type KubeObject, keyOf } from './resources.ts';

/** A change of an object in the cache. `old` is the previous state. */
export type ChangeEvent<T> =
  | { type: 'added'; object: T; old?: undefined }
  | { type: 'updated'; object: T; old: T }
  | { type: 'deleted'; object: T; old?: undefined };

export type Indexes<T> = Record<string, (object: T) => readonly string[]>;

/** Objects by key and by indexes. Resource versions tell late changes from new ones. */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, { of: (object: T) => readonly string[]; keys: Map<string, Set<string>> }>();

  constructor(indexes: Indexes<T> = {}) {
    for (const [name, of] of Object.entries(indexes)) this.#indexes.set(name, { of, keys: new Map() });
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (!index) throw new Error(`the informer has no index "${name}"`);
    const keys = index.keys.get(value);
    return keys ? Array.from(keys, (key) => this.#objects.get(key)!) : [];
  }

  /** Values of an index that have at least one object. */
  indexValues(name: string): string[] {
    return [...(this.#indexes.get(name)?.keys.keys() ?? [])];
  }

  /** Stores the object. Returns undefined when the stored one is as new. */
  put(object: T): ChangeEvent<T> | undefined {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    if (old) {
      const order = compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion);
      if (order <= 0) return undefined;
      this.#unindex(key, old);
    }
    this.#objects.set(key, object);
    this.#index(key, object);
    return old ? { type: 'updated', object, old } : { type: 'added', object };
  }

  /** `object` is the last state before the deletion; its resource version is that of the deletion. */
  remove(object: T): ChangeEvent<T> | undefined {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    if (!old) return undefined;
    // The store has a newer object of this name, created after this deletion.
    if (compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion) < 0) return undefined;
    this.#objects.delete(key);
    this.#unindex(key, old);
    return { type: 'deleted', object };
  }

  /**
   * Replaces the content by a list of that resource version, but keeps objects newer than the list.
   * @param restored the server went back in time (its etcd was restored): replace everything
   */
  replace(objects: Iterable<T>, resourceVersion: string, restored = false): ChangeEvent<T>[] {
    const events: ChangeEvent<T>[] = [];
    if (restored) {
      for (const [key, object] of this.#objects) {
        this.#objects.delete(key);
        this.#unindex(key, object);
        events.push({ type: 'deleted', object });
      }
    }
    const seen = new Set<string>();
    for (const object of objects) {
      const key = keyOf(object);
      seen.add(key);
      const old = this.#objects.get(key);
      if (old && old.metadata.uid !== object.metadata.uid) {
        // Deleted and created again while the watch was broken: handlers must hear of the deletion.
        if (compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion) <= 0) continue;
        this.#objects.delete(key);
        this.#unindex(key, old);
        events.push({ type: 'deleted', object: old });
      }
      const event = this.put(object);
      if (event) events.push(event);
    }
    for (const [key, object] of this.#objects) {
      if (seen.has(key)) continue;
      if (compareResourceVersions(object.metadata.resourceVersion, resourceVersion) > 0) continue;
      this.#objects.delete(key);
      this.#unindex(key, object);
      events.push({ type: 'deleted', object });
    }
    return events;
  }

  #index(key: string, object: T): void {
    for (const { of, keys } of this.#indexes.values()) {
      for (const value of of(object)) {
        const set = keys.get(value);
        if (set) set.add(key);
        else keys.set(value, new Set([key]));
      }
    }
  }

  #unindex(key: string, object: T): void {
    for (const { of, keys } of this.#indexes.values()) {
      for (const value of of(object)) {
        const set = keys.get(value);
        if (!set) continue;
        set.delete(key);
        if (set.size === 0) keys.delete(value);
      }
    }
  }
}
