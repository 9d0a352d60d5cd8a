import { it } from 'vitest';
import { pick, seeded } from './seeded.ts';

/** What a property is tried with: choices that are the same for the same seed. */
export interface Draw {
  /** In [0, 1). */
  random(): number;
  /** A whole number, both ends included. */
  integer(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** Some of them, perhaps none, in their order. */
  some<T>(items: readonly T[], probability?: number): T[];
  /** All of them in any order. */
  shuffled<T>(items: readonly T[]): T[];
  /** So many of what `make` makes. */
  many<T>(count: number, make: (index: number) => T): T[];
}

/** Choices of one seed. */
export function draw(seed: number): Draw {
  // Seeds that follow each other begin with numbers far apart only when they are spread first (Knuth's multiplicative hash).
  const random = seeded(Math.imul(seed, 2654435761));
  const integer = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  return {
    random,
    integer,
    chance: (probability) => random() < probability,
    pick: (items) => pick(random, items),
    some: (items, probability = 0.5) => items.filter(() => random() < probability),
    shuffled(items) {
      const left = [...items];
      return items.map(() => left.splice(integer(0, left.length - 1), 1)[0]!);
    },
    many: (count, make) => Array.from({ length: count }, (_, index) => make(index)),
  };
}

/** On a machine that does other things as well. */
const PATIENCE_MS = 180_000;

/**
 * A test that something holds whatever is drawn. A failure names its seed: `COPPICE_SEED=<seed>` tries that one alone,
 * `COPPICE_RUNS=<count>` tries more.
 */
export function holds(what: string, body: (choose: Draw) => void | Promise<void>, { runs = 200 } = {}): void {
  it(what, { timeout: PATIENCE_MS }, async () => {
    const { COPPICE_SEED, COPPICE_RUNS } = process.env;
    const first = COPPICE_SEED === undefined ? 1 : Number(COPPICE_SEED);
    const count = COPPICE_SEED === undefined ? Number(COPPICE_RUNS ?? runs) : 1;
    for (let seed = first; seed < first + count; seed++) {
      try {
        await body(draw(seed));
      } catch (error) {
        if (error instanceof Error) error.message = `COPPICE_SEED=${seed}: ${error.message}`;
        throw error;
      }
    }
  });
}
