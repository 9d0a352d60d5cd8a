import type { Task } from '../../../flow/graph.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from './apply-inside.ts';

/** First task that works inside of the cluster, in every graph that has such tasks. */
const FIRST_INSIDE = 'access';

/**
 * Tasks inside of the cluster are aborted as soon as its API server stops answering: their goal could not be observed,
 * and only a new operation checks whether the API server can come back.
 */
export function whileAnswered(op: Operation, tasks: readonly Task[]): Task[] {
  const insiders = new Set<string>();
  return tasks.map((task) => {
    if (task.id !== FIRST_INSIDE && !task.after?.some((need) => insiders.has(need))) return task;
    insiders.add(task.id);
    return givenUpInSilence(op, task);
  });
}

/** The task, aborted as soon as the API server stops answering. */
export const givenUpInSilence = (op: Operation, task: Task): Task => ({
  ...task,
  run: (signal, acts) => runWhileAnswered(op, (either) => task.run(either, acts), signal),
});

async function runWhileAnswered(op: Operation, run: Task['run'], signal: AbortSignal): Promise<void> {
  const { broken } = shootConnection(op).health;
  try {
    await run(AbortSignal.any([signal, broken]));
  } catch (error) {
    throw broken.aborted && !signal.aborted ? broken.reason : error;
  }
}
