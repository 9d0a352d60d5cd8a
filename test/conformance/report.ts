/** A test that was run. */
export interface TestResult {
  name: string;
  outcome: 'passed' | 'failed' | 'skipped';
  seconds: number;
  /** First line of why it failed, or why it skipped itself. */
  reason?: string;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

const unescapeXml = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return ENTITIES[name] ?? whole;
  });

const attribute = (text: string, name: string): string =>
  unescapeXml(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text)?.[1] ?? '');

/** Of what a test says when it fails, the line for a person: the first one that is more than a time or a mark of ginkgo's. */
function firstLine(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/^\s*(?:\[FAILED\]|I\d{4} \S+)\s*/, '').trim());
  return lines.find((line) => line !== '' && !/^(?:In \[|\/|k8s\.io\/)/.test(line)) ?? 'it does not say why';
}

/**
 * What became of tests, out of the JUnit report of Kubernetes' e2e.test. Those that nobody asked for are in it too, as skipped
 * without a reason, and are left out here; so are set-up and tear-down, unless they failed.
 */
export function resultsOf(junit: string): TestResult[] {
  const results: TestResult[] = [];
  for (const [, attributes = '', body = ''] of junit.matchAll(/<testcase\s([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const [, kind = '', name = ''] = /^\[(\w+)\]\s?([\s\S]*)$/.exec(attribute(attributes, 'name')) ?? [];
    const seconds = Number(attribute(attributes, 'time'));
    const status = attribute(attributes, 'status');
    if (status === 'skipped' || status === 'pending') {
      const reason = /<skipped\s[^>]*message="skipped - ([^"]*)"/.exec(body)?.[1];
      if (reason !== undefined && kind === 'It')
        results.push({ name, outcome: 'skipped', seconds, reason: firstLine(unescapeXml(reason)) });
      continue;
    }
    if (status === 'passed') {
      if (kind === 'It') results.push({ name, outcome: 'passed', seconds });
      continue;
    }
    const said = /<(?:failure|error)\b[^>]*>([\s\S]*?)<\/(?:failure|error)>/.exec(body)?.[1] ?? '';
    results.push({ name: name || kind, outcome: 'failed', seconds, reason: firstLine(unescapeXml(said)) });
  }
  return results;
}

/** What a run ends with: each failure with its first line, and the counts. */
export function summaryOf(results: readonly TestResult[], excluded: number): { lines: string[]; failed: boolean } {
  const of = (outcome: TestResult['outcome']) => results.filter((one) => one.outcome === outcome);
  const [passed, failed, skipped] = [of('passed'), of('failed'), of('skipped')];
  const lines = [
    ...failed.map(({ name, reason }) => `failed: ${name}\n        ${reason}`),
    ...skipped.map(({ name, reason }) => `not run: ${name}\n        ${reason}`),
    `${passed.length} passed, ${failed.length} failed, ${excluded} excluded${skipped.length > 0 ? `, ${skipped.length} skipped themselves` : ''}`,
  ];
  // A run of nothing says nothing about a cluster.
  return { lines, failed: failed.length > 0 || passed.length === 0 };
}
