/** Who asks for a place. */
export interface Ticket {
  /** Places are bounded per group (account and region), and groups take turns. */
  group: string;
  /** At most one holder of a place has this name (the stack). */
  exclusive: string;
}

export interface Limits {
  total: number;
  perGroup: number;
}

/**
 * Pure: index of the ticket that comes next, or -1. Groups with fewest places first, among equals the one served longest ago;
 * within a group first come, first served.
 */
export function nextTicket(
  waiting: readonly Ticket[],
  holding: readonly Ticket[],
  limits: Limits,
  servedAt: ReadonlyMap<string, number>,
): number {
  if (holding.length >= limits.total) return -1;
  const taken = new Set(holding.map((ticket) => ticket.exclusive));
  const places = new Map<string, number>();
  for (const { group } of holding) places.set(group, (places.get(group) ?? 0) + 1);

  let best = -1;
  const seen = new Set<string>();
  for (const [i, { group, exclusive }] of waiting.entries()) {
    if (seen.has(group) || taken.has(exclusive) || (places.get(group) ?? 0) >= limits.perGroup) continue;
    seen.add(group);
    if (best === -1) best = i;
    else {
      const other = waiting[best]!.group;
      const more = (places.get(group) ?? 0) - (places.get(other) ?? 0);
      if (more < 0 || (more === 0 && (servedAt.get(group) ?? 0) < (servedAt.get(other) ?? 0))) best = i;
    }
  }
  return best;
}

interface Waiting extends Ticket {
  admit(release: () => void): void;
}

/** Gives places to tickets, bounded and in turns. */
export class FairQueue {
  readonly #limits: Limits;
  readonly #waiting: Waiting[] = [];
  readonly #holding: Ticket[] = [];
  readonly #servedAt = new Map<string, number>();
  #served = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves to a function that gives the place back, when there is one. Rejects with the signal's reason when it aborts first. */
  acquire(ticket: Ticket, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason);
      };
      const entry: Waiting = {
        ...ticket,
        admit: (release) => {
          signal.removeEventListener('abort', leave);
          resolve(release);
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      // A group that comes anew goes behind those that wait already, but before the one that was served last.
      if (!this.#servedAt.has(ticket.group)) this.#servedAt.set(ticket.group, this.#served - 0.5);
      this.#waiting.push(entry);
      this.#admit();
    });
  }

  #admit(): void {
    for (;;) {
      const i = nextTicket(this.#waiting, this.#holding, this.#limits, this.#servedAt);
      const [entry] = i === -1 ? [] : this.#waiting.splice(i, 1);
      if (!entry) return;
      this.#servedAt.set(entry.group, ++this.#served);
      this.#holding.push(entry);
      let isHeld = true;
      entry.admit(() => {
        if (!isHeld) return;
        isHeld = false;
        this.#holding.splice(this.#holding.indexOf(entry), 1);
        this.#forget(entry.group);
        this.#admit();
      });
    }
  }

  /** Accounts come and go: a group that nobody waits in or holds a place of is not remembered. */
  #forget(group: string): void {
    const isKnown = [...this.#waiting, ...this.#holding].some((ticket) => ticket.group === group);
    if (!isKnown) this.#servedAt.delete(group);
  }
}
