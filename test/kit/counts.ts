/** How many tests a run had. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** The line that CI ends with. */
export function summaryLine(runs: readonly Counts[]): string {
  const sum = (what: keyof Counts) => runs.reduce((total, counts) => total + counts[what], 0);
  return `${sum('passed')} passed, ${sum('failed')} failed${sum('skipped') ? `, ${sum('skipped')} skipped` : ''}`;
}
