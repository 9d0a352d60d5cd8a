import type { Clock } from '../kube/clock.ts';

/**
 * Milliseconds between progress reports by their number so far: after 5, 12, 24 and 41 s, then every 30 s, because each
 * costs one or two writes.
 */
export const progressInterval = (told: number): number => Math.min(30_000, 5_000 * 1.5 ** told);

/** Limits reports to one per interval; later changes are reported at its end, not dropped. */
export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: (told: number) => number;
  readonly #tell: () => void;
  #toldAt: number | undefined;
  /** Number of reports, including the first by anybody. */
  #times = 0;
  #cancel: (() => void) | undefined;

  /** @param intervalMs time between reports, by their number after the first; the first is immediate */
  constructor(clock: Clock, intervalMs: number | ((before: number) => number), tell: () => void) {
    this.#clock = clock;
    this.#intervalMs = typeof intervalMs === 'number' ? () => intervalMs : intervalMs;
    this.#tell = tell;
  }

  /** Schedules a report after a change. `leastMs`: earliest time, to collect more changes. */
  soon(leastMs = 0): void {
    this.#cancel ??= this.#clock.after(Math.max(leastMs, this.#waitMs()), () => this.#due());
  }

  /** Another report was just written: restart the interval. */
  told(): void {
    this.#times ||= 1;
    this.#toldAt = this.#clock.now();
  }

  /** Cancels a pending report. @returns whether there was one */
  stop(): boolean {
    const pending = this.#cancel !== undefined;
    this.#cancel?.();
    this.#cancel = undefined;
    return pending;
  }

  #due(): void {
    this.#cancel = undefined;
    // Another report came in between.
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
