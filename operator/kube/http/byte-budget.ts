import { getHeapStatistics } from 'node:v8';

const MIB = 1 << 20;

/** Memory that several holders share. A budget may be part of a larger one, which must have room as well. */
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

  /** False, with nothing taken, when there is no room for so many bytes. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.limit || this.#whole?.take(bytes) === false) return false;
    this.#used += bytes;
    return true;
  }

  /** Counts bytes that are there anyway; fewer than none gives back. */
  count(bytes: number): void {
    this.#used += bytes;
    this.#whole?.count(bytes);
  }
}

/** What each value that objects share takes besides itself: the text that it is found by, and its places in tables. */
const SHARED_EXTRA = 400;

/**
 * Memory of the objects that are kept of one cluster. A frozen part is one that many objects hold: it counts once, for as long as any of
 * them is kept.
 */
export class ObjectBudget {
  readonly #bytes: ByteBudget;
  readonly #shared = new Map<object, { readonly size: number; holders: number }>();

  /** @param limit in bytes @param whole what this is a part of */
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

  /** False, with nothing taken, when there is no room for one more object. */
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

  /** Counts an object that is kept in any case. */
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

  /** Gives back what an object took or was counted for. */
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

/** Half of what this process may have is for what tenants' clusters hold; the rest is for the garden and for the work itself. */
let ofTenants: ByteBudget | undefined;
/** Of that half the part that clusters of one tenant take at most: some is left for those of others. */
const PART_OF_ONE = 3 / 4;
const byTenant = new Map<string, ByteBudget>();

/**
 * What may be kept of one cluster of a tenant (its namespace in the garden). It grows with the memory that this process was given: 64 MiB at
 * least, a quarter of the heap otherwise.
 */
export function tenantBudget(tenant: string): ObjectBudget {
  const heap = getHeapStatistics().heap_size_limit;
  ofTenants ??= new ByteBudget(heap / 2);
  const own = byTenant.get(tenant) ?? new ByteBudget(PART_OF_ONE * ofTenants.limit, ofTenants);
  byTenant.set(tenant, own);
  return new ObjectBudget(Math.max(64 * MIB, heap / 4), own);
}

/**
 * About how much memory a parsed JSON value takes, in bytes.
 * @param onShared called for each frozen part of the value, which then counts only as a reference; absent: all parts count
 */
export function sizeOf(value: unknown, onShared?: (part: object) => void): number {
  let size = 0;
  // Not by recursion, whose depth whoever wrote the value would choose.
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
