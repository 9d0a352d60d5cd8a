import type { Clock } from '../../kube/clock.ts';

/** Calls `run` at most once per interval, the first time after one; what comes in between is told at its end, not dropped. */
export function pacer(clock: Clock, intervalMs: number, run: () => void): { soon(): void; stop(): void } {
  let last = clock.now();
  let cancel: (() => void) | undefined;
  return {
    soon() {
      cancel ??= clock.after(Math.max(0, last + intervalMs - clock.now()), () => {
        cancel = undefined;
        last = clock.now();
        run();
      });
    },
    stop() {
      cancel?.();
      cancel = undefined;
    },
  };
}
