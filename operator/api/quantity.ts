// Powers of ten and two that Kubernetes quantities may end in.
const SUFFIXES: Record<string, { base: bigint; exponent: number }> = {
  n: { base: 10n, exponent: -9 },
  u: { base: 10n, exponent: -6 },
  m: { base: 10n, exponent: -3 },
  '': { base: 10n, exponent: 0 },
  k: { base: 10n, exponent: 3 },
  M: { base: 10n, exponent: 6 },
  G: { base: 10n, exponent: 9 },
  T: { base: 10n, exponent: 12 },
  P: { base: 10n, exponent: 15 },
  E: { base: 10n, exponent: 18 },
  Ki: { base: 2n, exponent: 10 },
  Mi: { base: 2n, exponent: 20 },
  Gi: { base: 2n, exponent: 30 },
  Ti: { base: 2n, exponent: 40 },
  Pi: { base: 2n, exponent: 50 },
  Ei: { base: 2n, exponent: 60 },
};
const QUANTITY = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?$/;

/** Rounds away from zero, as Kubernetes does: a request is never made smaller than it was written. */
const divideUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by;

/** Value times `scale`, exact, rounded up: 1000n gives thousandths. Throws RangeError when it is no quantity. */
export function scaled(quantity: string | number, scale: bigint): bigint {
  const written = String(quantity).trim();
  const match = QUANTITY.exec(written);
  const [, sign = '', whole = '', fraction = '', suffix = '', exponent] = match ?? [];
  if (!match || (whole === '' && fraction === '')) {
    throw new RangeError(`"${written}" is no Kubernetes quantity (examples: 2, 500m, 1.5Gi, 1e3)`);
  }
  const unit = exponent === undefined ? SUFFIXES[suffix]! : { base: 10n, exponent: Number(exponent) };
  let numerator = BigInt(whole + fraction) * scale;
  let denominator = 10n ** BigInt(fraction.length);
  if (unit.exponent >= 0) numerator *= unit.base ** BigInt(unit.exponent);
  else denominator *= unit.base ** BigInt(-unit.exponent);
  const magnitude = divideUp(numerator, denominator);
  return sign === '-' ? -magnitude : magnitude;
}

function safe(value: bigint, quantity: string | number): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER)) {
    throw new RangeError(`"${quantity}" is too large to count with`);
  }
  return Number(value);
}

/** Millicores of a CPU quantity, rounded up: "2" is 2000, "250m" is 250. Throws RangeError on anything else. */
export const parseCpu = (quantity: string | number): number => safe(scaled(quantity, 1000n), quantity);

/** Bytes of a memory quantity, rounded up: "1Ki" is 1024, "128974848" is itself. Throws RangeError on anything else. */
export const parseBytes = (quantity: string | number): number => safe(scaled(quantity, 1n), quantity);

/** A whole count (GPUs, pods), rounded up. Throws RangeError on anything else. */
export const parseCount = parseBytes;

/** So many, or a part of `total`, as `countOrPercent` of a schema is written; 0 for what is neither. @param round what a part is rounded by */
export function countOf(value: string | number, total: number, round: (part: number) => number): number {
  const number = Number.parseInt(String(value), 10) || 0;
  return Math.max(0, String(value).endsWith('%') ? round((total * number) / 100) : number);
}

/** Canonical CPU quantity of so many millicores: 7500 is "7500m", 8000 is "8". */
export const formatCpu = (millicores: number): string =>
  millicores % 1000 === 0 ? String(millicores / 1000) : `${millicores}m`;

/** Canonical memory quantity of so many bytes, in the largest binary unit that loses nothing: "8Gi", "12345Ki", "7". */
export function formatBytes(bytes: number): string {
  if (bytes === 0) return '0';
  for (const [suffix, exponent] of [
    ['Ei', 60],
    ['Pi', 50],
    ['Ti', 40],
    ['Gi', 30],
    ['Mi', 20],
    ['Ki', 10],
  ] as const) {
    if (bytes % 2 ** exponent === 0) return `${bytes / 2 ** exponent}${suffix}`;
  }
  return String(bytes);
}
