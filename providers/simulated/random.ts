/** FNV-1a, 32 bits, over UTF-16 code units (draft-eastlake-fnv): spreads keys that differ in one character. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

/** The first number of the generator mulberry32 (Tommy Ettinger, public domain) for this state, in [0, 1). */
function mulberry32(state: number): number {
  let mixed = (state + 0x6d2b79f5) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

/**
 * A number in [0, 1) that depends on seed and key alone. Each question has its own key instead of a turn in one stream,
 * so that one cluster's results do not depend on others' requests.
 */
export const draw = (seed: number, ...key: readonly (string | number)[]): number =>
  mulberry32(fnv1a(`${seed}/${key.join('/')}`));
