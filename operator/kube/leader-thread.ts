import { Worker } from 'node:worker_threads';
import {
  CLOCK,
  type FromThread,
  type LeaderThreadData,
  type LeaderTiming,
  type ToThread,
} from './leader-thread-protocol.ts';
import type { Log } from './log.ts';

/** Of an operator: five seconds pass between its last write and the first of another. */
const TIMING: LeaderTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 4_000,
  stalledMs: 30_000,
};
const HEARTBEAT_MS = 1_000;

/** What the operator's process leads by. Fields of the Lease: see LeaderThreadData. */
export interface LeaderThreadOptions extends Omit<LeaderThreadData, 'clock' | 'timing'> {
  /** Milliseconds. Absent: as is right for an operator. */
  readonly timing?: Partial<LeaderTiming>;
  readonly log: Log;
  /** Leading has begun; the signal aborts when it ends. A rejection ends leading and the run. */
  readonly onStarted: (signal: AbortSignal) => Promise<void>;
  /** Another may lead now: the process has to end at once. A second later it is ended. */
  readonly onLost: () => void;
  /** A request of the thread was answered; status 0: it was not. */
  readonly onRequest?: (request: { method: string; status: number }) => void;
}

/**
 * Leadership by a Lease that a thread of its own renews: work that keeps the main event loop busy loses no Lease. The thread ends the process
 * when that loop stands still. `fence` says from memory that both threads share whether writes may leave.
 */
export class LeaderThread {
  readonly #options: LeaderThreadOptions;
  readonly #shared = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  #seen: { leading: boolean; problem?: string; leaders: readonly string[] } = { leading: false, leaders: [] };

  constructor(options: LeaderThreadOptions) {
    this.#options = options;
  }

  /** See LeaderElector, as of the last look. */
  get earlierLeaders(): readonly string[] {
    return this.#seen.leaders;
  }
  get problem(): string | undefined {
    return this.#seen.problem;
  }
  get leading(): boolean {
    return this.#seen.leading;
  }

  /** See Fence: nothing may leave once the last renewal is older than its deadline, by the monotonic clock. */
  readonly fence = (): string | undefined => {
    const deadline = Atomics.load(this.#shared, CLOCK.deadline);
    if (deadline === 0n) return 'this operator does not lead';
    const late = process.hrtime.bigint() - deadline;
    return late <= 0n ? undefined : `the Lease of this operator was to be renewed ${late / 1_000_000n} ms ago`;
  };

  /** See LeaderElector.run. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, onStarted, onLost, onRequest, timing, ...lease } = this.#options;
    const clock = this.#shared.buffer as SharedArrayBuffer;
    const beat = () => Atomics.store(this.#shared, CLOCK.heartbeat, process.hrtime.bigint());
    beat();
    const heartbeat = setInterval(beat, HEARTBEAT_MS);
    const workerData: LeaderThreadData = { ...lease, timing: { ...TIMING, ...timing }, clock };
    const thread = new Worker(new URL('./leader-thread-main.ts', import.meta.url), { workerData });
    const post = (message: ToThread) => thread.postMessage(message);
    const stop = () => post({ type: 'stop' });
    const leading = new AbortController();
    const over = Promise.withResolvers<void>();
    let failure: { error: unknown } | undefined;

    const work = async () => {
      try {
        await onStarted(leading.signal);
      } catch (error) {
        failure = { error };
        stop();
      }
      post({ type: 'ended' });
    };
    thread.on('message', (message: FromThread) => {
      switch (message.type) {
        case 'seen':
          this.#seen = message;
          return;
        case 'started':
          return void work();
        case 'end':
          return leading.abort(new Error('no longer leading'));
        case 'lost':
          return onLost();
        case 'log':
          return log[message.level](message.fields, message.message);
        case 'request':
          return onRequest?.(message);
        case 'done':
          return over.resolve();
      }
    });
    // Nobody renews any more.
    thread.once('error', (error) => {
      log.error({ err: error }, 'the thread that renews the Lease has failed');
      Atomics.store(this.#shared, CLOCK.deadline, 0n);
      leading.abort(new Error('no longer leading'));
      onLost();
      over.resolve();
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      await over.promise;
    } finally {
      clearInterval(heartbeat);
      signal.removeEventListener('abort', stop);
      await thread.terminate();
      this.#seen = { ...this.#seen, leading: false };
    }
    if (failure) throw failure.error;
  }
}
