import type { Scenario } from './scenario.ts';
import type { TraceLine } from './trace/trace-line.ts';
import { traceProblem } from './trace/trace-text.ts';

/** Properties of a trace that must be known before its first line is run. */
export interface Survey {
  /** Milliseconds; see TraceLine. */
  start: number;
  last: number;
  /** Whether times are dates. */
  dated: boolean;
  lines: number;
  /** Whether it has workloads in addition to cluster sizes. */
  hasWork: boolean;
  /** Clusters that the trace creates, by namespace/name: all others exist from the start. */
  created: ReadonlySet<string>;
}

/** The cluster of a line, as namespace/name. Throws a configuration problem. */
export function clusterOfLine({ cluster, where }: TraceLine, { clusters }: Scenario): string {
  if (clusters.has(cluster)) return cluster;
  const found = cluster.includes('/') ? [] : [...clusters.keys()].filter((key) => key.endsWith(`/${cluster}`));
  if (found.length === 1) return found[0]!;
  if (found.length > 1) {
    throw traceProblem(where, `"${cluster}" is ambiguous: ${found.join(', ')}`, 'Write namespace/name.');
  }
  const names = [...clusters.keys()];
  const known = names.length > 8 ? `${names.slice(0, 8).join(', ')}, ...` : names.join(', ');
  throw traceProblem(where, `the manifests have no cluster "${cluster}" (they have: ${known})`);
}

/**
 * Reads the whole trace once, so that an error in its last line is found before the run. Throws configuration problems.
 */
export async function surveyTrace(trace: AsyncIterable<TraceLine>, scenario: Scenario): Promise<Survey> {
  const exists = new Map<string, boolean>();
  const created = new Set<string>();
  let survey: Survey | undefined;
  for await (const line of trace) {
    if (line.event === 'work' || line.event === 'time') {
      if (line.cluster !== '') clusterOfLine(line, scenario);
      survey = noted(survey, line, created);
      continue;
    }
    const key = clusterOfLine(line, scenario);
    const before = exists.get(key);
    if (line.event === 'create') {
      if (before === true) throw traceProblem(line.where, `cluster ${key} exists already`);
      if (before === undefined) created.add(key);
    } else if (before === false) {
      throw traceProblem(line.where, `cluster ${key} was deleted before`, 'Create it again first.');
    }
    exists.set(key, line.event !== 'delete');
    for (const pool of line.pools) {
      const pools = scenario.clusters.get(key)!.spec.pools ?? [];
      if (pools.some(({ name }) => name === pool.name)) continue;
      const names = pools.map(({ name }) => name).join(', ') || 'none';
      throw traceProblem(line.where, `cluster ${key} has no pool "${pool.name}" (it has: ${names})`);
    }
    survey = noted(survey, line, created);
  }
  return survey ?? { start: 0, last: 0, dated: false, lines: 0, hasWork: false, created };
}

function noted(before: Survey | undefined, { at, dated, event }: TraceLine, created: ReadonlySet<string>): Survey {
  const survey = before ?? { start: dated ? at : 0, last: at, dated, lines: 0, hasWork: false, created };
  survey.last = at;
  survey.lines++;
  survey.hasWork ||= event === 'work';
  return survey;
}
