/** Units (nodes or clusters) needed from `at` until the next level. */
export interface Level {
  readonly at: number;
  readonly units: number;
}

/**
 * Units that exist when each added unit stays at least this long, and a unit needed again before its removal is reused.
 * Minimal: when fewer are needed, the units whose time is over go first.
 * @param levels whole units
 */
export function stretchLevels(levels: readonly Level[], leastMs: number): Level[] {
  const found: Level[] = [];
  const note = (at: number, units: number) => {
    if (found.at(-1)?.units !== units) found.push({ at, units });
  };
  /** Earliest removal of each unit, in order of addition; units before `first` may be removed. */
  const until: number[] = [];
  let first = 0;
  let needed = 0;
  const there = () => Math.max(needed, until.length - first);
  /** A unit that may be removed at the moment it is needed again still exists. */
  const passUntil = (at: number) => {
    while (first < until.length && until[first]! < at) {
      const now = until[first]!;
      while (until[first] === now) first++;
      note(now, there());
    }
  };
  for (const { at, units } of levels) {
    passUntil(at);
    for (let more = units - there(); more > 0; more--) until.push(at + leastMs);
    needed = units;
    note(at, there());
  }
  passUntil(Number.MAX_VALUE);
  return found;
}

/** Levels multiplied by a factor. */
export const scaleLevels = (levels: readonly Level[], each: number): Level[] =>
  levels.map(({ at, units }) => ({ at, units: units * each }));

/** Maximum of the curves at each moment. */
export const highest = (...curves: (readonly Level[])[]): Level[] => combined(curves, (units) => Math.max(...units));

/** Excess of the first curve over the second at each moment. */
export const levelsBeyond = (curve: readonly Level[], other: readonly Level[]): Level[] =>
  combined([curve, other], ([units = 0, less = 0]) => units - less);

function combined(curves: readonly (readonly Level[])[], by: (units: number[]) => number): Level[] {
  const times = [...new Set(curves.flatMap((curve) => curve.map(({ at }) => at)))].sort((a, b) => a - b);
  const next = curves.map(() => 0);
  return times.map((at) => {
    const units = curves.map((curve, index) => {
      while (curve[next[index]!] && curve[next[index]!]!.at <= at) next[index]!++;
      return curve[next[index]! - 1]?.units ?? 0;
    });
    return { at, units: by(units) };
  });
}

/** Units that exist when each stays this long after it was needed: the maximum of the preceding window. */
export function lingeringLevels(levels: readonly Level[], ms: number): Level[] {
  const found: Level[] = [];
  const note = (at: number, units: number) => {
    if (found.at(-1)?.units !== units) found.push({ at, units });
  };
  /** Candidates for the window's maximum, the largest first, each with the time it leaves the window. */
  const kept: { readonly units: number; until: number }[] = [];
  const forgetUntil = (at: number) => {
    while (kept.length > 0 && kept[0]!.until <= at) {
      const { until } = kept.shift()!;
      note(until, kept[0]?.units ?? 0);
    }
  };
  levels.forEach(({ at, units }, index) => {
    forgetUntil(at);
    while (kept.length > 0 && kept.at(-1)!.units <= units) kept.pop();
    kept.push({ units, until: (levels[index + 1]?.at ?? Number.POSITIVE_INFINITY) + ms });
    note(at, kept[0]!.units);
  });
  forgetUntil(Number.MAX_VALUE);
  return found;
}

/** Units times milliseconds until `end`. */
export const areaOf = (levels: readonly Level[], end: number): number =>
  levels.reduce(
    (sum, { at, units }, index) => sum + units * Math.max(0, Math.min(end, levels[index + 1]?.at ?? end) - at),
    0,
  );
