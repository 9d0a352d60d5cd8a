/** How much is needed from a moment on. */
export interface Level {
  readonly at: number;
  readonly units: number;
}

/**
 * What is there where each unit that comes stays at least so long, and who needs one again before it is gone keeps it. The least that can be: where
 * fewer are needed, those go first that have stayed so long.
 * @param levels whole units
 */
export function stretched(levels: readonly Level[], leastMs: number): Level[] {
  const found: Level[] = [];
  const note = (at: number, units: number) => {
    if (found.at(-1)?.units !== units) found.push({ at, units });
  };
  /** When units may go, in the order in which they came; those before `first` may. */
  const until: number[] = [];
  let first = 0;
  let needed = 0;
  const there = () => Math.max(needed, until.length - first);
  /** One that may go in the moment in which it is needed again was not gone yet. */
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

/** What is paid for, in units times milliseconds, where each unit that comes stays at least so long. */
export const paidFor = (levels: readonly Level[], end: number, leastMs: number): number =>
  areaOf(stretched(levels, leastMs), end);

/** So much for each unit. */
export const scaled = (levels: readonly Level[], each: number): Level[] =>
  levels.map(({ at, units }) => ({ at, units: units * each }));

/** At each moment the most of them. */
export const highest = (...curves: (readonly Level[])[]): Level[] => combined(curves, (units) => Math.max(...units));

/** At each moment how much more there is of the first than of the second. */
export const beyond = (curve: readonly Level[], other: readonly Level[]): Level[] =>
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

/** What is there if each unit stays so long after it was needed: at each moment the most of the time before. */
export function lingering(levels: readonly Level[], ms: number): Level[] {
  const found: Level[] = [];
  const note = (at: number, units: number) => {
    if (found.at(-1)?.units !== units) found.push({ at, units });
  };
  /** Those that may be the most, the largest first; each with when it is forgotten. */
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
