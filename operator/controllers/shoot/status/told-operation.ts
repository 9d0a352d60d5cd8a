import type { LastOperation } from '../../../api/meta.ts';
import { type PodProblem, problemsText } from '../pod-problems.ts';

/**
 * The running operation as people are told of it, with how long its tasks will still take (`timeLeft`). While a pod cannot start, what tasks
 * took before says nothing: it is told what holds the pod, as "12 s left" stood beside an image that took 14 minutes to be made. Pure.
 */
export function toldOperation(
  operation: LastOperation | undefined,
  timeLeft: string | undefined,
  problems: readonly PodProblem[] = [],
): LastOperation | undefined {
  if (!operation || !timeLeft) return operation;
  const more = problems.length > 0 ? `: ${problemsText(problems.slice(0, 1))}` : ` (${timeLeft})`;
  return { ...operation, description: `${operation.description}${more}` };
}
