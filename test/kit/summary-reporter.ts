import { mkdirSync, writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { type Counts, summaryLine } from './counts.ts';

/**
 * Counts the tests into test-results/summary.txt, the line that CI ends with; or, for test/run.ts which adds runs up, into the file that
 * it names. A file that cannot be loaded is a failure.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const counts: Counts = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      counts.failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state === 'passed' || state === 'failed' ? state : 'skipped']++;
      }
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
    }
    mkdirSync('test-results', { recursive: true });
    const { COPPICE_TEST_COUNTS: file } = process.env;
    if (file) writeFileSync(file, JSON.stringify(counts));
    else writeFileSync('test-results/summary.txt', `${summaryLine([counts])}\n`);
  }
}
