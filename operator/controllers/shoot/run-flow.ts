import type { LastOperation } from '../../api/meta.ts';
import { Flow, type FlowResult, type Progress, type Task } from '../../flow/graph.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { Pacer, progressInterval } from '../pacer.ts';
import { movedOperation } from '../status-writer.ts';
import type { Operation } from './operation.ts';

/** Shortest interval of status updates: each is two writes (Shoot and WorkerCluster). */
const CHANGES_INTERVAL_MS = 5_000;
/** Delay that groups changes, and skips a check without findings. */
const CHANGES_MS = 1_000;

/**
 * Runs the tasks; reports progress if somebody waits for it (`visible`), and other changes always, because a task may
 * take minutes.
 */
export async function runFlow(
  op: Operation,
  { tasks, type, visible }: { tasks: Task[]; type: LastOperation['type']; visible: boolean },
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<FlowResult> {
  const { state, deps } = op;
  // Drop errors of other task graphs.
  for (const taskID of state.errors.keys()) if (!tasks.some(({ id }) => id === taskID)) state.errors.delete(taskID);
  const changes = new Pacer(clock, CHANGES_INTERVAL_MS, () => op.notice());
  const progress = new Pacer(clock, progressInterval, () => op.notice());
  const onProgress = (seen: Progress) => {
    if (!visible) return;
    // Tasks that only check say nothing new.
    const before = seen.running.length > 0 ? state.operation?.description : undefined;
    const description = seen.description || before || 'finishing';
    state.timeLeft = seen.description ? { ms: seen.remainingMs, at: deps.now() } : undefined;
    state.operation = movedOperation(
      state.operation,
      { type, state: 'Processing', progress: Math.min(99, seen.percent), description },
      deps.now(),
    );
    // At the end of the interval, not dropped: a long wait may follow, under an outdated title.
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
