/** Says why this process may change nothing now; undefined: it may. */
export type Fence = () => string | undefined;

/** Something was not sent, because this process no longer leads. Only another process, or this one started anew, goes on. */
class FencedError extends Error {
  override readonly name = 'FencedError';
}

const READS = new Set(['GET', 'HEAD']);

let fence: Fence | undefined;

/**
 * Sets who is asked before anything that changes others leaves this process, for all of its clients: which client sends it makes no
 * difference. Without a fence, as in commands and tests, all passes. Absent: takes it away.
 */
export function setFence(next: Fence | undefined): void {
  fence = next;
}

/**
 * To be called in the moment in which something that changes others is sent or begun: what was asked earlier may have waited since.
 * @param what for the error, a noun
 * @throws FencedError
 */
export function passFence(what: string): void {
  const why = fence?.();
  if (why !== undefined) throw new FencedError(`${what} is not sent: ${why}`);
}

/** The same, of an HTTP request. Reads pass. */
export function passFenceToSend(method: string, path: string): void {
  if (!READS.has(method)) passFence(`${method} ${path}`);
}
