import type { LastOperation } from '../../api/meta.ts';
import { Flow, type FlowResult, type Progress, type Task } from '../../flow/graph.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { Pacer, progressInterval } from '../pacer.ts';
import { operation } from '../status-writer.ts';
import type { Operation } from './operation.ts';

/** What changes is told no more often: each time is two writes (Shoot and WorkerCluster). */
const CHANGES_INTERVAL_MS = 5_000;
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
  const changes = new Pacer(clock, CHANGES_INTERVAL_MS, () => op.notice());
  const progress = new Pacer(clock, progressInterval, () => op.notice());
  const onProgress = (seen: Progress) => {
    if (!visible) return;
    // Where all that runs only looks whether there is anything to do, nothing new is said.
    const before = seen.running.length > 0 ? state.operation?.description : undefined;
    const description = seen.description || before || 'finishing';
    state.timeLeft = seen.description ? { ms: seen.remainingMs, at: deps.now() } : undefined;
    state.operation = operation(
      state.operation,
      { type, state: 'Processing', progress: Math.min(99, seen.percent), description },
      deps.now(),
    );
    // Told at the end of the interval, not dropped: what follows may be a long wait, under the title of something long over.
    progress.soon();
  };
  state.changed = () => changes.soon(CHANGES_MS);
  if (state.untold) state.changed();
  state.untold = false;
  state.told = () => {
    for (const pacer of [changes, progress]) pacer.told();
  };
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
    progress.stop();
    state.untold = changes.stop();
  }
}
