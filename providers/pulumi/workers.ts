import type { RunTaskOptions } from './worker-process.ts';
import type { StackPlace, WorkerTask } from './worker-protocol.ts';

/** Runs tasks on stacks, one after the other. */
export interface StackWorker {
  /** Resolves with the task's value. Rejects with a TaskFailure. */
  run(place: StackPlace, task: WorkerTask, options: RunTaskOptions): Promise<unknown>;
}

/** Source of a runner's workers. The runner bounds their number. */
export interface Workers {
  /** PIDs of the workers. */
  readonly pids: number[];
  /** A worker for exclusive use; `affinity`: kind of the task. */
  acquire(affinity: string): Promise<StackWorker>;
  /** Returns a worker. `isSuspect`: part of it died or was killed, so it must not be reused. */
  release(worker: StackWorker, affinity: string, isSuspect: boolean): void;
  /** Ends idle workers, and others once released; kills the rest after `graceMs`. */
  close(graceMs: number): Promise<void>;
}
