import type { Task } from '../../../flow/graph.ts';
import type { Operation } from '../operation.ts';
import { inside } from './apply-inside.ts';

/** The first task that works in the cluster, in every graph that has any. */
const FIRST_INSIDE = 'access';

/**
 * The tasks, of which those that work in the cluster are given up as soon as its API server stops answering: what they wait for could not
 * be seen to come, and only a new operation looks whether the API server can come back at all.
 */
export function whileAnswered(op: Operation, tasks: readonly Task[]): Task[] {
  const insiders = new Set<string>();
  return tasks.map((task) => {
    if (task.id !== FIRST_INSIDE && !task.after?.some((need) => insiders.has(need))) return task;
    insiders.add(task.id);
    return givenUpInSilence(op, task);
  });
}

/** The task, given up as soon as the API server stops answering. */
export const givenUpInSilence = (op: Operation, task: Task): Task => ({
  ...task,
  run: (signal, acts) => runWhileAnswered(op, (either) => task.run(either, acts), signal),
});

async function runWhileAnswered(op: Operation, run: Task['run'], signal: AbortSignal): Promise<void> {
  const { broken } = inside(op).health;
  try {
    await run(AbortSignal.any([signal, broken]));
  } catch (error) {
    throw broken.aborted && !signal.aborted ? broken.reason : error;
  }
}
