import { pick, seeded } from './seeded.ts';

/** What a property is tried with: choices that are the same for the same seed. */
export interface Draw {
  /** In [0, 1). */
  random: () => number;
  /** A whole number, both ends included. */
  integer: (from: number, to: number) => number;
  chance: (probability: number) => boolean;
  pick: <T>(items: readonly T[]) => T;
  /** Some of them, perhaps none, in their order. */
  some: <T>(items: readonly T[], probability?: number) => T[];
  /** All of them in any order. */
  shuffled: <T>(items: readonly T[]) => T[];
  /** So many of what `make` makes. */
  many: <T>(count: number, make: (index: number) => T) => T[];
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
    shuffled: (items) => {
      const left = [...items];
      return items.map(() => left.splice(integer(0, left.length - 1), 1)[0]!);
    },
    many: (count, make) => Array.from({ length: count }, (_, index) => make(index)),
  };
}
