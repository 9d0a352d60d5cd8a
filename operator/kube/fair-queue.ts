/** A request for a slot. */
export interface Ticket {
  /** Namespace in the garden; tenants take turns. */
  tenant: string;
  /** Account and region. Slots are bounded per group across tenants; groups of one tenant take turns. */
  group: string;
  /** At most one slot holder has this name (the Pulumi stack). */
  exclusive: string;
}

interface Limits {
  total: number;
  perGroup: number;
}

/** Key of one tenant's group. */
const lineOf = ({ tenant, group }: Ticket): string => `${tenant}\n${group}`;

/**
 * Index of the ticket that comes next, or -1. The tenant with the fewest slots goes first, ties by longest ago served;
 * the same rule orders groups of a tenant; a group is first come, first served. Pure.
 * @param servedAt by tenant, and by group of a tenant (`tenant\ngroup`)
 */
export function nextTicket(
  waiting: readonly Ticket[],
  holding: readonly Ticket[],
  limits: Limits,
  servedAt: ReadonlyMap<string, number>,
): number {
  if (holding.length >= limits.total) return -1;
  const taken = new Set(holding.map((ticket) => ticket.exclusive));
  const places = countBy(holding, ({ group }) => group);
  const ofTenant = countBy(holding, ({ tenant }) => tenant);
  const ofLine = countBy(holding, lineOf);
  const rank = (ticket: Ticket) => [
    ofTenant.get(ticket.tenant) ?? 0,
    servedAt.get(ticket.tenant) ?? 0,
    ofLine.get(lineOf(ticket)) ?? 0,
    servedAt.get(lineOf(ticket)) ?? 0,
  ];

  let best = -1;
  const seen = new Set<string>();
  for (const [i, ticket] of waiting.entries()) {
    const { group, exclusive } = ticket;
    if (seen.has(lineOf(ticket)) || taken.has(exclusive) || (places.get(group) ?? 0) >= limits.perGroup) continue;
    seen.add(lineOf(ticket));
    if (best === -1 || isBefore(rank(ticket), rank(waiting[best]!))) best = i;
  }
  return best;
}

function countBy(tickets: readonly Ticket[], what: (ticket: Ticket) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const ticket of tickets) counts.set(what(ticket), (counts.get(what(ticket)) ?? 0) + 1);
  return counts;
}

/** Compares two lists by their first different number. */
function isBefore(one: readonly number[], other: readonly number[]): boolean {
  const at = one.findIndex((number, index) => number !== other[index]);
  return at !== -1 && one[at]! < other[at]!;
}

interface Waiting extends Ticket {
  admit(release: () => void): void;
}

/** Hands out slots to tickets: bounded, and fair across tenants. */
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

  /**
   * Resolves with a function that releases the slot, once a slot is free. Rejects with the signal's reason on abort.
   */
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
      // A new tenant or group queues behind those that already wait, but before the one served last.
      for (const who of [ticket.tenant, lineOf(ticket)])
        if (!this.#servedAt.has(who)) this.#servedAt.set(who, this.#served - 0.5);
      this.#waiting.push(entry);
      this.#admit();
    });
  }

  #admit(): void {
    for (;;) {
      const i = nextTicket(this.#waiting, this.#holding, this.#limits, this.#servedAt);
      const [entry] = i === -1 ? [] : this.#waiting.splice(i, 1);
      if (!entry) return;
      this.#served++;
      this.#servedAt.set(entry.tenant, this.#served);
      this.#servedAt.set(lineOf(entry), this.#served);
      this.#holding.push(entry);
      let isHeld = true;
      entry.admit(() => {
        if (!isHeld) return;
        isHeld = false;
        this.#holding.splice(this.#holding.indexOf(entry), 1);
        this.#forget(entry);
        this.#admit();
      });
    }
  }

  /** Drops tenants and groups that neither wait nor hold a slot: accounts come and go. */
  #forget(gone: Ticket): void {
    const known = [...this.#waiting, ...this.#holding];
    if (!known.some(({ tenant }) => tenant === gone.tenant)) this.#servedAt.delete(gone.tenant);
    if (!known.some((ticket) => lineOf(ticket) === lineOf(gone))) this.#servedAt.delete(lineOf(gone));
  }
}
