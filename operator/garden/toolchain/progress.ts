import type { ToolName } from './tools.ts';

export type ToolSource = 'cache' | 'path' | 'archive' | 'build' | 'package';

/** An event of a tool: `skipped` with the reason why a source failed; `waiting` for another process that fetches it. */
export interface ProgressEvent {
  tool: ToolName;
  phase: 'working' | 'waiting' | 'skipped' | 'ready';
  source: ToolSource;
  /** 0 to 1, for this tool from this source. */
  fraction?: number;
  /** Estimate until all requested tools are built, or this one is downloaded. */
  remainingSeconds?: number;
  /** For `skipped` the reason, for `ready` the file, otherwise the present activity. */
  detail?: string;
}

export interface ToolWork {
  /** Seconds on the machine on which the weights were measured. */
  weight: number;
  /** 0 to 1; absent before the start. */
  fraction?: number;
  /** Since the start. */
  elapsedSeconds?: number;
}

/** Weight of a running build's own progress against the estimate: full when nearly done. */
const trust = (fraction: number) => Math.min(1, fraction * 1.5);

/**
 * Seconds until all work is done sequentially. `speed`: seconds per unit of weight on this machine. A running build
 * corrects the estimate for itself and increasingly for the rest.
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

/** The `speed` after a build of this weight and duration: the latest build counts half. */
export const learnedSpeed = (speed: number | undefined, weight: number, seconds: number): number => {
  const seen = seconds / weight;
  return speed === undefined ? seen : (speed + seen) / 2;
};
