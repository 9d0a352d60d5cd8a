/** Work that may pause at each `yield`: see TenantSteps. */
export type Steps<T> = Generator<void, T, void>;

/** Items between two pauses: about ten milliseconds of the most expensive work for one object. */
const PAUSE_AFTER = 500;

/** Calls `handle` for each item, with pauses. Throws what `handle` throws. */
export function* eachInSteps<T>(items: Iterable<T>, handle: (item: T) => void): Steps<void> {
  let handled = 0;
  for (const item of items) {
    handle(item);
    if (++handled % PAUSE_AFTER === 0) yield;
  }
}

/** A value as work of one step. */
export function* oneStep<T>(value: T): Steps<T> {
  yield;
  return value;
}

/** Runs the work without a pause. Returns or throws what the work does. */
export function atOnce<T>(work: Steps<T>): T {
  for (;;) {
    const next = work.next();
    if (next.done) return next.value;
  }
}
