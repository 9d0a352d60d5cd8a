import { configurationProblem } from '../api/errors.ts';
import { GROUP, LABELS } from '../api/group.ts';
import { atVersion, isApplied } from './applier.ts';
import type { KubeClient } from './client.ts';
import { isNotFound } from './errors.ts';
import type { Informer } from './informer.ts';
import { SECRETS, type Secret, splitKey } from './resources.ts';

/** Name, namespace, labels and type of a receipt's Secret. Computed from its key alone, never read back. */
export interface ReceiptPlace {
  readonly name: string;
  /** A namespace in which only the operator writes: a tenant could forge a receipt elsewhere. */
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly type: string;
  /** Keeps the receipt when its namespace is deleted. Absent: the receipt goes with the namespace. */
  readonly finalizer?: string;
}

/** Secret type of receipts of this role (ROLES). Kubernetes lets nobody change the type of a Secret. */
export const receiptType = (role: string): string => `${GROUP}/${role}`;

/**
 * Place of a receipt in the operator's namespace.
 * @param role one of ROLES
 * @param more further labels that identify the receipt
 */
export const operatorReceiptPlace = (
  namespace: string,
  name: string,
  role: string,
  more: Readonly<Record<string, string>> = {},
): ReceiptPlace => ({
  name,
  namespace,
  labels: { [LABELS.managedBy]: 'coppice', [LABELS.role]: role, ...more },
  type: receiptType(role),
});

/** Like operatorReceiptPlace, with the labels of its WorkerCluster. @param key `namespace/name` of the WorkerCluster */
export function clusterReceiptPlace(namespace: string, name: string, role: string, key: string): ReceiptPlace {
  const { namespace: ofNamespace, name: cluster } = splitKey(key);
  return operatorReceiptPlace(namespace, name, role, {
    [LABELS.workerCluster]: cluster,
    [LABELS.workerClusterNamespace]: ofNamespace,
  });
}

const KEY = 'record';
/** A cache that has not seen a deletion after this time is broken, and reports that itself. */
const HEARD_MS = 10_000;

export type ReceiptClient = Pick<KubeClient, 'getOrUndefined' | 'create' | 'apply' | 'delete' | 'mergePatch'>;
export type ReceiptCache = Pick<Informer<Secret>, 'get' | 'absorb' | 'waitFor'>;

/** Secret that stores `kept`. */
export const receiptSecret = (
  { name, namespace, labels, type, finalizer }: ReceiptPlace,
  kept: object,
  more: Readonly<Record<string, string>> = {},
): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace, labels: { ...more, ...labels }, ...(finalizer && { finalizers: [finalizer] }) },
  type,
  data: { [KEY]: Buffer.from(JSON.stringify(kept)).toString('base64') },
});

