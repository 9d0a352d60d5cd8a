import { Gathered, hasTooManyValues, inWords } from './answer-limits.ts';

export interface Exchange {
  method: string;
  path: string;
  /** Names in lower case. */
  headers: Record<string, string | string[]>;
  body?: Buffer | undefined;
  signal?: AbortSignal | undefined;
  /** Silence until the head of the answer. */
  headersTimeoutMs: number;
  /** Silence within its body; 0: no limit. */
  bodyTimeoutMs: number;
}

/** The head of an answer has come; its body must be read or dropped. */
export interface Answer {
  statusCode: number;
  headers: Record<string, string | string[] | undefined>;
  /** Resolves at the end of the body. Rejects when it was cut off, with the signal's reason, and with what `onData` throws. */
  read(onData: (chunk: Buffer) => void): Promise<void>;
  drop(): void;
}

/** What must not come more of, and what is thrown then. */
export interface Bound {
  /** Bytes. */
  most: number;
  tooLarge: (limit: string) => Error;
}

/** The whole body, which may be parsed: it has neither too many bytes nor too many values. */
export async function textOf(response: Answer, { most, tooLarge }: Bound): Promise<string> {
  const gathered = new Gathered(most, () => tooLarge(inWords(most)));
  await response.read((chunk) => gathered.add(chunk));
  return parseable(gathered.take(), { most, tooLarge });
}

/** Calls `onLine` for each complete line; a rest without line end is a cut-off event and is dropped. */
export async function readLines(
  response: Answer,
  { most, tooLarge }: Bound,
  onLine: (line: string, bytes: number) => void,
): Promise<void> {
  const rest = new Gathered(most, () => tooLarge(`${inWords(most)} in one event`));
  await response.read((chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      let line = chunk.subarray(from, end);
      if (rest.length > 0) {
        rest.add(line);
        line = rest.take();
      }
      from = end + 1;
      if (line.length > 0) onLine(parseable(line, { most, tooLarge }), line.length + 1);
    }
    if (from < chunk.length) rest.add(chunk.subarray(from));
  });
}

function parseable(text: Buffer, { most, tooLarge }: Bound): string {
  if (hasTooManyValues(text, most)) throw tooLarge('a reasonable number of values');
  return text.toString('utf8');
}
