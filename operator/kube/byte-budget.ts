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

/** Half of what this process may have is for what tenants' clusters hold; the rest is for the garden and for the work itself. */
let ofTenants: ByteBudget | undefined;

/**
 * What may be kept of one tenant's cluster. It grows with the memory that this process was given: 64 MiB at least, a quarter of the
 * heap otherwise. Values that objects share count for each of them.
 */
export function tenantBudget(): ByteBudget {
  const heap = getHeapStatistics().heap_size_limit;
  ofTenants ??= new ByteBudget(heap / 2);
  return new ByteBudget(Math.max(64 * MIB, heap / 4), ofTenants);
}

/** About how much memory a parsed JSON value takes, in bytes. */
export function sizeOf(value: unknown): number {
  let size = 0;
  // Not by recursion, whose depth whoever wrote the value would choose.
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
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
