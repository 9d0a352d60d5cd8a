import { afterEach, expect, test } from 'vitest';
import { checkRelease } from '../../../operator/chart/check-release.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { serveHealth } from '../../../operator/kube/health.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { partOf } from '../../kit/builders/partial.ts';

type HealthServer = Awaited<ReturnType<typeof serveHealth>>;

let server: HealthServer | undefined;
afterEach(() => server?.close());

const client = (holderIdentity?: string) => partOf<KubeClient>({ get: async () => ({ spec: { holderIdentity } }) });
async function operator(ready: true | string): Promise<{ url: string; namespace: string }> {
  const registry = new Registry();
  registry.counter('coppice_api_requests_total', 'Requests.').inc();
  server = await serveHealth({ port: 0, checks: { replica: () => ready }, registry });
  return { url: server.url, namespace: 'platform' };
}

test('checkRelease passes an operator that is ready, serves metrics and leads', async () => {
  expect(await checkRelease(client('coppice-operator-1'), await operator(true))).toEqual([]);
});

test('checkRelease reports why the operator is not ready, and a missing leader', async () => {
  const problems = await checkRelease(client(), await operator('the garden has no shoots: install the CRDs'));
  expect(problems).toEqual([
    expect.stringMatching(/not ready: .*answers 503: \[-\] replica: the garden has no shoots: install the CRDs/),
    'no replica leads: see the log of each',
  ]);
});

test('checkRelease reports an unreachable operator once for each path', async () => {
  const release = await operator(true);
  await server!.close();
  const problems = await checkRelease(client('one'), release);
  expect(problems).toEqual([
    `the operator is not ready: ${release.url}/readyz does not answer (ECONNREFUSED)`,
    `no metrics are served: ${release.url}/metrics does not answer (ECONNREFUSED)`,
  ]);
});
