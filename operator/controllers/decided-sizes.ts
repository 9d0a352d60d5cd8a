import { isDeepStrictEqual } from 'node:util';
import { configurationProblem } from '../api/errors.ts';
import { LABELS, ROLES } from '../api/group.ts';
import { decidedSizesName } from '../api/names.ts';
import type { DesiredPool } from '../api/pools.ts';
import { boundSize, type Decided, type DecidedSize } from '../capacity/desired-sizes.ts';
import { isSleepOrder, type KnownSleepOrder, type SleepOrder } from '../capacity/sleep-order.ts';
import { KubeApiError } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import {
  clusterReceiptPlace,
  isReceipt,
  type ReceiptClient,
  type ReceiptPlace,
  Receipts,
  receiptIn,
  receiptType,
} from '../kube/receipt.ts';
import type { Secret } from '../kube/resources.ts';

/** Stored sizes of a cluster. */
interface Kept {
  /** UID of the WorkerCluster: a later one of the same name inherits nothing. */
  uid: string;
  pools: Record<string, DecidedSize>;
  /** Absent: no order, as in older receipts. */
  sleep?: SleepOrder;
}

const TYPE = receiptType(ROLES.decidedSizes);
/** Selects receipts by Secret type, which nobody can change: with a removed label, sizes would fall to minimums. */
export const DECIDED_SELECTOR = `type=${TYPE}`;
/** A cache that lacks a write after this time is broken, and reports that itself. */
const HEARD_MS = 10_000;

/** Most conflicts before giving up: a second operator must be running. */
const MOST_TRIES = 10;

type Cache = Pick<Informer<Secret>, 'get' | 'list' | 'absorb' | 'waitFor' | 'synced'>;

/** A size decision for one pool. */
export interface Decision {
  /** `namespace/name` of the cluster, and its UID. */
  readonly key: string;
  readonly uid: string;
  readonly pool: Pick<DesiredPool, 'name' | 'minimum' | 'maximum' | 'sizedBy'>;
  readonly size: DecidedSize;
}

/**
 * Decided sizes of pools, in a receipt per cluster where only the operator writes. They survive restarts, so that a
 * restart removes no node.
 */
export class DecidedSizes {
  readonly #receipts: Receipts<Kept>;
  readonly #placeOf: (key: string) => ReceiptPlace;
  readonly #cache: Cache;
  /** Parsed once per Secret, so that sizes can be compared by identity. */
  readonly #known = new WeakMap<Secret, Decided>();

  /** @param cache of Secrets selected by DECIDED_SELECTOR in the operator's namespace */
  constructor(client: ReceiptClient, operatorNamespace: string, cache: Cache) {
    this.#placeOf = (key) => placeOf(operatorNamespace, key);
    this.#cache = cache;
    this.#receipts = new Receipts<Kept>(client, this.#placeOf, { cache });
  }

