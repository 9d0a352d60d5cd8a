import { getHeapStatistics } from 'node:v8';

const MIB = 1 << 20;

/** A memory budget that several holders share. It may be part of a larger budget, which must have room too. */
export class ByteBudget {
  readonly limit: number;
  readonly #whole: ByteBudget | undefined;
  #used = 0;

  /** @param limit in bytes */
  constructor(limit: number, whole?: ByteBudget) {
    this.limit = limit;
    this.#whole = whole;
  }

  get used(): number {
    return this.#used;
  }

  /** Returns false and takes nothing when there is no room. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.limit || this.#whole?.take(bytes) === false) return false;
    this.#used += bytes;
    return true;
  }

  /** Counts bytes that exist anyway; a negative number gives back. */
  count(bytes: number): void {
    this.#used += bytes;
    this.#whole?.count(bytes);
  }
}

/** Overhead of each shared value: its key and its entries in tables, bytes. */
const SHARED_EXTRA = 400;

/**
 * Memory budget for cached objects of one cluster. A frozen part may be shared by many objects and counts once while
 * any of them is cached.
 */
export class ObjectBudget {
  readonly #bytes: ByteBudget;
  readonly #shared = new Map<object, { readonly size: number; holders: number }>();

  /** @param limit in bytes @param whole the budget that this one is part of */
  constructor(limit: number, whole?: ByteBudget) {
    this.#bytes = new ByteBudget(limit, whole);
  }

  get limit(): number {
    return this.#bytes.limit;
  }

  /** Bytes. */
  get used(): number {
    return this.#bytes.used;
  }

  /** Returns false and takes nothing when there is no room for the object. */
  take(object: object): boolean {
    const { own, shared } = partsOf(object);
    let bytes = own;
    const fresh = new Map<object, number>();
    for (const part of shared) {
      if (this.#shared.has(part) || fresh.has(part)) continue;
      const size = sharedSize(part);
      fresh.set(part, size);
      bytes += size;
    }
    if (!this.#bytes.take(bytes)) return false;
    for (const [part, size] of fresh) this.#shared.set(part, { size, holders: 0 });
    for (const part of shared) this.#shared.get(part)!.holders++;
    return true;
  }

  /** Counts an object that is cached in any case. */
  count(object: object): void {
    const { own, shared } = partsOf(object);
    let bytes = own;
    for (const part of shared) {
      const known = this.#shared.get(part);
      if (known) {
        known.holders++;
        continue;
      }
      const size = sharedSize(part);
      this.#shared.set(part, { size, holders: 1 });
      bytes += size;
    }
    this.#bytes.count(bytes);
  }

  /** Gives back the bytes of an object. */
  release(object: object): void {
    const { own, shared } = partsOf(object);
    let bytes = own;
    for (const part of shared) {
      const known = this.#shared.get(part);
      if (!known || --known.holders > 0) continue;
      this.#shared.delete(part);
      bytes += known.size;
    }
    this.#bytes.count(-bytes);
  }
}

function partsOf(object: object): { own: number; shared: object[] } {
  const shared: object[] = [];
  const own = sizeOf(object, (part) => shared.push(part));
  return { own, shared };
}

const sharedSize = (part: object): number => 2 * sizeOf(part) + SHARED_EXTRA;

/** Half of the heap is for objects of tenants' clusters; the rest is for the garden and the work itself. */
let ofTenants: ByteBudget | undefined;
/** Largest part of that half for clusters of one tenant, so that others have room. */
const PART_OF_ONE = 3 / 4;
const byTenant = new Map<string, ByteBudget>();

/**
 * Budget for cached objects of one cluster of a tenant (a namespace in the garden): a quarter of the heap, at least 64
 * MiB.
 */
export function tenantBudget(tenant: string): ObjectBudget {
  const heap = getHeapStatistics().heap_size_limit;
  ofTenants ??= new ByteBudget(heap / 2);
  const own = byTenant.get(tenant) ?? new ByteBudget(PART_OF_ONE * ofTenants.limit, ofTenants);
  byTenant.set(tenant, own);
  return new ObjectBudget(Math.max(64 * MIB, heap / 4), own);
}

/**
 * Approximate memory of a parsed JSON value, bytes.
 * @param onShared called for each frozen part, which then counts as a reference only. Absent: all parts count
 */
export function sizeOf(value: unknown, onShared?: (part: object) => void): number {
  let size = 0;
  // An explicit stack instead of recursion: the author of the value chooses its depth.
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (onShared && next !== value && typeof next === 'object' && next !== null && Object.isFrozen(next)) {
      onShared(next);
      continue;
    }
    if (typeof next === 'string') {
      size += 24 + next.length;
    } else if (Array.isArray(next)) {
      size += 32 + 8 * next.length;
      for (const item of next) open.push(item);
    } else if (typeof next === 'object' && next !== null) {
      size += 56;
      for (const key in next) {
        size += 16;
        open.push((next as Record<string, unknown>)[key]);
      }
    }
  }
  return size;
}
