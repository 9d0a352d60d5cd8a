import { configurationProblem } from '../api/errors.ts';
import { LABELS, ROLES } from '../api/group.ts';
import { meshReceiptName } from '../api/names.ts';
import { atVersion } from '../kube/applier.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import { InTurn } from '../kube/in-turn.ts';
import type { Informer } from '../kube/informer.ts';
import {
  isReceipt,
  operatorReceiptPlace,
  type ReceiptPlace,
  receiptIn,
  receiptSecret,
  receiptType,
} from '../kube/receipt.ts';
import { SECRETS, type Secret } from '../kube/resources.ts';
import {
  type Allocated,
  allocateRanges,
  keyOfCluster,
  type MeshEntry,
  type MeshReceipt,
  type MeshRequest,
  NO_CLUSTERS,
  rangesIn,
  rangesOverlap,
  release,
  type TakenRanges,
} from './allocate.ts';

const TYPE = receiptType(ROLES.meshReceipt);
/** Selects receipts by the immutable Secret type. */
export const MESH_RECEIPTS = `type=${TYPE}`;
/** Retries after conflicts with another writer. */
const MOST_TRIES = 5;
/** A cache that has not received a write after this time is broken, and reports it itself. */
const HEARD_MS = 10_000;

type Cache = Pick<Informer<Secret>, 'list' | 'absorb' | 'waitFor'>;
type Client = Pick<KubeClient, 'getOrUndefined' | 'create' | 'apply'>;

/** The garden's existing clusters and ranges, read only when a range is allocated. */
interface Surroundings {
  /** Ranges in use outside the mesh; `isKnown`: whether a mesh has an entry for the cluster `namespace/name`. */
  taken(mesh: string, isKnown: (key: string) => boolean): Promise<TakenRanges>;
  /** Whether the cluster with this UID, or a remainder of it, still exists. */
  isThere(key: string, uid: string): boolean;
}

/** A pending change of a mesh's receipt. */
interface Step {
  /** Called again with the newer receipt after a conflict. */
  change(before: MeshReceipt, taken: TakenRanges): MeshReceipt;
  /** Whether the cache has the change. */
  isSeen(): boolean;
}

/** A cluster's entry and its mesh. */
export interface KnownEntry {
  readonly mesh: string;
  readonly entry: MeshEntry;
}

/**
 * Allocations of all meshes: one receipt per mesh, writable by the operator only. It is written at the version that was
 * read, so two operators never allocate one range twice, and before anything is created with it.
 */
export class Meshes {
  readonly #client: Client;
  readonly #namespace: string;
  readonly #cache: Cache;
  readonly #surroundings: Surroundings;
  readonly #turns = new InTurn();
  /** Changes waiting for the next write of a mesh, by its name. */
  readonly #waiting = new Map<string, { readonly steps: Step[]; readonly done: Promise<void> }>();
  readonly #read = new WeakMap<Secret, MeshReceipt>();

  /** @param cache of Secrets selected by MESH_RECEIPTS in the operator's namespace */
  constructor(client: Client, operatorNamespace: string, cache: Cache, surroundings: Surroundings) {
    this.#client = client;
    this.#namespace = operatorNamespace;
    this.#cache = cache;
    this.#surroundings = surroundings;
  }

  /** The cluster's entry; undefined: it is in no mesh. */
  entry(key: string, uid: string): KnownEntry | undefined {
    for (const [mesh, { clusters }] of this.#receipts()) {
      const entry = clusters[key];
      if (entry?.uid === uid) return { mesh, entry };
    }
    return undefined;
  }

  /** Other meshes' clusters whose ranges overlap with these, as `namespace/name`. Sorted. */
  overlapping(key: string, ranges: readonly string[]): string[] {
    const meets = (entry: MeshEntry) =>
      rangesIn([entry]).some((theirs) => ranges.some((own) => rangesOverlap(own, theirs)));
    return this.#receipts()
      .flatMap(([, { clusters }]) => Object.entries(clusters))
      .flatMap(([other, entry]) => (other !== key && meets(entry) ? [other] : []))
      .sort();
  }

