/** Work that may pause at each `yield`: see TenantSteps. */
export type Steps<T> = Generator<void, T, void>;

/** Runs the work without a pause. Returns or throws what the work does. */
export function atOnce<T>(work: Steps<T>): T {
  for (;;) {
    const next = work.next();
    if (next.done) return next.value;
  }
}
