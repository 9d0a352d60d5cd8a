import { CoppiceError } from '../../api/errors.ts';

/** Limits on a server's answers, in bytes of text unless said otherwise. */
export interface AnswerLimits {
  /** One page of a list; a longer page is requested again with fewer items. */
  readonly pageBytes: number;
  /** Any other answer, including refusals. */
  readonly objectBytes: number;
  /** One event of a watch. */
  readonly lineBytes: number;
  /** Memory of all pages that `list` holds together. */
  readonly keptBytes: number;
  /** Whether parts of its answers take turns with those of other such servers. */
  readonly inTurns: boolean;
}

const MIB = 1 << 20;

/** etcd takes objects of 1.5 MiB, which are somewhat larger as JSON. */
export const ANSWER_LIMITS: AnswerLimits = {
  pageBytes: 16 * MIB,
  objectBytes: 8 * MIB,
  lineBytes: 4 * MIB,
  keptBytes: Number.POSITIVE_INFINITY,
  inTurns: false,
};

/** Limits for API servers of tenants, which may send anything. */
export const TENANT_LIMITS: AnswerLimits = { ...ANSWER_LIMITS, keptBytes: 128 * MIB, inTurns: true };

/** An answer exceeded a limit. The connection or stream was closed. */
export class AnswerTooLargeError extends CoppiceError {
  /** @param what for example `GET /api/v1/nodes at https://10.0.0.1:6443` @param limit for example `16 MiB in one page` */
  constructor(what: string, limit: string) {
    super('ERR_RETRYABLE_INFRA_DEPENDENCIES', `the answer to ${what} has more than ${limit}`, {
      advice:
        'Remove what makes it so large from that cluster, or look who answers there; it is tried again by itself.',
    });
  }
}

/** Bytes as text: 64 KiB, 16 MiB. */
export const inWords = (bytes: number): string =>
  bytes >= MIB ? `${Math.round(bytes / MIB)} MiB` : `${Math.round(bytes / 1024)} KiB`;

const NOTHING = Buffer.alloc(0);

/** Concatenates pieces of an answer, up to a limit. */
export class Gathered {
  #buffer: Buffer = NOTHING;
  #length = 0;
  /** Whether the buffer may be written to: the first piece belongs to the caller. */
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
   * The first piece is kept without a copy, since most answers have one. Later pieces are copied: each is a view of a
   * larger buffer, which would stay in memory when a server sends single bytes.
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

  /** Returns the gathered bytes and forgets them. */
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

/** Texts up to this size are parsed without a check: they become a few MiB at most. */
const UNSEEN_BYTES = 64 * 1024;
const BYTES_A_VALUE = 16;
const [QUOTE, BACKSLASH, COMMA, BRACE, BRACKET] = [34, 92, 44, 123, 91];

/**
 * Whether a JSON text has so many values that parsing takes many times its size: each `[` of `[[[[` takes 56 bytes of
 * memory.
 * @param most longest text that is accepted, bytes
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

/** Index of the closing quote of the string at `start`. */
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
