/** Time and timers; injected wherever a test must not wait for real time. */
export interface Clock {
  /** Milliseconds since some fixed moment. */
  now(): number;
  /** Calls `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Beyond this setTimeout overflows and fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Time since the process began: a wall clock that is set anew moves nothing. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(0, ms), LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Longest part of a time that the event loop may be busy in one go and all of it counts, in ms. */
const LOOP_PART_MS = 250;
const LEAST_PARTS = 4;

/**
 * Calls `run` once after `ms` in which the event loop went on. A process that was busy, or stopped, has read no answers meanwhile: that time
 * counts as one part of `ms` at most. For every decision that somebody is silent. The returned function cancels it.
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

/** A signal that aborts after `ms` of loop time, with a TimeoutError; see afterLoopTime. `done` forgets it. */
export function loopTimeout(ms: number): { signal: AbortSignal; done: () => void } {
  const over = new AbortController();
  const reason = () => new DOMException(`no answer within ${ms / 1000} s`, 'TimeoutError');
  return { signal: over.signal, done: afterLoopTime(ms, () => over.abort(reason())) };
}

/** The work's result, or the reason of the abort where that comes first: the work goes on then, for whoever else waits for it. */
export function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Resolves after `ms`, or early (also by resolving) when the signal aborts: callers look at the signal themselves. */
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
