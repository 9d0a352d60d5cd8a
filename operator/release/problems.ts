/** What is known of a checkout before it is released. */
interface Checkout {
  /** `version` of package.json. */
  version: string;
  /** `appVersion` of the chart. */
  appVersion: string;
  changelog: string;
  /** Paths that `git status` reports. */
  changed: readonly string[];
}

/** Shown at most; the rest is counted. */
const CHANGED_SHOWN = 3;

/** Reasons not to release a checkout, each with what to do; empty: it can be released. */
export function releaseProblems({ version, appVersion, changelog, changed }: Checkout): string[] {
  const problems: string[] = [];
  if (changed.length > 0) {
    const more = changed.length > CHANGED_SHOWN ? ` and ${changed.length - CHANGED_SHOWN} more` : '';
    problems.push(`commit or remove what git does not have: ${changed.slice(0, CHANGED_SHOWN).join(', ')}${more}`);
  }
  if (appVersion !== version)
    problems.push(`set appVersion in charts/coppice/Chart.yaml to ${version}, the version of package.json`);
  if (!changelog.split('\n').some((line) => line.startsWith(`## ${version} `)))
    problems.push(`add a section "## ${version} (date)" to CHANGELOG.md`);
  return problems;
}
