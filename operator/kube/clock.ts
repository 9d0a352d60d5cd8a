/** Time and timers; injected so that tests need not wait for real time. */
export interface Clock {
  /** Milliseconds since some fixed moment. */
  now(): number;
  /** Calls `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Longest delay that setTimeout supports: a longer one overflows and fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Time since the process began, so changes of the wall clock have no effect. Its timers do not keep the process alive.
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(0, ms), LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Longest stretch of a busy event loop that counts in full, ms. */
const LOOP_PART_MS = 250;
const LEAST_PARTS = 4;

/**
 * Calls `run` once after `ms` in which the event loop ran. A busy or stopped process reads no answers: each such
 * stretch counts as at most one part of `ms`. Use this for every timeout that declares a server silent. The returned
 * function cancels the call.
 */
export function afterLoopTime(ms: number, run: () => void, clock: Pick<Clock, 'after'> = systemClock): () => void {
  const parts = Math.max(LEAST_PARTS, Math.ceil(ms / LOOP_PART_MS));
  let left = parts;
  let cancel = () => {};
  const next = () => {
    if (left-- > 0) cancel = clock.after(ms / parts, next);
    else run();
  };
  next();
  return () => cancel();
}

/** A signal that aborts after `ms` of loop time with a TimeoutError (see afterLoopTime). `done` cancels the timer. */
export function loopTimeout(ms: number): { signal: AbortSignal; done: () => void } {
  const over = new AbortController();
  const reason = () => new DOMException(`no answer within ${ms / 1000} s`, 'TimeoutError');
  return { signal: over.signal, done: afterLoopTime(ms, () => over.abort(reason())) };
}

/**
 * Resolves with the result of `work`, or rejects with the abort reason when the abort comes first. An abort does not
 * stop `work`: other callers may wait for it.
 */
export function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Resolves after `ms`, or early when the signal aborts: callers check the signal themselves. */
export function sleep(ms: number, signal?: AbortSignal, clock: Clock = systemClock): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = clock.after(ms, finish);
    signal?.addEventListener('abort', finish);
  });
}
