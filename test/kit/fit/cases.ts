import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { JudgedCase } from './case.ts';

/** What kube-scheduler said of each case; written by test/kit/fit/main.ts. */
export interface RecordedCases {
  /** Its version. */
  scheduler: string;
  /** Its feature gates; preemption (PostFilter) was off. */
  featureGates: string;
  cases: JudgedCase[];
}

export const CASES_FILE = fileURLToPath(new URL('../../fixtures/fit-cases.jsonl', import.meta.url));

/** One line for the scheduler, and one for each case. */
export function recordedCases(): RecordedCases {
  const [head, ...cases] = readFileSync(CASES_FILE, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  return { ...(head as Omit<RecordedCases, 'cases'>), cases: cases as JudgedCase[] };
}
