/** Work that may pause at each `yield`, and goes on by itself: see TenantSteps. */
export type Steps<T> = Generator<void, T, void>;

/** Does all of it without a pause. Returns or throws what the work does. */
export function atOnce<T>(work: Steps<T>): T {
  for (;;) {
    const next = work.next();
    if (next.done) return next.value;
  }
}
