import { dependencyNotReady } from '../api/errors.ts';
import { afterLoopTime, type Clock, sleep, systemClock } from '../kube/clock.ts';

/** A restarted API server answers again within this time (ms), so the outage is not reported. */
const DOUBT_MS = 5_000;
/** Interval of checks while the outage is not certain. */
const SOON_MS = 1_000;
/** Longest interval of checks during an outage. */
const LATER_MS = 15_000;

interface ConnectionHealthOptions {
  /** Whether the API server answers now; must end by itself and never reject. */
  readonly ask: () => Promise<boolean>;
  /** Called when the server stops answering, and when it answers again. */
  readonly told: (answers: boolean) => void;
  readonly clock?: Clock;
  /** In [0, 1): clusters that lost their seed together do not check at the same moment. */
  readonly random?: () => number;
}

/**
 * Whether the API server of a connection answers. Free while it does: the connection's watches are pinged anyway, and
 * the server is checked only after one breaks, until it answers again.
 */
export class ConnectionHealth {
  readonly #options: ConnectionHealthOptions;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #outage = new AbortController();
  #asking = false;

  constructor(options: ConnectionHealthOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get answers(): boolean {
    return !this.#outage.signal.aborted;
  }

  /** Aborted when the server stops answering; replaced once it answers again. Its reason is a retryable error. */
  get broken(): AbortSignal {
    return this.#outage.signal;
  }

  /** To be called after any failure on the connection. */
  doubt(): void {
    if (this.#asking || this.#stop.signal.aborted) return;
    this.#asking = true;
    void this.#ask().finally(() => {
      this.#asking = false;
    });
  }

  stop(): void {
    this.#stop.abort();
  }

  async #ask(): Promise<void> {
    const { told } = this.#options;
    let isRestart = true;
    const forget = afterLoopTime(DOUBT_MS, () => (isRestart = false), this.#clock);
    try {
      await this.#untilAnswered(() => isRestart);
    } finally {
      forget();
    }
    if (this.answers || this.#stop.signal.aborted) return;
    this.#outage = new AbortController();
    told(true);
  }

  async #untilAnswered(mayBeRestart: () => boolean): Promise<void> {
    const { ask, told, random = Math.random } = this.#options;
    let wait = SOON_MS;
    while (!(await ask())) {
      if (this.#stop.signal.aborted) return;
      if (this.answers && !mayBeRestart()) {
        this.#outage.abort(dependencyNotReady('the API server of the cluster does not answer'));
        told(false);
      }
      if (!this.answers) wait = Math.min(LATER_MS, wait * 2);
      await sleep(wait * (0.75 + random() / 2), this.#stop.signal, this.#clock);
      if (this.#stop.signal.aborted) return;
    }
  }
}
