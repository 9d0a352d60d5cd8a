import { expect, test } from 'vitest';
import { EXCLUSIONS, faultsOf, listedTests } from '../../conformance/exclusions.ts';

const reasons = { lacks: 'image', why: 'it cannot be made' };

test('the committed table of exclusions is short, and has a valid reason for each test', () => {
  // That Kubernetes has these tests is seen by each run, which asks the tests themselves.
  expect(faultsOf(EXCLUSIONS, new Set(EXCLUSIONS.map(({ test }) => test)))).toEqual([]);
});

test('faultsOf reports exclusions without a valid reason, or too many of them', () => {
  const many = Array.from({ length: 41 }, (_, i) => ({ test: `[Conformance] ${i}`, ...reasons }));
  expect(faultsOf(many, new Set(many.map(({ test }) => test)))).toEqual(['41 tests are excluded, and 40 is the most']);
  const listed = new Set([
    'a [Conformance]',
    'AdmissionWebhook x',
    'should resolve DNS',
    'Services y',
    'version v1 proxy z',
  ]);
  const fault = (test: string, more = {}) => faultsOf([{ test, ...reasons, ...more }], listed);
  expect(fault('a [Conformance]')).toEqual([]);
  expect(fault('a [Conformance]', { why: '' })).toEqual(['"a [Conformance]" is excluded without a reason']);
  expect(fault('gone')).toEqual(['Kubernetes has no conformance test "gone"']);
  for (const needed of ['AdmissionWebhook x', 'should resolve DNS', 'Services y', 'version v1 proxy z'])
    expect(fault(needed)).toEqual([`"${needed}" may not be excluded`]);
});

test('listedTests returns the conformance tests in the list of e2e.test', () => {
  const text = `The following spec names can be used with 'ginkgo run --focus/skip':
    ../k8s.io/kubernetes@v1.36.3/test/e2e/apps/job.go:52: [sig-apps] Job should run a job: twice [Conformance]
    ../k8s.io/kubernetes@v1.36.3/test/e2e/apps/job.go:72: [sig-apps] Job should do something else
    test/e2e/node/pods.go:9: [sig-node] Pods [Serial] should be [NodeConformance] [Conformance] [Slow]
`;
  expect([...listedTests(text)]).toEqual([
    '[sig-apps] Job should run a job: twice [Conformance]',
    '[sig-node] Pods [Serial] should be [NodeConformance] [Conformance] [Slow]',
  ]);
});
