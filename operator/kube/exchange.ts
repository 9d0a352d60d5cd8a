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

/** The whole body. */
export async function textOf(response: Answer): Promise<string> {
  const chunks: Buffer[] = [];
  await response.read((chunk) => chunks.push(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

/** Calls `onLine` for each complete line; a rest without line end is a cut-off event and is dropped. */
export async function readLines(response: Answer, onLine: (line: string, bytes: number) => void): Promise<void> {
  let rest: Buffer[] = [];
  await response.read((chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const piece = chunk.subarray(from, end);
      // Joined only here, so that an event of many chunks is copied once.
      const line = rest.length > 0 ? Buffer.concat([...rest, piece]) : piece;
      rest = [];
      from = end + 1;
      if (line.length > 0) onLine(line.toString('utf8'), line.length + 1);
    }
    if (from < chunk.length) rest.push(chunk.subarray(from));
  });
}
