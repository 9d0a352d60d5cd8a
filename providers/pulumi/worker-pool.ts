import type { Log } from '../../operator/kube/log.ts';
import { WorkerProcess } from './worker-process.ts';
import type { Workers } from './workers.ts';

interface PoolOptions {
  environment: Record<string, string>;
  /** Working directory of workers. */
  cwd: string;
  log: Log;
  /** Tasks after which a worker is replaced: programs leak memory with every run (0.8 MB measured). */
  maxTasks: number;
  /** Resident memory beyond which a worker is replaced, bytes. */
  maxRss: number;
  /** How long an idle worker is kept, ms. */
  idleMs: number;
}

interface Idle {
  worker: WorkerProcess;
  /** Affinity of its last task. */
  affinity: string;
  timer: NodeJS.Timeout;
}

/**
 * Keeps workers for the next task, and ends those that are used up, idle or suspect. The user of the pool bounds their
 * number.
 */
export class StackWorkerPool implements Workers {
  readonly #options: PoolOptions;
  readonly #idle: Idle[] = [];
  readonly #all = new Set<WorkerProcess>();
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** PIDs of the workers. */
  get pids(): number[] {
    return [...this.#all].filter(({ isAlive }) => isAlive).map(({ pid }) => pid);
  }

  /** A worker for exclusive use. Prefers one with the same affinity, which has that cloud's SDK loaded. */
  async acquire(affinity: string): Promise<WorkerProcess> {
    while (this.#idle.length > 0) {
      const same = this.#idle.findIndex((idle) => idle.affinity === affinity);
      const [idle] = this.#idle.splice(Math.max(same, 0), 1);
      clearTimeout(idle!.timer);
      if (idle!.worker.isAlive) return idle!.worker;
      this.#all.delete(idle!.worker);
    }
    const worker = await WorkerProcess.start(this.#options.environment, this.#options.cwd);
    this.#all.add(worker);
    if (this.#isClosed) worker.kill();
    return worker;
  }

  /** Returns a worker. `isSuspect`: part of it died or was killed, so it must not be reused. */
  release(worker: WorkerProcess, affinity: string, isSuspect: boolean): void {
    const { maxTasks, maxRss, idleMs, log } = this.#options;
    if (isSuspect) worker.kill();
    const isUsedUp = worker.tasks >= maxTasks || worker.rss > maxRss;
    if (!worker.isAlive || isSuspect || isUsedUp || this.#isClosed) {
      if (isUsedUp) log.debug({ pid: worker.pid, tasks: worker.tasks, rss: worker.rss }, 'worker is used up');
      this.#retire(worker);
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.splice(this.#idle.indexOf(idle), 1);
      this.#retire(worker);
    }, idleMs);
    timer.unref();
    const idle: Idle = { worker, affinity, timer };
    this.#idle.push(idle);
  }

  /** Ends idle workers, and others once released. Kills the rest after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    for (const { worker, timer } of this.#idle.splice(0)) {
      clearTimeout(timer);
      this.#retire(worker);
    }
    const timer = setTimeout(() => {
      for (const worker of this.#all) worker.kill();
    }, graceMs);
    await Promise.all([...this.#all].map((worker) => worker.gone));
    clearTimeout(timer);
  }

  #retire(worker: WorkerProcess): void {
    worker.end();
    void worker.gone.then(() => this.#all.delete(worker));
  }
}
