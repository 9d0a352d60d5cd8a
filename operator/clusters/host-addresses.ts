import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Clock, systemClock } from '../kube/clock.ts';

/** Resolves a host name to addresses of both families. Rejects where there are none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

const ANSWER_MS = 5_000;
const LOOK_AGAIN_MS = 60_000;
/** Name servers return a few of many addresses at a time, and earlier ones stay in use for a while. */
const KEPT_MS = 3600_000;
const MOST = 64;

const resolveHere: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/**
 * Addresses of a host: the address itself, or those of its name, resolved every minute. Addresses returned within the
 * last hour count, at most the newest 64; while resolution fails, the last answers are kept.
 */
export class HostAddresses {
  readonly host: string;
  readonly #changed: () => void;
  readonly #resolve: Resolve;
  readonly #clock: Clock;
  /** Time each address was last returned, oldest first. */
  readonly #told = new Map<string, number>();
  #problem: string | undefined;
  #cancel: (() => void) | undefined;
  #stopped = false;

  /**
   * @param host as in a URL
   * @param changed called when an address was added or removed, except by the first look-up
   */
  constructor(
    host: string,
    changed: () => void,
    { resolve = resolveHere, clock = systemClock }: { resolve?: Resolve; clock?: Clock } = {},
  ) {
    this.host = host;
    this.#changed = changed;
    this.#resolve = resolve;
    this.#clock = clock;
    if (isIP(host) !== 0) this.#told.set(host, 0);
  }

  /** Resolves after the first look-up, successful or not: within five seconds. */
  async start(): Promise<void> {
    if (isIP(this.host) !== 0) return;
    await this.#look();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** Sorted. */
  list(): string[] {
    return [...this.#told.keys()].sort();
  }

  /** Why no address is known; undefined: one is known. */
  get problem(): string | undefined {
    return this.#told.size > 0 ? undefined : this.#problem;
  }

  async #look(): Promise<void> {
    try {
      this.#take(await this.#answer());
      this.#problem = undefined;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.#problem = code ?? message;
    }
    if (this.#stopped) return;
    this.#cancel = this.#clock.after(LOOK_AGAIN_MS, () => {
      const before = `${this.list()}`;
      void this.#look().then(() => {
        if (!this.#stopped && `${this.list()}` !== before) this.#changed();
      });
    });
  }

  /** A DNS look-up cannot be cancelled; an answer after the deadline is ignored. */
  #answer(): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(ANSWER_MS, () => reject(new Error(`no answer within ${ANSWER_MS / 1000} s`)));
      this.#resolve(this.host).then(resolve, reject).finally(cancel);
    });
  }

  #take(addresses: readonly string[]): void {
    const now = this.#clock.now();
    for (const address of addresses) {
      this.#told.delete(address);
      this.#told.set(address, now);
    }
    for (const [address, at] of this.#told)
      if (now - at > KEPT_MS || this.#told.size > MOST) this.#told.delete(address);
  }
}
