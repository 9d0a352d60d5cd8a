/** Part of each turn of the event loop for this work, ms. */
const SLICE_MS = 5;

/**
 * Runs small pieces of work first come, first served, for a few milliseconds in each turn of the event loop, so that
 * timers and requests get the rest.
 */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #now: () => number;
  #isArmed = false;

  /** @param now milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Runs a piece. Resolves when it is done; rejects with what it throws. */
  take(piece: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          piece();
          resolve();
        } catch (error) {
          reject(error);
        }
      });
      this.#arm();
    });
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      const end = this.#now() + SLICE_MS;
      do this.#waiting.shift()?.();
      while (this.#waiting.length > 0 && this.#now() < end);
      if (this.#waiting.length > 0) this.#arm();
    });
  }
}

/** Turns for answers of tenants' API servers: one that sends without pause would starve the operator. */
export const tenantTurns = new Turns();
