import type { LastOperation } from '../../api/meta.ts';
import { Flow, type FlowResult, type Progress, type Task } from '../../flow/graph.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { Pacer } from '../pacer.ts';
import { operation } from '../status-writer.ts';
import type { Operation } from './operation.ts';

/** Progress is for people: more often than this nobody reads it, and each time is two writes (Shoot and WorkerCluster). */
const PROGRESS_INTERVAL_MS = 5_000;
/** A look that finds all in order is over by then, and changes that come together are told together. */
const CHANGES_MS = 1_000;

/**
 * Runs the tasks, and tells how far they are where somebody is waiting for it (`visible`). What changes meanwhile is told in either case:
 * a task may wait for minutes, and what was said before it began is no longer true.
 */
export async function runFlow(
  op: Operation,
  { tasks, type, visible }: { tasks: Task[]; type: LastOperation['type']; visible: boolean },
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<FlowResult> {
  const { state, deps } = op;
  // What an operation of another kind met says nothing about this one.
  for (const taskID of state.errors.keys()) if (!tasks.some(({ id }) => id === taskID)) state.errors.delete(taskID);
  const pace = new Pacer(clock, PROGRESS_INTERVAL_MS, () => op.notice());
  const onProgress = (progress: Progress) => {
    if (!visible) return;
    // Where all that runs only looks whether there is anything to do, nothing new is said.
    const before = progress.running.length > 0 ? state.operation?.description : undefined;
    const description = progress.description || before || 'finishing';
    state.timeLeft = progress.description ? { ms: progress.remainingMs, at: deps.now() } : undefined;
    state.operation = operation(
      state.operation,
      { type, state: 'Processing', progress: Math.min(99, progress.percent), description },
      deps.now(),
    );
    // Told at the end of the interval, not dropped: what follows may be a long wait, under the title of something long over.
    pace.soon();
  };
  state.changed = () => pace.soon(CHANGES_MS);
  if (state.untold) state.changed();
  state.untold = false;
  state.told = () => pace.told();
  try {
    return await new Flow(`${type} ${op.shoot.metadata.name}`, tasks).run({
      signal,
      durations: deps.durations,
      onProgress,
      onSucceeded: (taskID) => {
        state.errors.delete(taskID);
        state.failures.delete(taskID);
      },
    });
  } finally {
    state.changed = undefined;
    state.told = undefined;
    state.timeLeft = undefined;
    state.untold = pace.stop();
  }
}
