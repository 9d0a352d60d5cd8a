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
