import type { ToolName } from './tools.ts';

export type ToolSource = 'cache' | 'path' | 'archive' | 'build' | 'package';

/** What happens to a tool: `skipped` says why a source did not serve; `waiting` that another process is at it. */
export interface ProgressEvent {
  tool: ToolName;
  phase: 'working' | 'waiting' | 'skipped' | 'ready';
  source: ToolSource;
  /** 0 to 1, of this tool from this source. */
  fraction?: number;
  /** Until every tool asked for so far is built, or this one downloaded. An estimate. */
  remainingSeconds?: number;
  /** For `skipped` the reason, for `ready` the file, else what is going on. */
  detail?: string;
}

export interface ToolWork {
  /** Seconds on the machine that the weights were taken on. */
  weight: number;
  /** 0 to 1; absent when it is not begun. */
  fraction?: number;
  /** Since it was begun. */
  elapsedSeconds?: number;
}

/** How much of what a running build has shown counts against what was expected: all of it when it is nearly done. */
const trust = (fraction: number) => Math.min(1, fraction * 1.5);

/**
 * Seconds until all work is done, one after another. `speed` is how many seconds a unit of weight took here before.
 * A running build corrects the estimate for itself and, as it goes, for what follows.
 */
export function estimateRemaining(work: readonly ToolWork[], speed: number): number {
  let remaining = 0;
  let pace = speed;
  for (const item of work) {
    const expected = item.weight * pace;
    const { fraction = 0, elapsedSeconds = 0 } = item;
    if (fraction > 0.02 && elapsedSeconds > 1) {
      const shown = elapsedSeconds / fraction;
      const belief = trust(fraction);
      const total = shown * belief + Math.max(expected, elapsedSeconds) * (1 - belief);
      remaining += Math.max(0, total - elapsedSeconds);
      pace = item.weight > 0 ? pace + (total / item.weight - pace) * belief : pace;
    } else {
      remaining += Math.max(0, expected - elapsedSeconds);
    }
  }
  return Math.round(remaining);
}

/** The next `speed` after a build of this weight took so long: the recent past counts half. */
export const learnedSpeed = (speed: number | undefined, weight: number, seconds: number): number => {
  const seen = seconds / weight;
  return speed === undefined ? seen : (speed + seen) / 2;
};
