import type { RunTaskOptions } from './worker-process.ts';
import type { StackPlace, Task } from './worker-protocol.ts';

/** Does tasks on stacks, one after the other. */
export interface Worker {
  /** Resolves to the task's value. Rejects with a TaskFailure. */
  run(place: StackPlace, task: Task, options: RunTaskOptions): Promise<unknown>;
}

/** Where a runner has its workers from. How many there are, the runner decides. */
export interface Workers {
  /** Numbers of the processes that there are. */
  readonly pids: number[];
  /** A worker for one user; `affinity` is what it is to do. */
  acquire(affinity: string): Promise<Worker>;
  /** Takes one back. `isSuspect`: something about it died or was killed, so that nothing of it is to live on. */
  release(worker: Worker, affinity: string, isSuspect: boolean): void;
  /** Ends what is idle, and what is in use when that is released; kills what is left after `graceMs`. */
  close(graceMs: number): Promise<void>;
}
