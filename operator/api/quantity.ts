// Suffixes of Kubernetes quantities.
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

/** Rounds away from zero, as Kubernetes does, so that a request never shrinks. */
const divideUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by;

/**
 * Longest text that is parsed, in characters. An API server writes at most 25, and parsing time grows with the square
 * of the digits.
 */
const LONGEST = 64;
/** Characters of the text in an error: its author chose the length. */
const SHOWN = 24;
/** Kubernetes counts quantities in int64 and saturates there (apimachinery, resource.ParseQuantity). */
const MOST = 2n ** 63n - 1n;

function notQuantity(written: unknown): RangeError {
  const text = typeof written === 'string' || typeof written === 'number' ? String(written) : typeof written;
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}... (${text.length} characters)` : text;
  return new RangeError(`"${shown}" is no Kubernetes quantity (examples: 2, 500m, 1.5Gi, 1e3)`);
}

/**
 * Value times `scale`, exact, rounded up: 1000n returns thousandths. Saturates at int64, as Kubernetes does. Throws
 * RangeError for invalid text or more than 64 characters.
 */
export function scaledQuantity(quantity: string | number, scale: bigint): bigint {
  const isNumber = typeof quantity === 'number';
  if (!isNumber && (typeof quantity !== 'string' || quantity.length > LONGEST)) throw notQuantity(quantity);
  const match = QUANTITY.exec(String(quantity).trim());
  const [, sign = '', whole = '', fraction = '', suffix = '', exponent] = match ?? [];
  if (!match || (whole === '' && fraction === '')) throw notQuantity(quantity);
  const unit = exponent === undefined ? SUFFIXES[suffix]! : { base: 10n, exponent: Number(exponent) };
  let numerator = BigInt(whole + fraction) * scale;
  let denominator = 10n ** BigInt(fraction.length);
  if (unit.exponent >= 0) numerator *= unit.base ** BigInt(unit.exponent);
  else denominator *= unit.base ** BigInt(-unit.exponent);
  const exact = divideUp(numerator, denominator);
  const magnitude = exact > MOST * scale ? MOST * scale : exact;
  return sign === '-' ? -magnitude : magnitude;
}

function safe(value: bigint, quantity: string | number): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER)) {
    throw new RangeError(`"${quantity}" is too large to count with`);
  }
  return Number(value);
}

/** Nearest safe integer, so that sums stay exact. NaN becomes 0. */
export const saturatedInteger = (amount: number): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, amount)) || 0;

/** Whether an amount reached the limit of safe integers: it is a lower bound. */
export const isSaturated = (amount: number): boolean => Math.abs(amount) >= Number.MAX_SAFE_INTEGER;

/** Cache of parsed quantities: the same few texts occur in every pod of a cluster. */
class Remembered {
  readonly #parse: (quantity: string | number) => number;
  readonly #known = new Map<string | number, number>();

  constructor(parse: (quantity: string | number) => number) {
    this.#parse = parse;
  }

  /** Throws as the parser does. */
  read(quantity: string | number): number {
    const known = this.#known.get(quantity);
    if (known !== undefined) return known;
    const amount = this.#parse(quantity);
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
    this.#known.set(quantity, amount);
    return amount;
  }
}

const MOST_REMEMBERED = 10_000;
const cpus = new Remembered((quantity) => saturatedInteger(Number(scaledQuantity(quantity, 1000n))));
const bytes = new Remembered((quantity) => saturatedInteger(Number(scaledQuantity(quantity, 1n))));

/**
 * Millicores of a CPU quantity of an untrusted object, rounded up. Saturates for large amounts; throws RangeError for
 * invalid text only. For user input use parseCpu, which reports amounts that are too large.
 */
export const readCpu = (quantity: string | number): number => cpus.read(quantity);

/** Bytes of a memory quantity of an untrusted object; see readCpu. */
export const readBytes = (quantity: string | number): number => bytes.read(quantity);

/** Count (GPUs, pods) of an untrusted object; see readCpu. */
export const readCount = readBytes;

/**
 * Millicores of a CPU quantity, rounded up: "2" is 2000, "250m" is 250. Throws RangeError for invalid text or too large
 * amounts.
 */
export const parseCpu = (quantity: string | number): number => safe(scaledQuantity(quantity, 1000n), quantity);

/**
 * Bytes of a memory quantity, rounded up: "1Ki" is 1024, "128974848" is itself. Throws RangeError for invalid text or
 * too large amounts.
 */
export const parseBytes = (quantity: string | number): number => safe(scaledQuantity(quantity, 1n), quantity);

/** A count (GPUs, pods), rounded up. Throws RangeError for invalid text or too large amounts. */
export const parseCount = parseBytes;

/**
 * Absolute count of a number or a percentage of `total` (`countOrPercent` of a schema); 0 for invalid text. @param
 * round rounding of percentages
 */
export function countOrPercentOf(value: string | number, total: number, round: (part: number) => number): number {
  const number = Number.parseInt(String(value), 10) || 0;
  return Math.max(0, String(value).endsWith('%') ? round((total * number) / 100) : number);
}

/** Canonical CPU quantity: 7500 millicores are "7500m", 8000 are "8". Saturates, so that the result can be parsed. */
export function formatCpu(amount: number): string {
  const millicores = saturatedInteger(amount);
  return millicores % 1000 === 0 ? String(millicores / 1000) : `${millicores}m`;
}

/** Canonical memory quantity in the largest exact binary unit: "8Gi", "12345Ki", "7". Saturates. */
export function formatBytes(amount: number): string {
  const bytes = saturatedInteger(amount);
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
