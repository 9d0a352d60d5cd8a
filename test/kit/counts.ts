import { readFileSync, renameSync, writeFileSync } from 'node:fs';

/** How many tests a run had. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Of a run that has not counted anything: that is a failure. */
const UNCOUNTED: Counts = { passed: 0, failed: 1, skipped: 0 };

/** The line that CI ends with. */
export function summaryLine(runs: readonly Counts[]): string {
  const sum = (what: keyof Counts) => runs.reduce((total, counts) => total + counts[what], 0);
  return `${sum('passed')} passed, ${sum('failed')} failed${sum('skipped') ? `, ${sum('skipped')} skipped` : ''}`;
}

/** What a run has said of itself in its file until now. */
export interface Report {
  counts: Counts;
  /** Seconds that each file took. */
  seconds: Record<string, number>;
  /** What failed, a line each. */
  failures: string[];
}

/** Of a run that has not said anything yet, or nothing that can be read. */
export const NO_REPORT: Report = { counts: UNCOUNTED, seconds: {}, failures: [] };

/** Reads what a run has reported until now; one that reported nothing that can be read has failed. */
export function readReport(file: string): Report {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return NO_REPORT;
  }
}

/** Puts the text into the file at once: whoever reads it, also after a kill in the middle, has all of the old text or of the new one. */
export function replaceFile(file: string, text: string): void {
  // Another run in the same folder has a draft of its own.
  const draft = `${file}.${process.pid}.draft`;
  writeFileSync(draft, text);
  renameSync(draft, file);
}
