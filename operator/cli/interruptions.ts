/** npm passes a signal on to the program that it runs, which the terminal has told already: one key then comes twice. */
const ONE_KEY_MS = 250;

/** Tells how often a person has asked a program to end, by the signals that came of it. */
export class Interruptions {
  #asked = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /**
   * Counts a signal that has come at that time.
   * @returns what it means: `end` what was begun, `ask` once more, `leave` at once; undefined for a copy of the last
   */
  count(nowMs: number): 'end' | 'ask' | 'leave' | undefined {
    const isCopy = nowMs - this.#lastMs < ONE_KEY_MS;
    this.#lastMs = nowMs;
    if (isCopy) return undefined;
    this.#asked++;
    return this.#asked === 1 ? 'end' : this.#asked === 2 ? 'ask' : 'leave';
  }
}