  /** Stored sizes of the cluster with this UID. `unknown`: not readable now; then each pool keeps its size. */
  get(key: string, uid: string): Decided {
    if (!this.#cache.synced) return 'unknown';
    const place = this.#placeOf(key);
    const secret = this.#cache.get(`${place.namespace}/${place.name}`);
    if (!secret) return 'none';
    const kept = isReceipt(secret, place) ? receiptIn<Kept>(secret) : undefined;
    if (!isKept(kept)) return 'unknown';
    if (kept.uid !== uid) return 'none';
    const known = this.#known.get(secret);
    const decided = known ?? new Map(Object.entries(kept.pools));
    if (!known) this.#known.set(secret, decided);
    return decided;
  }

  /** Whether a Secret exists at the receipt's place. */
  has(key: string): boolean {
    const { namespace, name } = this.#placeOf(key);
    return this.#cache.get(`${namespace}/${name}`) !== undefined;
  }

  /**
   * Stores a pool's size, within minimum and maximum; does nothing when stored already. Resolves once all readers see
   * it.
   * @returns the valid size; undefined: a person fixed this pool's size, and nothing was written
   * @throws CoppiceError when the receipt is unreadable: it may contain other pools
   */
  async decide({ key, uid, pool, size }: Decision, signal?: AbortSignal): Promise<DecidedSize | undefined> {
    if (pool.sizedBy === 'person') return undefined;
    let decided: DecidedSize = { ...size, count: boundSize(pool, size.count) };
    await this.#change(key, signal, (before) => {
      const { pools, ...others } = before?.uid === uid ? before : { uid, pools: {} };
      const memory = size.memory ?? pools[pool.name]?.memory;
      decided = { ...size, count: boundSize(pool, size.count), ...(memory && { memory }) };
      return { ...others, pools: { ...pools, [pool.name]: decided } };
    });
    await this.#cache.waitFor(() => isSame(this.get(key, uid), pool.name, decided), {
      timeoutMs: HEARD_MS,
      what: `the size of pool ${pool.name} of ${key} to be stored`,
      ...(signal && { signal }),
    });
    return decided;
  }

  /** Forgets sizes of pools that are no longer decided here. Does nothing without such. */
  async forget(key: string, uid: string, isKeptPool: (pool: string) => boolean, signal?: AbortSignal): Promise<void> {
    const known = this.get(key, uid);
    if (typeof known === 'string' || [...known.keys()].every(isKeptPool)) return;
    await this.#change(key, signal, (before) => {
      if (before?.uid !== uid) return undefined;
      return {
        ...before,
        pools: Object.fromEntries(Object.entries(before.pools).filter(([pool]) => isKeptPool(pool))),
      };
    });
  }

  /** Stored order to sleep or to be awake. */
  sleepOrder(key: string, uid: string): KnownSleepOrder {
    const decided = this.get(key, uid);
    if (typeof decided === 'string') return decided;
    const { name, namespace } = this.#placeOf(key);
    return receiptIn<Kept>(this.#cache.get(`${namespace}/${name}`))?.sleep ?? 'none';
  }

  /**
   * Stores an order to sleep or to be awake; undefined withdraws it; does nothing when stored already. Resolves once
   * all readers see it. Throws CoppiceError when the receipt is unreadable: it may contain pools.
   */
  async orderSleep(key: string, uid: string, order: SleepOrder | undefined, signal?: AbortSignal): Promise<void> {
    const isDone = () => isDeepStrictEqual(this.sleepOrder(key, uid), order ?? 'none');
    if (isDone()) return;
    await this.#change(key, signal, (before) => {
      const { sleep: _, ...others } = before?.uid === uid ? before : { uid, pools: {} };
      return { ...others, ...(order && { sleep: order }) };
    });
    await this.#cache.waitFor(isDone, {
      timeoutMs: HEARD_MS,
      what: `the sleep of ${key} to be stored`,
      ...(signal && { signal }),
    });
  }

  /**
   * Changes the receipt as read from the server: a stale cache would lose other decisions. Retries after conflicts with
   * other writers, so that nobody's change is lost.
   * @param change returns the new receipt; undefined: no change
   */
  async #change(
    key: string,
    signal: AbortSignal | undefined,
    change: (before: Kept | undefined) => Kept | undefined,
  ): Promise<void> {
    for (let tried = 1; ; tried++) {
      const before = await this.#receipts.read(key, signal);
      if (before && !isKept(before))
        throw configurationProblem(
          `what was decided for WorkerCluster ${key} cannot be read`,
          'Delete the Secret with it in the namespace of the operator: pools then return to their minimums.',
        );
      const after = change(before);
      if (!after) return;
      try {
        return await this.#receipts.save(key, after, before, signal);
      } catch (error) {
        const isBehind = error instanceof KubeApiError && error.status === 409;
        if (!isBehind || tried === MOST_TRIES) throw error;
      }
    }
  }

  /** Deletes the receipt; call this when nothing is left of the cluster. Does nothing without a receipt. */
  async remove(key: string, signal?: AbortSignal): Promise<void> {
    if (this.has(key)) await this.#receipts.remove(key, signal);
  }
}

/** `namespace/name` of a receipt's cluster; undefined when its name does not match. */
export function clusterOfDecided({ metadata: { name, labels } }: Secret): string | undefined {
  const key = `${labels?.[LABELS.workerClusterNamespace]}/${labels?.[LABELS.workerCluster]}`;
  return decidedSizesName(key) === name ? key : undefined;
}

function isSame(decided: Decided, pool: string, size: DecidedSize): boolean {
  const known = typeof decided === 'string' ? undefined : decided.get(pool);
  return known !== undefined && isDeepStrictEqual({ ...known }, { ...size });
}

const placeOf = (operatorNamespace: string, key: string): ReceiptPlace =>
  clusterReceiptPlace(operatorNamespace, decidedSizesName(key), ROLES.decidedSizes, key);

/** Validates a receipt: a partial one would shrink other pools to their minimums. */
const isKept = (kept: Kept | undefined): kept is Kept =>
  typeof kept?.uid === 'string' &&
  typeof kept.pools === 'object' &&
  kept.pools !== null &&
  (kept.sleep === undefined || isSleepOrder(kept.sleep)) &&
  Object.values(kept.pools).every(
    (size) =>
      Number.isSafeInteger(size?.count) &&
      size.count >= 0 &&
      (size.leaving === undefined || Array.isArray(size.leaving)),
  );
