import { mkdirSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import type { SerializedError } from 'vitest';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { type Counts, type Report, replaceFile, summaryLine } from './counts.ts';
import { budgetSeconds } from './durations.ts';

/** Writing costs little, but there are thousands of tests that take milliseconds. */
const WRITE_MS = 500;
/** Of what an error says, in a list of failures. */
const ERROR_CHARACTERS = 1_500;

/**
 * Counts the tests while they run, so that a run that is killed has told what it knew: into test-results/summary.txt, the line that CI ends
 * with; or, for test/run.ts which adds runs up, into the file that it names. As long as the run has not ended, that counts as a failure, and
 * so do a file that cannot be loaded and one that takes longer than its budget.
 */
export default class SummaryReporter implements Reporter {
  readonly #counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #seconds: Record<string, number> = {};
  readonly #failures: string[] = [];
  #written = 0;

  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    if (state === 'failed') this.#failed(`${test.module.relativeModuleId} > ${test.fullName}`, errors);
    else this.#counts[state === 'passed' ? state : 'skipped']++;
    if (Date.now() - this.#written > WRITE_MS) this.#write(1);
  }

  onTestModuleEnd(module: TestModule): void {
    for (const error of module.errors()) this.#failed(module.relativeModuleId, [error]);
    for (const suite of module.children.allSuites())
      for (const error of suite.errors()) this.#failed(`${module.relativeModuleId} > ${suite.fullName}`, [error]);
    const took = secondsOf(module);
    this.#seconds[module.relativeModuleId] = took;
    const budget = budgetSeconds(module.relativeModuleId);
    if (took > budget) {
      const message = `took ${took} s of the ${budget} s that it may (test/durations.json): make it faster, or measure anew`;
      console.error(`tests: ${module.relativeModuleId} ${message}`);
      this.#failed(module.relativeModuleId, [{ message }]);
      process.exitCode = 1;
    }
    this.#write(1);
  }

  onTestRunEnd(_modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    for (const error of unhandled) this.#failed('outside of any test', [error]);
    this.#write(0);
  }

  #failed(what: string, errors: readonly (Pick<SerializedError, 'message'> & { diff?: unknown })[]): void {
    this.#counts.failed++;
    const { message = '', diff } = errors[0] ?? {};
    // On one line, with what stands below the first: that is often the status of what was waited for. Of two lists only the diff tells more.
    const said = stripVTControlCharacters([message, diff].filter(Boolean).join(' ')).replaceAll(/\s+/g, ' ');
    this.#failures.push(`${what}: ${said.slice(0, ERROR_CHARACTERS)}`);
  }

  /** @param unfinished failures for what is still to come */
  #write(unfinished: 0 | 1): void {
    this.#written = Date.now();
    const counts = { ...this.#counts, failed: this.#counts.failed + unfinished };
    mkdirSync('test-results', { recursive: true });
    const { COPPICE_TEST_COUNTS: file } = process.env;
    if (file)
      replaceFile(file, JSON.stringify({ counts, seconds: this.#seconds, failures: this.#failures } satisfies Report));
    else replaceFile('test-results/summary.txt', `${summaryLine([counts])}\n`);
  }
}

/** All that a file takes of a run: loading it, its hooks, its tests. */
function secondsOf(module: TestModule): number {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } = module.diagnostic();
  return (
    Math.round((environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration) / 100) / 10
  );
}
