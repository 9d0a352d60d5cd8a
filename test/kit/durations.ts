import { readFileSync } from 'node:fs';

/** Seconds that files took, by path from the root. A run writes what it measured into test-results/durations.json; CONTRIBUTING.md. */
const TABLE = new URL('../durations.json', import.meta.url);
/** Files that are not in the table: what they are taken to need, and what they may take, in seconds, by tier. */
const UNKNOWN: Record<string, { seconds: number; budget: number }> = {
  unit: { seconds: 1, budget: 120 },
  integration: { seconds: 30, budget: 300 },
  e2e: { seconds: 120, budget: 900 },
};
/** A budget is for a machine that is slower, or busier, than the one on which the table was measured. */
const TIMES = 3;
const MORE_SECONDS = 60;

export type Durations = Readonly<Record<string, number>>;

let table: Durations | undefined;
const durations = (): Durations => {
  table ??= JSON.parse(readFileSync(TABLE, 'utf8')) as Durations;
  return table;
};

/** Files are called `test/<tier>/...`. */
const unknown = (file: string) => UNKNOWN[file.split('/')[1] ?? ''] ?? UNKNOWN.e2e!;

/** Seconds that a test file may take, its set-up and its clearing away included. */
export function budgetSeconds(file: string, known: Durations = durations()): number {
  const seconds = known[file];
  return seconds === undefined ? unknown(file).budget : Math.ceil(TIMES * seconds + MORE_SECONDS);
}

/** The same items, longest file first: one that is begun last must not be the one that takes longest. */
export function longestFirst<Item>(
  items: readonly Item[],
  fileOf: (item: Item) => string,
  known: Durations = durations(),
): Item[] {
  const seconds = (item: Item) => known[fileOf(item)] ?? unknown(fileOf(item)).seconds;
  return items.toSorted((one, other) => seconds(other) - seconds(one));
}
