/** However many seeds there are, each may keep so many workers busy. */
const LEAST = 16;

/**
 * How many workers the shoots of one seed may keep busy at once: as many as there are while there is one seed, else an equal share. Those of
 * a seed that does not answer wait for minutes each, and would leave none for the others.
 */
export class SeedShares {
  readonly #workers: number;
  readonly #seeds: () => number;
  readonly #busy = new Map<string, number>();

  /** @param workers how many there are @param seeds how many seeds there are now */
  constructor(workers: number, seeds: () => number) {
    this.#workers = workers;
    this.#seeds = seeds;
  }

  /** Takes a place among the seed's; to be called when it is free again. undefined: the seed has its share, and somebody else's turn it is. */
  enter(seed: string): (() => void) | undefined {
    const busy = this.#busy.get(seed) ?? 0;
    if (busy >= Math.max(LEAST, Math.floor(this.#workers / Math.max(1, this.#seeds())))) return undefined;
    this.#busy.set(seed, busy + 1);
    return () => {
      const left = (this.#busy.get(seed) ?? 1) - 1;
      if (left === 0) this.#busy.delete(seed);
      else this.#busy.set(seed, left);
    };
  }
}
