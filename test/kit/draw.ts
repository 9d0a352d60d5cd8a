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

/**
 * Seeds that follow each other are made to have nothing to do with each other (the finalizer of MurmurHash3). A mere factor would not do: each
 * choice of the next seed would then be that of this one plus the same number, so that some combinations of choices are never tried.
 */
function spread(seed: number): number {
  let hash = seed >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** Choices of one seed. */
export const draw = (seed: number): Draw => choicesOf(seeded(spread(seed)));

/** Choices by these numbers. */
export function choicesOf(random: () => number): Draw {
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
