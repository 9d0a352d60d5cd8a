/** Numbers in [0, 1) that are the same for the same seed, so that a failing random sequence can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // Numerical Recipes' linear congruential generator.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** One of the items. */
export const pick = <T>(random: () => number, items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
