import { isDeepStrictEqual } from 'node:util';
import { configurationProblem } from '../api/errors.ts';
import { LABELS, ROLES } from '../api/group.ts';
import { decidedSizesName } from '../api/names.ts';
import type { DesiredPool } from '../api/pools.ts';
import { type Decided, type DecidedSize, within } from '../capacity/desired-sizes.ts';
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

/** What was decided for one cluster, as it is kept. */
interface Kept {
  /** Of the WorkerCluster: a new one of the same name inherits nothing. */
  uid: string;
  pools: Record<string, DecidedSize>;
  /** Absent: its spec alone says when it sleeps, as in receipts from before this was done. */
  sleep?: SleepOrder;
}

const TYPE = receiptType(ROLES.decidedSizes);
/** Selects the receipts by what nobody can change: with a label that was taken off, a size would be the minimum. */
export const DECIDED_SELECTOR = `type=${TYPE}`;
/** A cache that has not heard of a write by then is broken, and says so itself. */
const HEARD_MS = 10_000;

/** Another operator that decides as often as this one is one too many. */
const MOST_TRIES = 10;

type Cache = Pick<Informer<Secret>, 'get' | 'list' | 'absorb' | 'waitFor' | 'synced'>;

/** A decision about one pool. */
export interface Decision {
  /** `namespace/name` of the cluster, and its UID. */
  readonly key: string;
  readonly uid: string;
  readonly pool: Pick<DesiredPool, 'name' | 'minimum' | 'maximum' | 'sizedBy'>;
  readonly size: DecidedSize;
}

/**
 * The sizes that were decided for pools, where only the operator writes: a receipt for each cluster that has any. It outlives the operator,
 * so a restart takes no node away.
 */
export class DecidedSizes {
  readonly #receipts: Receipts<Kept>;
  readonly #placeOf: (key: string) => ReceiptPlace;
  readonly #cache: Cache;
  /** Of each Secret once: who compares sizes can compare the objects. */
  readonly #known = new WeakMap<Secret, Decided>();

  /** @param cache of Secrets selected by DECIDED_SELECTOR in the operator's namespace */
  constructor(client: ReceiptClient, operatorNamespace: string, cache: Cache) {
    this.#placeOf = (key) => placeOf(operatorNamespace, key);
    this.#cache = cache;
    this.#receipts = new Receipts<Kept>(client, this.#placeOf, { cache });
  }

  /** What is stored for the cluster with this UID. `unknown`: nobody can tell now; then each pool keeps what it has. */
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

  /** Whether anything lies where the receipt of this cluster would be. */
  has(key: string): boolean {
    const { namespace, name } = this.#placeOf(key);
    return this.#cache.get(`${namespace}/${name}`) !== undefined;
  }

  /**
   * Writes down what a pool should have, within its minimum and maximum; nothing when that is stored already. Resolves when everybody
   * here sees it, so nothing is made before.
   * @returns the size that holds now; undefined: a person fixed the size of this pool, and nothing was written.
   * @throws CoppiceError when the receipt cannot be read: it may say something about other pools
   */
  async decide({ key, uid, pool, size }: Decision, signal?: AbortSignal): Promise<DecidedSize | undefined> {
    if (pool.sizedBy === 'person') return undefined;
    let decided: DecidedSize = { ...size, count: within(pool, size.count) };
    await this.#change(key, signal, (before) => {
      const { pools, ...others } = before?.uid === uid ? before : { uid, pools: {} };
      const memory = size.memory ?? pools[pool.name]?.memory;
      decided = { ...size, count: within(pool, size.count), ...(memory && { memory }) };
      return { ...others, pools: { ...pools, [pool.name]: decided } };
    });
    await this.#cache.waitFor(() => isSame(this.get(key, uid), pool.name, decided), {
      timeoutMs: HEARD_MS,
      what: `the size of pool ${pool.name} of ${key} to be stored`,
      ...(signal && { signal }),
    });
    return decided;
  }

  /** Forgets what was decided for pools that nobody is to decide for any more. Does nothing where no other is stored. */
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

  /** Whether the cluster with this UID was told to sleep, or to be awake. */
  sleepOrder(key: string, uid: string): KnownSleepOrder {
    const decided = this.get(key, uid);
    if (typeof decided === 'string') return decided;
    const { name, namespace } = this.#placeOf(key);
    return receiptIn<Kept>(this.#cache.get(`${namespace}/${name}`))?.sleep ?? 'none';
  }

  /**
   * Writes down that a cluster is to sleep, or to be awake, or that its spec alone says so (undefined); nothing when that is stored already.
   * Resolves when everybody here sees it. Throws CoppiceError when the receipt cannot be read: it may say something about pools.
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
   * The server is asked: a cache that is behind would lose what else was decided. Whoever else decides something about this cluster in the same
   * moment, of this process or another, loses nothing: the change is made once more from what is there then.
   * @param change the receipt as it is to be; undefined: as it is
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

  /** To be called when nothing is left of the cluster; does nothing where there is no receipt. */
  async remove(key: string, signal?: AbortSignal): Promise<void> {
    if (this.has(key)) await this.#receipts.remove(key, signal);
  }
}

/** `namespace/name` of the cluster that a receipt says it is of; undefined when its name is not computed from that. */
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

/** Whether it says something about sizes: half of a receipt would make the other pools shrink to their minimums. */
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
