/** How much is needed from a moment on. */
export interface Level {
  readonly at: number;
  readonly units: number;
}

/**
 * What is paid for, in units times milliseconds, where each unit that comes stays at least so long, and who needs one again before it is gone
 * keeps it. The last that came goes first, so that none is replaced while it is needed.
 */
export function paidFor(levels: readonly Level[], end: number, leastMs: number): number {
  let total = 0;
  let height = 0;
  const begun: number[] = [];
  const since: number[] = [];
  const paidUntil: number[] = [];
  const rise = (unit: number, at: number) => {
    since[unit] = at;
    // It was not gone yet.
    if (!(paidUntil[unit]! > at)) begun[unit] = at;
  };
  const fall = (unit: number, at: number) => {
    const until = Math.min(end, Math.max(at, begun[unit]! + leastMs));
    total += Math.max(0, until - Math.max(since[unit]!, paidUntil[unit] ?? 0));
    paidUntil[unit] = Math.max(until, paidUntil[unit] ?? 0);
  };
  for (const { at, units } of levels) {
    const now = Math.min(at, end);
    for (; height < units; height++) rise(height, now);
    for (; height > units; height--) fall(height - 1, now);
  }
  for (; height > 0; height--) fall(height - 1, end);
  return total;
}

/** Units times milliseconds until `end`. */
export const areaOf = (levels: readonly Level[], end: number): number =>
  levels.reduce(
    (sum, { at, units }, index) => sum + units * Math.max(0, Math.min(end, levels[index + 1]?.at ?? end) - at),
    0,
  );
