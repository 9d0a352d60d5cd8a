/**
 * Returns the path of the pulumi executable, downloading or building it if necessary. `say` gets the progress, one line
 * for people. Rejects with a CoppiceError that says what to do; a later call retries.
 */
export type Engine = (say?: (doing: string) => void) => Promise<string>;

/** Resolves with the engine, or rejects on abort: making an engine takes minutes. */
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
