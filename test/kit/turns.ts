/** Lets the event loop turn until it is so; for worlds in memory, in which nothing takes time. */
export async function until(what: () => unknown, words: string): Promise<void> {
  for (let turn = 0; turn < 1000; turn++) {
    if (what()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`not in time: ${words}`);
}

/** Lets all that is due come to its turn. */
export async function idle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}
