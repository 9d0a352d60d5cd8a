import type { LastOperation } from '../../../api/meta.ts';
import { type PodProblem, problemsText } from '../pod-problems.ts';

/** How long an operation would still take, at a time, as far as its tasks took before. */
export interface TimeLeft {
  readonly ms: number;
  readonly at: Date;
}

/** Later than twice the time that was told, and this much: "2 s left" stood for a minute on a busy machine. */
const GRACE_MS = 10_000;

/**
 * The running operation as people are told of it, with how long its tasks will still take. While a pod cannot start, what tasks took before
 * says nothing: it is told what holds the pod, as "12 s left" stood beside an image that took 14 minutes to be made. Pure.
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
