/** npm forwards a signal to the program that already got it from the terminal: one key press arrives twice. */
const ONE_KEY_MS = 250;

/** Counts how often the person asked the program to end. */
export class Interruptions {
  #asked = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /**
   * Counts a signal received at `nowMs`.
   * @returns `end`: end gracefully, `ask`: the person asks again, `leave`: exit at once. Undefined: npm's copy of the last signal
   */
  count(nowMs: number): 'end' | 'ask' | 'leave' | undefined {
    const isCopy = nowMs - this.#lastMs < ONE_KEY_MS;
    this.#lastMs = nowMs;
    if (isCopy) return undefined;
    this.#asked++;
    return this.#asked === 1 ? 'end' : this.#asked === 2 ? 'ask' : 'leave';
  }
}
