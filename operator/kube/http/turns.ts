/** So much of each turn of the event loop is for those who wait here, milliseconds. */
const SLICE_MS = 5;

/**
 * Has work done piece by piece, first come first served, for a few milliseconds in each turn of the event loop. The rest of the turn is for
 * whoever else has something to do, however much waits here.
 */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #now: () => number;
  #isArmed = false;

  /** @param now milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Resolves when the piece is done; rejects with what it throws. */
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

/** What API servers of tenants send: one that sends as fast as it is read would keep the operator from all else. */
export const tenantTurns = new Turns();
