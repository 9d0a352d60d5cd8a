/** A conformance test that is not run, and for want of what. */
export interface Exclusion {
  /** Full name of the test, as `e2e.test --list-tests` says it. */
  test: string;
  /** The image that cannot be made here, or the part of a cluster that is missing. */
  lacks: string;
  why: string;
}

export const MOST_EXCLUSIONS = 40;
/** What a cluster is for: tests of it are run, whatever their outcome. */
export const NEVER_EXCLUDED = /webhook|proxy|\bDNS\b|\bServices?\b/i;

/** All that is not run. Everything else has to pass. */
export const EXCLUSIONS: readonly Exclusion[] = [];

/** What is wrong with a table of exclusions, a line each; `listed`: names of all tests that there are. */
export function faultsOf(exclusions: readonly Exclusion[], listed: ReadonlySet<string>): string[] {
  const faults: string[] = [];
  if (exclusions.length > MOST_EXCLUSIONS)
    faults.push(`${exclusions.length} tests are excluded, and ${MOST_EXCLUSIONS} is the most`);
  const seen = new Set<string>();
  for (const { test, lacks, why } of exclusions) {
    if (!listed.has(test)) faults.push(`Kubernetes has no conformance test "${test}"`);
    if (seen.has(test)) faults.push(`"${test}" is excluded twice`);
    if (NEVER_EXCLUDED.test(test)) faults.push(`"${test}" may not be excluded`);
    if (lacks === '' || why === '') faults.push(`"${test}" is excluded without a reason`);
    seen.add(test);
  }
  return faults;
}

/** Names of conformance tests in what `e2e.test --list-tests` writes: a line each, after the place in the source. */
export function listedTests(text: string): Set<string> {
  const names = new Set<string>();
  for (const line of text.split('\n')) {
    const [, name] = /^\s*\S+:\d+:\s+(.*\[Conformance\].*?)\s*$/.exec(line) ?? [];
    if (name) names.add(name);
  }
  return names;
}
