import { createHash } from 'node:crypto';
import { FIELD_MANAGER, GROUP } from '../api/group.ts';
import type { KubeClient } from './client.ts';
import type { Informer } from './informer.ts';
import { compareResourceVersions, type KubeObject, keyOf, type Resource } from './resources.ts';

/**
 * Annotation with the hash of the applied manifest: the hash changes when a newer version of the manifest drops a
 * field.
 */
export const APPLIED_ANNOTATION = `${GROUP}/applied`;

/** The caller's cached copy of an object, and up to which version the cache has followed. */
interface Known {
  readonly live: KubeObject | undefined;
  /** Resource version up to which the cache has followed. Absent: no cache; `live` was read just now. */
  readonly seen?: string | undefined;
}
type Lookup = (object: KubeObject) => Known;

/** The informer's copy of an object. */
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
  /** Answers to writes that the cache has not shown yet, by key. */
  readonly #written = new Map<string, KubeObject>();

  constructor(client: KubeClient, lookup: Lookup) {
    this.#client = client;
    this.#lookup = lookup;
  }

  /** Number of kept answers to writes. */
  get kept(): number {
    return this.#written.size;
  }

  /**
   * The object from the cache or from a newer write. undefined: the cache lacks the object, perhaps because it lost its
   * labels.
   */
  known<T extends KubeObject>(desired: T): T | undefined {
    return this.#newest(cacheKey(desired), this.#lookup(desired)) as T | undefined;
  }

  /**
   * @param resource needed for kinds that operator/kube/resources.ts does not list
   * @param version the resource version to replace. Absent: any
   * @returns the live object, and whether it was written
   * @throws KubeApiError (409) when the object has another version by now
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

  /**
   * Creates an object that must not exist yet. @throws KubeApiError (409, AlreadyExists) when another client created it
   * first
   */
  async create<T extends KubeObject>(desired: T, signal?: AbortSignal): Promise<T> {
    const object = await this.#client.create<T>(withHash(desired), { fieldManager: FIELD_MANAGER, signal });
    this.#wrote(cacheKey(desired), object);
    return object;
  }

  #wrote(key: string, object: KubeObject): void {
    this.#written.set(key, object);
    if (this.#written.size > MANY_WRITTEN) this.#forgetSeen();
  }

  /**
   * Drops answers that the cache has caught up with. Most objects are applied once only: without this, all answers
   * would stay in memory.
   */
  #forgetSeen(): void {
    for (const [key, written] of this.#written) {
      const { seen } = this.#lookup(written);
      if (isSeen(written, seen)) this.#written.delete(key);
    }
  }

  #newest(key: string, { live, seen }: Known): KubeObject | undefined {
    const written = this.#written.get(key);
    if (!written) return live;
    // The cache has passed our write: its state is newer, even when the object is missing there.
    if (isSeen(written, seen)) {
      this.#written.delete(key);
      return live;
    }
    return written;
  }
}

/** Number of kept answers above which stale ones are looked for. */
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

/** The object for a write that replaces this resource version only. */
export const atVersion = <T extends KubeObject>(object: T, resourceVersion: string): T => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

/** Whether the live object has every field of the manifest. In doubt false, which causes a write. */
export function isApplied(manifest: KubeObject, live: KubeObject): boolean {
  if (live.metadata.deletionTimestamp) return false;
  return includesFields(live, stringDataAsData(manifest));
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

/**
 * Whether `whole` contains all fields of `part`. Lists are compared item by item, because the server adds defaults to
 * items.
 */
export function includesFields(whole: unknown, part: unknown): boolean {
  if (part === undefined || part === null) return true;
  if (Array.isArray(part)) {
    if (!Array.isArray(whole)) return part.length === 0 && whole === undefined;
    return whole.length === part.length && part.every((item, index) => includesFields(whole[index], item));
  }
  if (typeof part === 'object') {
    if (whole === undefined || whole === null) return Object.keys(part).length === 0;
    if (typeof whole !== 'object') return false;
    return Object.entries(part).every(([name, value]) =>
      includesFields((whole as Record<string, unknown>)[name], value),
    );
  }
  // The API server drops empty values when it stores an object.
  if (whole === undefined) return part === '' || part === false || part === 0;
  return whole === part;
}
