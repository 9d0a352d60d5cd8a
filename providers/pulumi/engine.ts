/**
 * Gets the path of the pulumi executable, which may have to be downloaded or built first. `say` hears what is being done, as
 * one line for people. Rejects with a CoppiceError that says what to do; asked again, it tries again.
 */
export type Engine = (say?: (doing: string) => void) => Promise<string>;

/** The engine, unless the signal aborts first: making one takes minutes, and nobody waits for it who no longer wants anything. */
export function engineUnless(signal: AbortSignal, engine: Engine, say: (doing: string) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    engine((doing) => {
      if (!signal.aborted) say(doing);
    })
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop));
  });
}
