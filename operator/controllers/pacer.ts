import type { Clock } from '../kube/clock.ts';

/**
 * Milliseconds from one report of progress to the next, when so many were made. Each is a write or two, so who waits for long is told more
 * rarely: after 5, 12, 24 and 41 s, and then every half a minute.
 */
export const progressInterval = (told: number): number => Math.min(30_000, 5_000 * 1.5 ** told);

/** Tells of what changes all the time, at most once per interval; what comes in between is told at its end, not dropped. */
export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: (told: number) => number;
  readonly #tell: () => void;
  #toldAt: number | undefined;
  /** How often it has told, the first time by whomever. */
  #times = 0;
  #cancel: (() => void) | undefined;

  /** @param intervalMs from one telling to the next, when so many came after the first; the first time there is nothing to wait for */
  constructor(clock: Clock, intervalMs: number | ((before: number) => number), tell: () => void) {
    this.#clock = clock;
    this.#intervalMs = typeof intervalMs === 'number' ? () => intervalMs : intervalMs;
    this.#tell = tell;
  }

  /** Something has changed. `leastMs`: it is told no sooner, with whatever comes until then. */
  soon(leastMs = 0): void {
    this.#cancel ??= this.#clock.after(Math.max(leastMs, this.#waitMs()), () => this.#due());
  }

  /** Somebody else has told just now, so the interval begins anew. */
  told(): void {
    this.#times ||= 1;
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
    if (this.#times > 0) this.#times++;
    this.told();
    this.#tell();
  }

  #waitMs(): number {
    if (this.#toldAt === undefined) return 0;
    return Math.max(0, this.#toldAt + this.#intervalMs(this.#times - 1) - this.#clock.now());
  }
}
