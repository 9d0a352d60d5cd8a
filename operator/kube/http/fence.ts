/** Returns why this process may not write now; undefined: it may. */
type Fence = () => string | undefined;

/** A write was not sent because this process no longer leads. Only another process or a restart goes on. */
class FencedError extends Error {
  override readonly name = 'FencedError';
}

const READS = new Set(['GET', 'HEAD']);

let fence: Fence | undefined;

/** Sets the fence for all clients of this process. Without a fence, as in commands and tests, all writes pass. */
export function setFence(next: Fence | undefined): void {
  fence = next;
}

/**
 * Checks the fence; call this at the moment of sending, because earlier checks may be stale.
 * @param what noun for the error
 * @throws FencedError
 */
export function passFence(what: string): void {
  const why = fence?.();
  if (why !== undefined) throw new FencedError(`${what} is not sent: ${why}`);
}

/** Like passFence, for an HTTP request. Reads pass. */
export function passFenceToSend(method: string, path: string): void {
  if (!READS.has(method)) passFence(`${method} ${path}`);
}
