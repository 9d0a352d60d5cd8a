import { readFileSync } from 'node:fs';

/** Seconds that files took, by path from the root. A run writes what it measured into test-results/durations.json; CONTRIBUTING.md. */
const TABLE = new URL('../durations.json', import.meta.url);
/** Files that are not in the table: what they are taken to need, and what they may take, in seconds, by tier. */
const UNKNOWN: Record<string, { seconds: number; budget: number }> = {
  unit: { seconds: 1, budget: 300 },
  integration: { seconds: 30, budget: 600 },
  e2e: { seconds: 120, budget: 900 },
};
/**
 * A budget is for a machine that is slower, or busier, than the one on which the table was measured. Files of unit and integration tests give
 * way to the end-to-end tests, and have a twentieth of a core at times.
 */
const MORE: Record<string, { times: number; seconds: number }> = {
  unit: { times: 10, seconds: 180 },
  integration: { times: 10, seconds: 180 },
  e2e: { times: 3, seconds: 60 },
};

export type Durations = Readonly<Record<string, number>>;

let table: Durations | undefined;
const durations = (): Durations => {
  table ??= JSON.parse(readFileSync(TABLE, 'utf8')) as Durations;
  return table;
};

/** Files are called `test/<tier>/...`. */
const ofTier = <Value>(values: Readonly<Record<string, Value>>, file: string): Value =>
  values[file.split('/')[1] ?? ''] ?? values.e2e!;

/** Seconds that a test file may take, its set-up and its clearing away included. */
export function budgetSeconds(file: string, known: Durations = durations()): number {
  const seconds = known[file];
  const more = ofTier(MORE, file);
  return seconds === undefined ? ofTier(UNKNOWN, file).budget : Math.ceil(more.times * seconds + more.seconds);
}

/** The same items, longest file first: one that is begun last must not be the one that takes longest. */
export function longestFirst<Item>(
  items: readonly Item[],
  fileOf: (item: Item) => string,
  known: Durations = durations(),
): Item[] {
  const seconds = (item: Item) => known[fileOf(item)] ?? ofTier(UNKNOWN, fileOf(item)).seconds;
  return items.toSorted((one, other) => seconds(other) - seconds(one));
}
