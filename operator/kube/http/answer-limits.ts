import { CoppiceError } from '../../api/errors.ts';

/** How much is taken from a server before its answer counts as one that never ends. All in bytes of text unless said otherwise. */
export interface AnswerLimits {
  /** One page of a list; a longer one is asked for again in smaller pieces. */
  readonly pageBytes: number;
  /** Any other answer, and what it says when it refuses. */
  readonly objectBytes: number;
  /** One event of a watch. */
  readonly lineBytes: number;
  /** What `list` holds of all pages together, as it lies in memory. */
  readonly keptBytes: number;
  /** Whether pieces of its answers are handled in turns with those of all such servers. */
  readonly inTurns: boolean;
}

const MIB = 1 << 20;

/** etcd takes objects of 1.5 MiB, which are some larger as JSON. */
export const ANSWER_LIMITS: AnswerLimits = {
  pageBytes: 16 * MIB,
  objectBytes: 8 * MIB,
  lineBytes: 4 * MIB,
  keptBytes: Number.POSITIVE_INFINITY,
  inTurns: false,
};

/** For API servers of tenants: whoever runs one may answer what they like. */
export const TENANT_LIMITS: AnswerLimits = { ...ANSWER_LIMITS, keptBytes: 128 * MIB, inTurns: true };

/** A server answered more than is taken from it. The connection or stream that it came on is closed. */
export class AnswerTooLargeError extends CoppiceError {
  /** @param what for example `GET /api/v1/nodes at https://10.0.0.1:6443` @param limit for example `16 MiB in one page` */
  constructor(what: string, limit: string) {
    super('ERR_RETRYABLE_INFRA_DEPENDENCIES', `the answer to ${what} has more than ${limit}`, {
      advice:
        'Remove what makes it so large from that cluster, or look who answers there; it is tried again by itself.',
    });
  }
}

/** Bytes in words: 64 KiB, 16 MiB. */
export const inWords = (bytes: number): string =>
  bytes >= MIB ? `${Math.round(bytes / MIB)} MiB` : `${Math.round(bytes / 1024)} KiB`;

const NOTHING = Buffer.alloc(0);

/** Pieces of an answer put together, up to a limit. */
export class Gathered {
  #buffer: Buffer = NOTHING;
  #length = 0;
  /** Whether the buffer may be written to: the first piece belongs to whoever brought it. */
  #isOwn = false;
  readonly #most: number;
  readonly #tooLarge: () => Error;

  constructor(most: number, tooLarge: () => Error) {
    this.#most = most;
    this.#tooLarge = tooLarge;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * The first piece is kept as it came, since most answers come in one. Further ones are copied: each is a view of a larger buffer, which a
   * server that sends single bytes would make us keep.
   */
  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#most) throw this.#tooLarge();
    if (this.#length === 0) {
      this.#buffer = piece;
    } else {
      if (length > this.#buffer.length || !this.#isOwn) this.#grow(length);
      piece.copy(this.#buffer, this.#length);
    }
    this.#length = length;
  }

  /** What was gathered, which is forgotten here. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#buffer = NOTHING;
    this.#length = 0;
    this.#isOwn = false;
    return taken;
  }

  #grow(length: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.min(this.#most, Math.max(length, 2 * this.#length)));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
    this.#isOwn = true;
  }
}

/** Below this a text is parsed unseen: the most it can become is a few MiB. */
const UNSEEN_BYTES = 64 * 1024;
const BYTES_A_VALUE = 16;
const [QUOTE, BACKSLASH, COMMA, BRACE, BRACKET] = [34, 92, 44, 123, 91];

/**
 * Whether a JSON text has so many values that parsing it takes many times its own size: `[[[[` is 56 bytes in memory for each of text.
 * @param most length of the longest text that is taken at all, in bytes
 */
export function hasTooManyValues(text: Buffer, most: number): boolean {
  if (text.length <= UNSEEN_BYTES) return false;
  const values = most / BYTES_A_VALUE;
  let seen = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at];
    if (byte === QUOTE) {
      at = endOfString(text, at);
    } else if ((byte === COMMA || byte === BRACE || byte === BRACKET) && ++seen > values) {
      return true;
    }
  }
  return false;
}

/** Of the string that begins at `start`. */
function endOfString(text: Buffer, start: number): number {
  let end = text.indexOf(QUOTE!, start + 1);
  while (end >= 0) {
    let escapes = 0;
    while (text[end - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
    end = text.indexOf(QUOTE!, end + 1);
  }
  return text.length;
}
