import { Gathered, hasTooManyValues, inWords } from './answer-limits.ts';
import type { Turns } from './turns.ts';

export interface Exchange {
  method: string;
  path: string;
  /** Names in lower case. */
  headers: Record<string, string | string[]>;
  body?: Buffer | undefined;
  signal?: AbortSignal | undefined;
  /** Longest silence until the head of the answer. */
  headersTimeoutMs: number;
  /** Longest silence within the body; 0: no limit. */
  bodyTimeoutMs: number;
}

/** Head of an answer; the body must be read or dropped. */
export interface ResponseHead {
  statusCode: number;
  headers: Record<string, string | string[] | undefined>;
  /**
   * Resolves at the end of the body, when all of it was handled. Rejects when the body was cut off, with the signal's
   * reason, and with what `onData` throws or rejects with. The next piece comes after the promise of `onData` has
   * resolved.
   */
  read(onData: (chunk: Buffer) => void | Promise<void>): Promise<void>;
  drop(): void;
}

/** A limit, and the error to throw beyond it. */
export interface SizeLimit {
  /** Bytes. */
  most: number;
  tooLarge: (limit: string) => Error;
  /** Turns in which pieces of the answer are handled. Absent: at once. */
  turns?: Turns;
}

/** Reads the body; calls `handle` no more once reading has ended in any way. */
async function readPieces(
  response: ResponseHead,
  { turns }: SizeLimit,
  handle: (piece: Buffer) => void,
): Promise<void> {
  if (!turns) return response.read(handle);
  let isOver = false;
  try {
    await response.read((piece) => turns.take(() => (isOver ? undefined : handle(piece))));
  } finally {
    isOver = true;
  }
}

/** The whole body, checked for the number of bytes and of JSON values. */
export async function bodyTextOf(response: ResponseHead, bound: SizeLimit): Promise<string> {
  const { most, tooLarge } = bound;
  const gathered = new Gathered(most, () => tooLarge(inWords(most)));
  await readPieces(response, bound, (chunk) => gathered.add(chunk));
  return parseable(gathered.take(), bound);
}

/** Calls `onLine` for each complete line; a rest without line end is a cut-off event and is dropped. */
export async function readLines(
  response: ResponseHead,
  bound: SizeLimit,
  onLine: (line: string, bytes: number) => void,
): Promise<void> {
  const { most, tooLarge } = bound;
  const rest = new Gathered(most, () => tooLarge(`${inWords(most)} in one event`));
  await readPieces(response, bound, (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      let line = chunk.subarray(from, end);
      if (rest.length > 0) {
        rest.add(line);
        line = rest.take();
      }
      from = end + 1;
      if (line.length > 0) onLine(parseable(line, bound), line.length + 1);
    }
    if (from < chunk.length) rest.add(chunk.subarray(from));
  });
}

function parseable(text: Buffer, { most, tooLarge }: SizeLimit): string {
  if (hasTooManyValues(text, most)) throw tooLarge('a reasonable number of values');
  return text.toString('utf8');
}
