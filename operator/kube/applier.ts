import { createHash } from 'node:crypto';
import { FIELD_MANAGER, GROUP } from '../api/group.ts';
import type { KubeClient } from './client.ts';
import type { Informer } from './informer.ts';
import { compareResourceVersions, type KubeObject, keyOf, type Resource } from './resources.ts';

/** Holds the hash of what was applied: fields that a newer version of the manifest no longer names are noticed by it. */
export const APPLIED_ANNOTATION = `${GROUP}/applied`;

/** What the caller knows of an object without asking: the object, and how far its knowledge goes. */
export interface Known {
  readonly live: KubeObject | undefined;
  /** Resource version up to which the cache has followed; undefined: no cache, `live` was read just now. */
  readonly seen?: string | undefined;
}
export type Lookup = (object: KubeObject) => Known;

/** What an informer knows of an object. */
export const knownBy = (cache: Informer<any> | undefined, object: KubeObject): Known => ({
  live: cache?.get(keyOf(object)),
  seen: cache?.resourceVersion,
});

/**
 * Server-side apply that writes only when the live object differs. An idle fleet costs no writes because of this: a no-op
 * apply is still a request, an admission round and an audit line.
 */
export class Applier {
  readonly #client: KubeClient;
  readonly #lookup: Lookup;
  /** What was written since the cache last spoke of the object: the cache is behind for as long. */
  readonly #written = new Map<string, KubeObject>();

  constructor(client: KubeClient, lookup: Lookup) {
    this.#client = client;
    this.#lookup = lookup;
  }

  /** How many answers to writes are kept. */
  get kept(): number {
    return this.#written.size;
  }

  /** The object as it is known without asking; undefined: the cache has none, which may be one that lost its labels. */
  known<T extends KubeObject>(desired: T): T | undefined {
    return this.#newest(cacheKey(desired), this.#lookup(desired)) as T | undefined;
  }

  /**
   * @param resource needed for kinds that operator/kube/resources.ts does not list
   * @param version the resource version that is replaced. Absent: whichever there is
   * @returns the live object, and whether it was written.
   * @throws KubeApiError (409) where the object has another version by now
   */
  async apply<T extends KubeObject>(
    desired: T,
    signal?: AbortSignal,
    resource?: Resource,
    version?: string,
  ): Promise<{ object: T; changed: boolean }> {
    const manifest = withHash(desired);
    const key = cacheKey(desired);
    const live = this.#newest(key, this.#lookup(desired));
    if (live && isApplied(manifest, live)) return { object: live as T, changed: false };
    const object = await this.#client.apply<T>(version === undefined ? manifest : atVersion(manifest, version), {
      force: true,
      fieldManager: FIELD_MANAGER,
      signal,
      ...(resource && { resource }),
    });
    this.#wrote(key, object);
    return { object, changed: true };
  }

  /** Makes an object that must not be there yet. @throws KubeApiError (409, AlreadyExists) where somebody else was quicker */
  async create<T extends KubeObject>(desired: T, signal?: AbortSignal): Promise<T> {
    const object = await this.#client.create<T>(withHash(desired), { fieldManager: FIELD_MANAGER, signal });
    this.#wrote(cacheKey(desired), object);
    return object;
  }

  #wrote(key: string, object: KubeObject): void {
    this.#written.set(key, object);
    if (this.#written.size > MANY_WRITTEN) this.#forgetSeen();
  }

  /** Most objects are applied once and never again: without this the answers to all writes would be kept for ever. */
  #forgetSeen(): void {
    for (const [key, written] of this.#written) {
      const { seen } = this.#lookup(written);
      if (isSeen(written, seen)) this.#written.delete(key);
    }
  }

  #newest(key: string, { live, seen }: Known): KubeObject | undefined {
    const written = this.#written.get(key);
    if (!written) return live;
    // The cache has gone past our write: what it says, also that there is nothing, is newer.
    if (isSeen(written, seen)) {
      this.#written.delete(key);
      return live;
    }
    return written;
  }
}

/** So many answers to writes are kept without a look at whether they are still of use. */
const MANY_WRITTEN = 64;

const isSeen = (written: KubeObject, seen: string | undefined): boolean =>
  seen === undefined || compareResourceVersions(seen, written.metadata.resourceVersion) >= 0;

const cacheKey = (object: { kind: string; metadata: { namespace?: string; name: string } }): string =>
  `${object.kind}/${keyOf(object)}`;

function withHash<T extends KubeObject>(desired: T): T {
  const hash = createHash('sha256').update(JSON.stringify(desired)).digest('hex').slice(0, 16);
  const annotations = { ...desired.metadata.annotations, [APPLIED_ANNOTATION]: hash };
  return { ...desired, metadata: { ...desired.metadata, annotations } };
}

/** The object as a write that only replaces this resource version. */
export const atVersion = <T extends KubeObject>(object: T, resourceVersion: string): T => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

/** Whether the live object says everything that the manifest says. Fails towards writing. */
export function isApplied(manifest: KubeObject, live: KubeObject): boolean {
  if (live.metadata.deletionTimestamp) return false;
  return includes(live, stringDataAsData(manifest));
}

function stringDataAsData(manifest: KubeObject): KubeObject {
  const { stringData, ...rest } = manifest;
  if (manifest.kind !== 'Secret' || !stringData) return manifest;
  const encoded = Object.entries(stringData as Record<string, string>).map(([name, text]) => [
    name,
    Buffer.from(text).toString('base64'),
  ]);
  return { ...rest, data: { ...(manifest.data as object), ...Object.fromEntries(encoded) } } as KubeObject;
}

/** Whether `part` is contained in `whole`: all of its fields, lists item by item (the server adds defaults to items). */
export function includes(whole: unknown, part: unknown): boolean {
  if (part === undefined || part === null) return true;
  if (Array.isArray(part)) {
    if (!Array.isArray(whole)) return part.length === 0 && whole === undefined;
    return whole.length === part.length && part.every((item, index) => includes(whole[index], item));
  }
  if (typeof part === 'object') {
    if (whole === undefined || whole === null) return Object.keys(part).length === 0;
    if (typeof whole !== 'object') return false;
    return Object.entries(part).every(([name, value]) => includes((whole as Record<string, unknown>)[name], value));
  }
  // The server leaves empty values out of what it stores.
  if (whole === undefined) return part === '' || part === false || part === 0;
  return whole === part;
}
