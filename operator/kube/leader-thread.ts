import { Worker } from 'node:worker_threads';
import {
  CLOCK,
  type FromThread,
  type LeaderThreadData,
  type LeaderTiming,
  type ToThread,
} from './leader-thread-protocol.ts';
import type { Log } from './log.ts';

/** Leaves five seconds between the last write of one leader and the first of the next. */
const TIMING: LeaderTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 4_000,
  stalledMs: 30_000,
};
const HEARTBEAT_MS = 1_000;

/** Options of leadership. For the fields of the Lease see LeaderThreadData. */
interface LeaderThreadOptions extends Omit<LeaderThreadData, 'clock' | 'timing'> {
  /** Milliseconds. Absent: TIMING. */
  readonly timing?: Partial<LeaderTiming>;
  readonly log: Log;
  /**
   * Called when this process leads; the signal aborts when leading ends. A rejection ends leading and rejects `run`.
   */
  readonly onStarted: (signal: AbortSignal) => Promise<void>;
  /** Another replica may lead: the process must end at once. A second later the thread kills it. */
  readonly onLost: () => void;
  /** A request of the thread was answered; status 0: no answer. */
  readonly onRequest?: (request: { method: string; status: number }) => void;
}

/**
 * Leadership by a Lease that a separate thread renews, so that a busy main event loop does not lose the Lease. The
 * thread kills the process when the main event loop is stuck. `fence` reads from shared memory whether writes may
 * leave.
 */
export class LeaderThread {
  readonly #options: LeaderThreadOptions;
  readonly #shared = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  #seen: { leading: boolean; problem?: string; leaders: readonly string[] } = { leading: false, leaders: [] };

  constructor(options: LeaderThreadOptions) {
    this.#options = options;
  }

  /** See LeaderElector; as last reported by the thread. */
  get earlierLeaders(): readonly string[] {
    return this.#seen.leaders;
  }
  get problem(): string | undefined {
    return this.#seen.problem;
  }
  get leading(): boolean {
    return this.#seen.leading;
  }

  /** See Fence: no write leaves once the last renewal is older than its deadline, by the monotonic clock. */
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
    // The renewing thread is gone: refuse writes from now on.
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
