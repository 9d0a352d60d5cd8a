/**
 * Task graph: tasks with dependencies run as parallel as the dependencies allow. A failing task blocks only its
 * dependents (after Gardener's pkg/utils/flow).
 */

/** One task. `run` must be idempotent: it is called again after every failure and restart. */
export interface Task {
  readonly id: string;
  /** Title shown while it runs, e.g. "Waiting for etcd". */
  readonly title: string;
  readonly after?: readonly string[];
  /** A skipped task counts as done for its dependents, and does not count for progress. */
  readonly skip?: boolean;
  /** Timeout of one run, in milliseconds; the task's signal is aborted, and the task fails. */
  readonly timeoutMs?: number;
  /** Expected duration in milliseconds, until it was first measured. */
  readonly expectedMs?: number;
  /** The task first checks whether there is work. Its title is shown only after it called `acts`. */
  readonly looksFirst?: boolean;
  run(signal: AbortSignal, acts?: () => void): Promise<void>;
}

interface TaskFailure {
  readonly taskID: string;
  readonly error: unknown;
}

export interface Progress {
  /** 0..100, weighted by earlier durations of the tasks. */
  readonly percent: number;
  readonly running: readonly string[];
  readonly description: string;
  /** Milliseconds left along the longest chain of unfinished tasks. */
  readonly remainingMs: number;
}

export interface FlowResult {
  readonly succeeded: readonly string[];
  readonly failures: readonly TaskFailure[];
  /** Tasks that never started because a dependency failed or the flow was cancelled. */
  readonly blocked: readonly string[];
}

/** Running means of task durations, shared by all flows of an operator. */
export class TaskDurations {
  readonly #mean = new Map<string, number>();

  add(taskID: string, milliseconds: number): void {
    const before = this.#mean.get(taskID);
    this.#mean.set(taskID, before === undefined ? milliseconds : before * 0.7 + milliseconds * 0.3);
  }

  expected(task: Task): number {
    return Math.max(1, this.#mean.get(task.id) ?? task.expectedMs ?? 50);
  }
}

class TaskTimeout extends Error {
  override readonly name = 'TaskTimeout';
  constructor(title: string, timeoutMs: number) {
    super(`${title}: not done after ${Math.round(timeoutMs / 1000)} s`);
  }
}

interface RunOptions {
  readonly signal?: AbortSignal;
  readonly durations?: TaskDurations;
  readonly now?: () => number;
  /** Called when the set of running tasks changes; must not throw. */
  readonly onProgress?: (progress: Progress) => void;
  /** Called when a task succeeds: its entry in lastErrors can be removed. */
  readonly onSucceeded?: (taskID: string, milliseconds: number) => void;
}

/**
 * A compiled graph.
 * @throws Error at construction when an id is given twice or a dependency is not defined before its user,
 *   which also makes cycles impossible.
 */
export class Flow {
  readonly name: string;
  readonly tasks: readonly Task[];

  constructor(name: string, tasks: readonly Task[]) {
    const known = new Set<string>();
    for (const task of tasks) {
      if (known.has(task.id)) throw new Error(`flow ${name}: task ${task.id} is defined twice`);
      for (const need of task.after ?? []) {
        if (!known.has(need))
          throw new Error(`flow ${name}: task ${task.id} needs ${need}, which is not defined before it`);
      }
      known.add(task.id);
    }
    this.name = name;
    this.tasks = tasks;
  }

  /** Runs until no further task can run. Never rejects: failures are in the result. */
  async run(options: RunOptions = {}): Promise<FlowResult> {
    const now = options.now ?? (() => performance.now());
    const durations = options.durations ?? new TaskDurations();
    const started = new Map<string, number>();
    const done = new Set<string>();
    const succeeded: string[] = [];
    const failures: TaskFailure[] = [];
    const inFlight = new Set<Promise<void>>();
    const acting = new Set<string>();

    const report = () => options.onProgress?.(progressOf(this.tasks, done, started, durations, now(), acting));
    const acts = ({ id, looksFirst }: Task) => {
      if (!looksFirst || acting.has(id)) return;
      acting.add(id);
      report();
    };

    const startReady = () => {
      for (let changed = true; changed; ) {
        changed = false;
        for (const task of this.tasks) {
          if (options.signal?.aborted || started.has(task.id) || done.has(task.id)) continue;
          if (!(task.after ?? []).every((need) => done.has(need))) continue;
          if (task.skip) {
            done.add(task.id);
            changed = true;
            continue;
          }
          started.set(task.id, now());
          const running = runWithin({ ...task, run: (signal) => task.run(signal, () => acts(task)) }, options.signal)
            .then(() => {
              const milliseconds = now() - started.get(task.id)!;
              durations.add(task.id, milliseconds);
              done.add(task.id);
              succeeded.push(task.id);
              options.onSucceeded?.(task.id, milliseconds);
            })
            .catch((error: unknown) => {
              failures.push({ taskID: task.id, error });
            })
            .finally(() => {
              inFlight.delete(running);
            });
          inFlight.add(running);
        }
      }
    };

    startReady();
    report();
    while (inFlight.size > 0) {
      await Promise.race(inFlight);
      startReady();
      report();
    }
    const failed = new Set(failures.map((failure) => failure.taskID));
    const blocked = this.tasks.filter((task) => !done.has(task.id) && !failed.has(task.id)).map((task) => task.id);
    return { succeeded, failures, blocked };
  }
}

/**
 * Runs a task with a signal that aborts after the timeout or with the outer signal. Rejects with the task's error, or
 * TaskTimeout after the timeout.
 * @param timeoutMs absent: no timeout
 */
export async function runWithin(
  { title, timeoutMs, run }: Pick<Task, 'title' | 'timeoutMs' | 'run'>,
  outer: AbortSignal | undefined,
): Promise<void> {
  const signals: AbortSignal[] = outer ? [outer] : [];
  if (timeoutMs === undefined) return run(outer ?? new AbortController().signal);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new TaskTimeout(title, timeoutMs)), timeoutMs);
  try {
    await run(AbortSignal.any([...signals, deadline.signal]));
  } catch (error) {
    // A task aborted by its deadline may report the abort as another error; the deadline is the cause.
    throw deadline.signal.aborted && !outer?.aborted ? deadline.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

/** Progress of a running flow, for status. Pure. @param acting tasks with `looksFirst` that found work */
export function progressOf(
  tasks: readonly Task[],
  done: ReadonlySet<string>,
  started: ReadonlyMap<string, number>,
  durations: TaskDurations,
  now: number,
  acting: ReadonlySet<string> = new Set(),
): Progress {
  let total = 0;
  let finished = 0;
  const finishAt = new Map<string, number>();
  let remainingMs = 0;
  const running: string[] = [];
  const titles: string[] = [];
  for (const task of tasks) {
    const expected = durations.expected(task);
    const since = started.get(task.id);
    let left = expected;
    if (task.skip || done.has(task.id)) left = 0;
    else if (since !== undefined) {
      running.push(task.id);
      if (!task.looksFirst || acting.has(task.id)) titles.push(task.title);
      // An overrunning task never counts as finished.
      left = Math.max(expected * 0.05, expected - (now - since));
    }
    if (!task.skip) {
      total += expected;
      finished += expected - left;
    }
    const after = Math.max(0, ...(task.after ?? []).map((need) => finishAt.get(need) ?? 0));
    finishAt.set(task.id, after + left);
    remainingMs = Math.max(remainingMs, after + left);
  }
  const percent = total === 0 ? 100 : Math.floor((100 * finished) / total);
  return { percent, running, description: titles.join(', '), remainingMs: Math.round(remainingMs) };
}