/** Content of a receipt's Secret. undefined: missing or not readable. */
export function receiptIn<Kept>(secret: Secret | undefined): Kept | undefined {
  const text = secret?.data?.[KEY];
  if (!text) return undefined;
  try {
    return (JSON.parse(Buffer.from(text, 'base64').toString()) as Kept | null) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether the Secret is the receipt of this place; the name alone proves nothing. A missing label still counts, because
 * nobody can change the type and the recorded resources would leak otherwise.
 */
export const isReceipt = ({ type, metadata }: Secret, place: Pick<ReceiptPlace, 'labels' | 'type'>): boolean =>
  type === place.type &&
  Object.entries(place.labels).every(([label, value]) => (metadata.labels?.[label] ?? value) === value);

/** Resource version of every receipt that was returned or saved. undefined: the receipt did not exist. */
const VERSIONS = new WeakMap<object, string | undefined>();

function versionOf(kept: object | undefined): string | undefined {
  if (kept && !VERSIONS.has(kept)) throw new Error('a receipt is saved, and nobody knows what it was made from');
  return kept && VERSIONS.get(kept);
}

interface ReceiptOptions<Kept> {
  readonly cache?: ReceiptCache;
  readonly marks?: (kept: Kept) => Record<string, string>;
  readonly whyNotUnderstood?: (stored: unknown) => string | undefined;
  readonly bounded?: (kept: Kept) => Kept;
}

/**
 * Receipts: Secrets that name what the operator makes elsewhere (in a cloud, in another cluster). Each is written
 * before the thing is made, so that after a crash the operator knows what to remove. Each write names the version that
 * it was made from: if two operators act at once by mistake, the later write fails and that operator reads again.
 */
export class Receipts<Kept extends object> {
  readonly #client: ReceiptClient;
  readonly #placeOf: (key: string) => ReceiptPlace;
  readonly #cache: ReceiptCache | undefined;
  readonly #marks: (kept: Kept) => Record<string, string>;
  readonly #whyNotUnderstood: (stored: unknown) => string | undefined;
  readonly #bounded: (kept: Kept) => Kept;

  /**
   * @param cache of Secrets, with all receipts; without a cache the server is asked each time
   * @param marks labels for people, beside the identifying ones
   * @param whyNotUnderstood why stored content cannot be used; undefined: it can. Absent: any JSON is fine
   * @param bounded the part to store when the whole may exceed a Secret. Absent: all
   */
  constructor(
    client: ReceiptClient,
    placeOf: (key: string) => ReceiptPlace,
    {
      cache,
      marks = () => ({}),
      whyNotUnderstood = () => undefined,
      bounded = (kept) => kept,
    }: ReceiptOptions<Kept> = {},
  ) {
    this.#client = client;
    this.#placeOf = placeOf;
    this.#cache = cache;
    this.#marks = marks;
    this.#whyNotUnderstood = whyNotUnderstood;
    this.#bounded = bounded;
  }

  /** The receipt from the cache. undefined: none was written, or there is no cache. */
  get(key: string): Kept | undefined {
    const place = this.#placeOf(key);
    return this.#of(this.#cache?.get(`${place.namespace}/${place.name}`), place);
  }

  /** The receipt from the server. undefined: none was written. Throws when it exists and cannot be read. */
  async read(key: string, signal?: AbortSignal): Promise<Kept | undefined> {
    const place = this.#placeOf(key);
    const live = await this.#live(place, signal);
    const kept = this.#of(live, place);
    if (live && !kept && isReceipt(live, place)) {
      const stored = receiptIn<unknown>(live);
      const problem = stored === undefined ? undefined : this.#whyNotUnderstood(stored);
      throw configurationProblem(
        `the receipt in Secret ${place.namespace}/${place.name} cannot be read${problem ? ` (${problem})` : ''}`,
        problem
          ? 'Run the version of Coppice that wrote it, or restore it from a backup. Until then nothing is done.'
          : 'Restore it from a backup, or delete it: Coppice then finds what it made by tags and labels.',
      );
    }
    return kept;
  }

  /** Records that `next` was made from `before`, for `save`. @param before undefined: there was none */
  madeFrom(next: Kept, before: Kept | undefined): Kept {
    VERSIONS.set(next, versionOf(before));
    return next;
  }

  /**
   * Writes the receipt; call this before anything is made. Writes only differences, and only in place of `before`.
   * @param before what `kept` was made from: from `get`, `read`, `madeFrom` or an earlier `save`; undefined: there was
   * none
   * @throws KubeApiError (409) when the receipt has changed meanwhile; CoppiceError when a Secret that is no receipt
   * has its name
   */
  async save(key: string, kept: Kept, before: Kept | undefined, signal?: AbortSignal): Promise<void> {
    const place = this.#placeOf(key);
    const version = versionOf(before);
    const known = this.#cache?.get(`${place.namespace}/${place.name}`) ?? (await this.#live(place, signal));
    if (known && !isReceipt(known, place))
      throw configurationProblem(
        `Secret ${place.namespace}/${place.name} has the name of a receipt, but Coppice did not write it`,
        'Find out whose it is, and delete it.',
      );
    const secret = receiptSecret(place, this.#bounded(kept), this.#marks(kept));
    if (known && isApplied(secret, known)) {
      VERSIONS.set(kept, known.metadata.resourceVersion);
      return;
    }
    const written =
      version === undefined
        ? await this.#client.create(secret, { signal })
        : await this.#client.apply(atVersion(secret, version), { signal });
    VERSIONS.set(kept, written.metadata.resourceVersion);
    this.#cache?.absorb(written);
  }

  /** Removes the receipt; call this when nothing is left of what was made. A Secret that is no receipt stays. */
  async remove(key: string, signal?: AbortSignal): Promise<void> {
    const place = this.#placeOf(key);
    const { name, namespace } = place;
    const live = await this.#live(place, signal);
    if (live && isReceipt(live, place)) {
      const { uid } = live.metadata;
      await this.#client.delete(SECRETS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } });
      if (place.finalizer)
        await this.#client
          .mergePatch(SECRETS, name, namespace, { metadata: { finalizers: null } }, { signal })
          .catch((error: unknown) => {
            if (!isNotFound(error)) throw error;
          });
    }
    await this.#cache?.waitFor(() => !this.get(key), {
      timeoutMs: HEARD_MS,
      signal,
      what: `Secret ${namespace}/${name} to be gone`,
    });
  }

  #live({ name, namespace }: ReceiptPlace, signal: AbortSignal | undefined): Promise<Secret | undefined> {
    return this.#client.getOrUndefined<Secret>(SECRETS, name, namespace, { signal });
  }

  #of(secret: Secret | undefined, place: ReceiptPlace): Kept | undefined {
    if (!secret || !isReceipt(secret, place)) return undefined;
    const stored = receiptIn<Kept>(secret);
    if (!stored || this.#whyNotUnderstood(stored) !== undefined) return undefined;
    // A WeakMap takes objects only.
    if (typeof stored === 'object') VERSIONS.set(stored, secret.metadata.resourceVersion);
    return stored;
  }
}
