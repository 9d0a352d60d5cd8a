import type { LastOperation } from '../../../api/meta.ts';
import { type PodProblem, problemsText } from '../pod-problems.ts';

/** Estimated remaining time of an operation, from earlier durations. */
export interface TimeLeft {
  readonly ms: number;
  readonly at: Date;
}

/** Tolerance beyond twice the estimate: "2 s left" would otherwise stay for a minute on a busy machine. */
const GRACE_MS = 10_000;

/**
 * The running operation for people, with its estimated remaining time. While a pod cannot start, the reason replaces
 * the estimate, which would be wrong: "12 s left" stood beside an image that took 14 minutes to build. Pure.
 */
export function toldOperation(
  operation: LastOperation | undefined,
  timeLeft: TimeLeft | undefined,
  now: Date,
  problems: readonly PodProblem[] = [],
): LastOperation | undefined {
  if (!operation || !timeLeft) return operation;
  const isLate = +now - +timeLeft.at > 2 * timeLeft.ms + GRACE_MS;
  const left = isLate ? 'longer than usual' : `about ${Math.ceil(timeLeft.ms / 1000)} s left`;
  const more = problems.length > 0 ? `: ${problemsText(problems.slice(0, 1))}` : ` (${left})`;
  return { ...operation, description: `${operation.description}${more}` };
}
