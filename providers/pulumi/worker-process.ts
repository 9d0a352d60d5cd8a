import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { passFence } from '../../operator/kube/http/fence.ts';
import { killSession } from './processes.ts';
import type { RunEvent } from './run-events.ts';
import type { Failed, FromWorker, StackPlace, TaskAnswer, ToWorker, WorkerTask } from './worker-protocol.ts';

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url));
/** Kept end of a worker's output, enough to explain its death. */
const KEPT_CHARACTERS = 2_000;
const START_PATIENCE_MS = 60_000;

/** A failed task. `output` may contain secrets. */
export class TaskFailure extends Error {
  readonly kind: Failed['kind'];
  readonly output: string;

  constructor(kind: Failed['kind'], output: string) {
    super(`the worker's task failed: ${kind}`);
    this.kind = kind;
    this.output = output;
  }
}

export interface RunTaskOptions {
  onEvent?: (event: RunEvent) => void;
  /** Aborts gracefully. */
  signal?: AbortSignal;
  /** Time for a graceful end before everything is killed. */
  graceMs: number;
}

/** A forked process for sequential tasks, in its own session together with its engines and plugins. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #gone: Promise<string>;
  #isAlive = true;
  #said = '';
  #tasks = 0;
  #rss = 0;
  #answer: ((message: FromWorker) => void) | undefined;

  private constructor(child: ChildProcess) {
    this.#child = child;
    const hear = (text: string) => {
      this.#said = (this.#said + text).slice(-KEPT_CHARACTERS);
    };
    child.stdout?.setEncoding('utf8').on('data', hear);
    child.stderr?.setEncoding('utf8').on('data', hear);
    child.on('message', (message: FromWorker) => this.#answer?.(message));
    this.#gone = new Promise((resolve) => {
      const end = (how: string) => {
        this.#isAlive = false;
        // Provider plugins outlive a killed engine.
        if (child.pid !== undefined) killSession(child.pid);
        resolve(how);
      };
      child.once('error', (error) => end(error.message));
      child.once('exit', (code, signal) => end(signal ? `was ended by ${signal}` : `ended with exit code ${code}`));
    });
  }

  /** Starts a worker; resolves when it accepts tasks. */
  static async start(environment: Record<string, string>, cwd: string): Promise<WorkerProcess> {
    passFence('the start of a worker');
    const child = fork(WORKER, [], {
      cwd,
      env: environment,
      execArgv: [],
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const worker = new WorkerProcess(child);
    const timer = setTimeout(() => worker.kill(), START_PATIENCE_MS);
    try {
      const ready = new Promise<undefined>((resolve) => {
        worker.#answer = (message) => 'ready' in message && resolve(undefined);
      });
      const how = await Promise.race([ready, worker.#gone]);
      if (how !== undefined)
        throw new Error(`a worker did not start, it ${how}: ${worker.#said.trim().split('\n').at(-1)}`);
      worker.#hold(false);
      return worker;
    } finally {
      clearTimeout(timer);
    }
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Finished tasks. */
  get tasks(): number {
    return this.#tasks;
  }

  /** Resident memory after the last task, bytes. */
  get rss(): number {
    return this.#rss;
  }

  /** Resolves with the task's value. Rejects with a TaskFailure, also when the worker dies. */
  async run(place: StackPlace, task: WorkerTask, { onEvent, signal, graceMs }: RunTaskOptions): Promise<unknown> {
    signal?.throwIfAborted();
    // The fence is checked here because the task may have waited for hours.
    passFence('a task of a worker');
    const id = ++this.#tasks;
    this.#hold(true);
    let grace: NodeJS.Timeout | undefined;
    const stop = () => {
      this.#send({ stop: id });
      grace = setTimeout(() => this.kill(), graceMs);
    };
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const answered = new Promise<TaskAnswer>((resolve) => {
        this.#answer = (message) => {
          if (!('id' in message) || message.id !== id) return;
          if ('event' in message) onEvent?.(message.event);
          else resolve(message);
        };
      });
      this.#send({ id, place, task });
      const answer = await Promise.race([answered, this.#gone]);
      if (typeof answer === 'string') throw new TaskFailure('killed', `the worker ${answer}\n${this.#said}`);
      this.#rss = answer.rss;
      if (!answer.ok) throw new TaskFailure(answer.kind, answer.output);
      return answer.value;
    } finally {
      clearTimeout(grace);
      signal?.removeEventListener('abort', stop);
      this.#answer = undefined;
      this.#hold(false);
    }
  }

  /** Resolves when the process and all that it started have ended. */
  get gone(): Promise<void> {
    return this.#gone.then(() => {});
  }

  /** Lets the process end when idle. */
  end(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  /** Kills the process with everything that it started. */
  kill(): void {
    if (this.#isAlive && this.#child.pid !== undefined) killSession(this.#child.pid);
  }

  #send(message: ToWorker): void {
    // The end of a dead worker is noticed elsewhere.
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Whether the worker keeps this process alive: only while busy. */
  #hold(isBusy: boolean): void {
    const how = isBusy ? 'ref' : 'unref';
    this.#child[how]();
    this.#child.channel?.[how]();
    (this.#child.stdout as Socket | null)?.[how]();
    (this.#child.stderr as Socket | null)?.[how]();
  }
}