  /**
   * Allocates a cluster's entry, or returns the existing one. Requests made during a write are combined in the next
   * write: a hundred new clusters take a few writes.
   * @throws CoppiceError when the receipt cannot be read, since existing allocations are unknown then
   */
  async allocate(request: MeshRequest): Promise<Allocated> {
    const { mesh, cluster } = request;
    let result: Allocated | undefined;
    await this.#together(mesh, {
      change(receipt, taken) {
        result = allocateRanges(receipt, request, taken);
        return result.refused ? receipt : result.receipt;
      },
      isSeen: () => result?.refused !== undefined || this.entry(keyOfCluster(cluster), cluster.uid) !== undefined,
    });
    return result!;
  }

  /** To be called when nothing of the cluster is left; makes no request where it was in no mesh. */
  async release(key: string): Promise<void> {
    for (const mesh of this.#meshesOf(key))
      await this.#together(mesh, {
        change: (receipt) => release(receipt, [key]),
        isSeen: () => !this.#meshesOf(key).includes(mesh),
      });
  }

  #together(mesh: string, step: Step): Promise<void> {
    const waiting = this.#waiting.get(mesh);
    if (waiting) {
      waiting.steps.push(step);
      return waiting.done;
    }
    const steps = [step];
    const done = this.#turns.run(() => {
      this.#waiting.delete(mesh);
      return this.#take(mesh, steps);
    });
    this.#waiting.set(mesh, { steps, done });
    return done;
  }

  async #take(mesh: string, steps: readonly Step[]): Promise<void> {
    const taken = await this.#surroundings.taken(mesh, (key) => this.#meshesOf(key).length > 0);
    await this.#change(mesh, (receipt) => {
      const gone = Object.entries(receipt.clusters).filter(([key, { uid }]) => !this.#surroundings.isThere(key, uid));
      const left = release(
        receipt,
        gone.map(([key]) => key),
      );
      return steps.reduce((before, step) => step.change(before, taken), left);
    });
    await this.#cache.waitFor(() => steps.every((step) => step.isSeen()) || undefined, {
      timeoutMs: HEARD_MS,
      what: `what clusters of mesh ${mesh} were given`,
    });
  }

  #meshesOf(key: string): string[] {
    return this.#receipts().flatMap(([mesh, { clusters }]) => (clusters[key] ? [mesh] : []));
  }

  async #change(mesh: string, change: (before: MeshReceipt) => MeshReceipt): Promise<void> {
    const place = placeOf(this.#namespace, mesh);
    for (let tried = 1; ; tried++) {
      const live = await this.#client.getOrUndefined<Secret>(SECRETS, place.name, place.namespace);
      const before = live ? receiptOf(live, place) : NO_CLUSTERS;
      const after = change(before);
      if (after === before) return;
      const secret = receiptSecret(place, after);
      const version = live?.metadata.resourceVersion;
      try {
        const written =
          version === undefined
            ? await this.#client.create(secret)
            : await this.#client.apply(atVersion(secret, version));
        this.#cache.absorb(written);
        return;
      } catch (error) {
        // Another writer changed the receipt meanwhile.
        const isBehind = error instanceof KubeApiError && error.status === 409;
        if (!isBehind || tried === MOST_TRIES) throw error;
      }
    }
  }

  #receipts(): (readonly [string, MeshReceipt])[] {
    return this.#cache.list().flatMap((secret) => {
      const mesh = secret.metadata.name.slice(meshReceiptName('').length);
      const place = placeOf(this.#namespace, mesh);
      if (place.name !== secret.metadata.name || !isReceipt(secret, place)) return [];
      const known = this.#read.get(secret) ?? receiptIn<MeshReceipt>(secret);
      if (!isMeshReceipt(known)) return [];
      this.#read.set(secret, known);
      return [[mesh, known] as const];
    });
  }
}

const placeOf = (operatorNamespace: string, mesh: string): ReceiptPlace =>
  operatorReceiptPlace(operatorNamespace, meshReceiptName(mesh), ROLES.meshReceipt, { [LABELS.mesh]: mesh });

function receiptOf(secret: Secret, place: ReceiptPlace): MeshReceipt {
  const receipt = isReceipt(secret, place) ? receiptIn<MeshReceipt>(secret) : undefined;
  if (isMeshReceipt(receipt)) return receipt;
  throw configurationProblem(
    `Secret ${place.namespace}/${place.name} does not say what clusters of the mesh were given`,
    'Restore it from a backup, or delete it: Coppice then reads the ranges of running clusters from their Shoots.',
  );
}

/** Whether the whole receipt can be read: half a receipt would lead to double allocations. */
const isMeshReceipt = (receipt: MeshReceipt | undefined): receipt is MeshReceipt =>
  typeof receipt?.clusters === 'object' &&
  receipt.clusters !== null &&
  Array.isArray(receipt.freed) &&
  Object.values(receipt.clusters).every(
    (entry) => typeof entry?.uid === 'string' && Number.isSafeInteger(entry.id) && Array.isArray(entry.given),
  );
