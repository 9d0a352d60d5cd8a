import type { Clock } from '../kube/clock.ts';

/** Tells of what changes all the time, at most once per interval; what comes in between is told at its end, not dropped. */
export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #tell: () => void;
  #toldAt: number | undefined;
  #cancel: (() => void) | undefined;

  /** @param intervalMs from one telling to the next; the first time there is nothing to wait for */
  constructor(clock: Clock, intervalMs: number, tell: () => void) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#tell = tell;
  }

  /** Something has changed. `leastMs`: it is told no sooner, with whatever comes until then. */
  soon(leastMs = 0): void {
    this.#cancel ??= this.#clock.after(Math.max(leastMs, this.#waitMs()), () => this.#due());
  }

  /** Somebody else has told just now, so the interval begins anew. */
  told(): void {
    this.#toldAt = this.#clock.now();
  }

  /** What was not told yet is not told any more. @returns whether there was anything */
  stop(): boolean {
    const pending = this.#cancel !== undefined;
    this.#cancel?.();
    this.#cancel = undefined;
    return pending;
  }

  #due(): void {
    this.#cancel = undefined;
    // Somebody has told in the meantime.
    if (this.#waitMs() > 0) {
      this.soon();
      return;
    }
    this.told();
    this.#tell();
  }

  #waitMs(): number {
    return this.#toldAt === undefined ? 0 : Math.max(0, this.#toldAt + this.#intervalMs - this.#clock.now());
  }
}
