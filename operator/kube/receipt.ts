import { configurationProblem } from '../api/errors.ts';
import { GROUP, LABELS } from '../api/group.ts';
import { atVersion, isApplied } from './applier.ts';
import type { KubeClient } from './client.ts';
import { isNotFound } from './errors.ts';
import type { Informer } from './informer.ts';
import { SECRETS, type Secret, splitKey } from './resources.ts';

/** Where a receipt lies, and by what it is known to be one. Computed from its key alone, never read back. */
export interface ReceiptPlace {
  readonly name: string;
  /** One in which only the operator writes: what lies where a tenant may write is no memory. */
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly type: string;
  /** Keeps it when its namespace goes. Absent: it goes with it. */
  readonly finalizer?: string;
}

/** Type of the Secrets with receipts of this role (ROLES): nobody can change it. */
export const receiptType = (role: string): string => `${GROUP}/${role}`;

/**
 * The place of a receipt in the operator's namespace.
 * @param role what it is a receipt of: one of ROLES
 * @param more labels by which it is known, too
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

/** The same, of a receipt that bears the labels of its WorkerCluster. @param key `namespace/name` of that */
export function clusterReceiptPlace(namespace: string, name: string, role: string, key: string): ReceiptPlace {
  const { namespace: ofNamespace, name: cluster } = splitKey(key);
  return operatorReceiptPlace(namespace, name, role, {
    [LABELS.workerCluster]: cluster,
    [LABELS.workerClusterNamespace]: ofNamespace,
  });
}

const KEY = 'record';
/** A cache that has not heard of a deletion by then is broken, and says so itself. */
const HEARD_MS = 10_000;

export type ReceiptClient = Pick<KubeClient, 'getOrUndefined' | 'create' | 'apply' | 'delete' | 'mergePatch'>;
export type ReceiptCache = Pick<Informer<Secret>, 'get' | 'absorb' | 'waitFor'>;

/** The Secret that says this. */
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

/** What a receipt's Secret says; undefined: nothing that can be read. */
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
 * Whether the Secret is the receipt of this place: by name alone nothing is one. Its type nobody can change; a label that somebody took
 * off makes it no other's, or what it tells of would be left for ever.
 */
export const isReceipt = ({ type, metadata }: Secret, place: Pick<ReceiptPlace, 'labels' | 'type'>): boolean =>
  type === place.type &&
  Object.entries(place.labels).every(([label, value]) => (metadata.labels?.[label] ?? value) === value);

/** Resource versions of all receipts that were handed out or saved; undefined: there was none. */
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
 * What was made elsewhere (in a cloud, in another cluster), written down before it is made: whoever comes after a crash knows that
 * there may be something to take away. A Secret each. A receipt is written at the version that it was made from: of two operators that act at
 * once, by mistake, the later one is refused, and looks afresh.
 */
export class Receipts<Kept extends object> {
  readonly #client: ReceiptClient;
  readonly #placeOf: (key: string) => ReceiptPlace;
  readonly #cache: ReceiptCache | undefined;
  readonly #marks: (kept: Kept) => Record<string, string>;
  readonly #whyNotUnderstood: (stored: unknown) => string | undefined;
  readonly #bounded: (kept: Kept) => Kept;

  /**
   * @param cache of Secrets that has all of them, if there is one; without it the server is asked each time
   * @param marks labels for people, beside those by which a receipt is known
   * @param whyNotUnderstood why what is stored cannot be acted on; undefined: it can. Absent: whatever is JSON can be
   * @param bounded what of it is stored, where it may be larger than a Secret. Absent: all
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

  /** As the cache has it; undefined: nothing was ever made, or there is no cache. */
  get(key: string): Kept | undefined {
    const place = this.#placeOf(key);
    return this.#of(this.#cache?.get(`${place.namespace}/${place.name}`), place);
  }

  /** As the server has it; undefined: nothing was ever made. Throws when it cannot be read: that something was made is known. */
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

  /** Says that `next` was made from `before`, as `save` wants to know it. @param before undefined: there was none */
  madeFrom(next: Kept, before: Kept | undefined): Kept {
    VERSIONS.set(next, versionOf(before));
    return next;
  }

  /**
   * To be called before anything is made. Writes only what differs, and only in place of `before`.
   * @param before what `kept` was made from: from `get`, `read`, `madeFrom` or an earlier `save`; undefined: there was none
   * @throws KubeApiError (409) where the receipt has become another one meanwhile. CoppiceError where something that is no receipt has its name.
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

  /** To be called when nothing is left of what was made. What is no receipt stays. */
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
    // What is no object cannot be saved anew.
    if (typeof stored === 'object') VERSIONS.set(stored, secret.metadata.resourceVersion);
    return stored;
  }
}
