import { expect, test } from 'vitest';
import { resultsOf, summaryOf } from '../../conformance/report.ts';

const testcase = (name: string, status: string, body = '') =>
  `<testcase name="${name}" classname="Kubernetes e2e suite" status="${status}" time="1.5">${body}</testcase>`;
const junit = (...cases: string[]) =>
  `<?xml version="1.0"?><testsuites><testsuite>${cases.join('\n')}</testsuite></testsuites>`;

test('resultsOf separates tests that ran from skipped ones', () => {
  const report = junit(
    testcase('[SynchronizedBeforeSuite]', 'passed'),
    testcase('[It] [sig-apps] one &amp; &#34;two&#34; [Conformance]', 'passed'),
    testcase('[It] [sig-apps] another [Conformance]', 'skipped', '<skipped message="skipped"></skipped>'),
    testcase(
      '[It] [sig-node] a third [Conformance]',
      'skipped',
      '<skipped message="skipped - needs 2 nodes&#xA;and says more"></skipped>',
    ),
  );
  expect(resultsOf(report)).toEqual([
    { name: '[sig-apps] one & "two" [Conformance]', outcome: 'passed', seconds: 1.5 },
    { name: '[sig-node] a third [Conformance]', outcome: 'skipped', seconds: 1.5, reason: 'needs 2 nodes' },
  ]);
});

test("resultsOf takes a failure's first meaningful line as its reason", () => {
  const failure = '[FAILED] pod &quot;a&quot; is not Running&#xA;In [It] at: x.go:1&#xA;';
  const report = junit(
    testcase(
      '[It] fails',
      'failed',
      `<failure message="" type="failed">${failure}</failure><system-err>log</system-err>`,
    ),
    testcase('[It] panics', 'panicked', '<error message="" type="panicked">&#xA;  index out of range</error>'),
    testcase('[It] takes too long', 'timedout', '<failure type="timedout">A suite timeout occurred</failure>'),
    testcase('[SynchronizedBeforeSuite]', 'failed', '<failure type="failed"></failure>'),
  );
  expect(resultsOf(report).map(({ name, outcome, reason }) => [name, outcome, reason])).toEqual([
    ['fails', 'failed', 'pod "a" is not Running'],
    ['panics', 'failed', 'index out of range'],
    ['takes too long', 'failed', 'A suite timeout occurred'],
    ['SynchronizedBeforeSuite', 'failed', 'it does not say why'],
  ]);
});

test('summaryOf ends with the counts, and fails with one failed test, or without any test', () => {
  const passed = { name: 'a', outcome: 'passed', seconds: 1 } as const;
  const failed = { name: 'b', outcome: 'failed', seconds: 1, reason: 'no pod came' } as const;
  expect(summaryOf([passed], 3)).toEqual({ lines: ['1 passed, 0 failed, 3 excluded'], failed: false });
  expect(summaryOf([passed, failed], 3)).toEqual({
    lines: ['failed: b\n        no pod came', '1 passed, 1 failed, 3 excluded'],
    failed: true,
  });
  expect(summaryOf([], 3).failed).toBe(true);
});
