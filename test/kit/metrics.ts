import { readFile } from 'node:fs/promises';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import type { KubeClient } from '../../operator/kube/client.ts';

/** One line of Prometheus' text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The samples in Prometheus' text format; label values with escaped quotes are not understood. */
export function samples(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const match = /^([a-z_]+)(?:\{(.*)\})? ([-+0-9.eE]+)$/.exec(line);
    if (!match) return [];
    const labels = [...(match[2] ?? '').matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]);
    return [{ name: match[1]!, labels: Object.fromEntries(labels) as Record<string, string>, value: Number(match[3]) }];
  });
}

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE', 'DELETECOLLECTION', 'CREATE', 'UPDATE']);
/** They are sent to be answered, and store nothing, just as dry runs do. */
const REVIEWS = /reviews$/;

/** How many writes an API server has carried out or refused since it started, by `VERB resource[/subresource]`. */
export async function writes(client: KubeClient): Promise<Record<string, number>> {
  const text = await client.request<string>('GET', '/metrics');
  const counts: Record<string, number> = {};
  for (const { name, labels, value } of samples(text)) {
    const { verb = '', resource = '', subresource, dry_run: dryRun } = labels;
    if (name !== 'apiserver_request_total' || !WRITES.has(verb) || REVIEWS.test(resource) || dryRun) continue;
    const what = `${verb} ${resource}${subresource ? `/${subresource}` : ''}`;
    counts[what] = (counts[what] ?? 0) + value;
  }
  return counts;
}

/** How many requests an API server has refused (401) since it started, because nothing showed who sent them. */
export async function refusedIdentities(client: KubeClient): Promise<number> {
  const text = await client.request<string>('GET', '/metrics');
  return samples(text)
    .filter(({ name, labels }) => name === 'authentication_attempts' && labels.result !== 'success')
    .reduce((sum, { value }) => sum + value, 0);
}

/** How many requests an API server has carried out since it started that a FlowSchema gave their priority. */
export async function givenPriorityBy(client: KubeClient, flowSchema: string): Promise<number> {
  return samples(await client.request<string>('GET', '/metrics'))
    .filter(({ name, labels }) => name.endsWith('dispatched_requests_total') && labels.flow_schema === flowSchema)
    .reduce((sum, { value }) => sum + value, 0);
}

/** What has been added from one count to a later one. */
export const difference = (before: Record<string, number>, after: Record<string, number>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(after)
      .map(([what, count]): [string, number] => [what, count - (before[what] ?? 0)])
      .filter(([, added]) => added !== 0),
  );

export const sumOf = (counts: readonly (readonly [string, number])[]): number =>
  counts.reduce((sum, [, count]) => sum + count, 0);

/** The metrics of the garden's operator, where its log says that they are served. */
export async function operatorMetrics(home: string): Promise<Sample[]> {
  const log = await readFile(new StateDirectory(home).logFile('operator'), 'utf8');
  const urls = [...log.matchAll(/"health":"(http:[^"]+)"/g)];
  const url = urls.at(-1)?.[1];
  if (!url) throw new Error('the operator has not said where it serves its metrics');
  const answer = await fetch(`${url}/metrics`);
  return samples(await answer.text());
}

/** How many writes the operator has sent to the garden since it started: all, or those of one HTTP method. */
export async function writesOfOperator(home: string, only?: string): Promise<number> {
  const methods = only ? [only] : ['POST', 'PUT', 'PATCH', 'DELETE'];
  return (await operatorMetrics(home))
    .filter(({ name, labels }) => name === 'coppice_api_requests_total' && methods.includes(labels.method ?? ''))
    .reduce((sum, { value }) => sum + value, 0);
}
