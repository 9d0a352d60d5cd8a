/** Smallest share of workers per seed. */
const LEAST = 16;

/**
 * Limits the workers that shoots of one seed occupy: all workers with one seed, else an equal share. Shoots of a dead
 * seed wait for minutes each, and would occupy all workers.
 */
export class SeedShares {
  readonly #workers: number;
  readonly #seeds: () => number;
  readonly #busy = new Map<string, number>();

  /** @param workers number of workers @param seeds present number of seeds */
  constructor(workers: number, seeds: () => number) {
    this.#workers = workers;
    this.#seeds = seeds;
  }

  /** Occupies a slot of the seed; call the result to release it. undefined: the seed's share is used up. */
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
