/** An IPv4 range: its first address as a number, and the length of its prefix. */
export interface Range {
  first: number;
  bits: number;
}

/** Reads `10.0.0.0/16`; undefined when it is no IPv4 range or its address is not its first. */
export function parseRange(text: string): Range | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (!match) return undefined;
  const [a, b, c, d, bits] = match.slice(1).map(Number) as [number, number, number, number, number];
  if ([a, b, c, d].some((part) => part > 255) || bits > 32) return undefined;
  const first = ((a * 256 + b) * 256 + c) * 256 + d;
  return first % sizeOf(bits) === 0 ? { first, bits } : undefined;
}

const sizeOf = (bits: number): number => 2 ** (32 - bits);

export const formatRange = ({ first, bits }: Range): string =>
  `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${bits}`;

/** Part number `index` of a range cut into 2^`by` equal ones. */
export const partOf = ({ first, bits }: Range, by: number, index: number): Range => ({
  first: first + index * sizeOf(bits + by),
  bits: bits + by,
});

export const overlap = (a: Range, b: Range): boolean =>
  a.first < b.first + sizeOf(b.bits) && b.first < a.first + sizeOf(a.bits);

/** Whether all of `inner` lies in `outer`. */
export const contains = (outer: Range, inner: Range): boolean => outer.bits <= inner.bits && overlap(outer, inner);
