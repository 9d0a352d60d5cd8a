/** An event of the virtual clock. @typeParam Done result of run(): a promise where it is awaited */
interface Event<Done = void> {
  /** Milliseconds. */
  readonly at: number;
  /** Whether the event still applies (its machine and cluster exist). */
  isLive(): boolean;
  run(): Done;
}

interface Entry<Done> {
  readonly event: Event<Done>;
  readonly order: number;
}

/** Smaller heaps are not swept. */
const SMALLEST_SWEEP = 1024;

/** Events ordered by time, then by insertion. A binary heap. */
export class EventQueue<Done = void> {
  #heap: Entry<Done>[] = [];
  #order = 0;
  #sweepAt = SMALLEST_SWEEP;

  get size(): number {
    return this.#heap.length;
  }

  /** Time of the next event; undefined: none. */
  get nextAt(): number | undefined {
    return this.#heap[0]?.event.at;
  }

  add(event: Event<Done>): void {
    if (this.#heap.length >= this.#sweepAt) this.#sweep();
    this.#heap.push({ event, order: this.#order++ });
    this.#up(this.#heap.length - 1);
  }

  take(): Event<Done> | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (first && last && this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#down(0);
    }
    return first?.event;
  }

  /** Removes dead events: a long rehearsal would otherwise keep one for every machine that ever existed. */
  #sweep(): void {
    this.#heap = this.#heap.filter(({ event }) => event.isLive()).sort((a, b) => (before(a, b) ? -1 : 1));
    this.#sweepAt = Math.max(SMALLEST_SWEEP, 2 * this.#heap.length);
  }

  #up(index: number): void {
    const entry = this.#heap[index]!;
    let at = index;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(entry, this.#heap[parent]!)) break;
      this.#heap[at] = this.#heap[parent]!;
      at = parent;
    }
    this.#heap[at] = entry;
  }

  #down(index: number): void {
    const entry = this.#heap[index]!;
    let at = index;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && before(this.#heap[child + 1]!, this.#heap[child]!)) child++;
      if (!before(this.#heap[child]!, entry)) break;
      this.#heap[at] = this.#heap[child]!;
      at = child;
    }
    this.#heap[at] = entry;
  }
}

const before = (a: Entry<unknown>, b: Entry<unknown>): boolean =>
  a.event.at < b.event.at || (a.event.at === b.event.at && a.order < b.order);
