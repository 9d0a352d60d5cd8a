import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import { specRefusalOf } from '../../../operator/cli/acceptance.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

let server: SmallApiServer;
let client: KubeClient;
beforeAll(async () => {
  server = await SmallApiServer.start('garden');
  client = KubeClient.fromAdministratorsKubeconfig(server.kubeconfig, 'the test');
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

const never = new AbortController().signal;

/** A cluster of which the operator has judged this generation. */
function stored(name: string, generation: number, judged: number, status: 'True' | 'False') {
  const condition = { type: 'SpecAccepted', status, reason: 'X', message: 'spec.region: there is no region mars-1' };
  server.put(`/apis/${API_VERSION}/namespaces/default/workerclusters/${name}`, {
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name, namespace: 'default', generation },
    status: { observedGeneration: judged, conditions: [condition] },
  } as never);
}

const ask = (name: string, patienceMs?: number) =>
  specRefusalOf(client, { name, namespace: 'default' }, never, patienceMs);

it('refusalOf returns the reason of a refused spec, and undefined for an accepted one', async () => {
  stored('wrong', 2, 2, 'False');
  stored('right', 2, 2, 'True');
  expect(await Promise.all([ask('wrong'), ask('right')])).toEqual([
    'spec.region: there is no region mars-1',
    undefined,
  ]);
});

it('refusalOf ignores a condition about an earlier generation', async () => {
  stored('corrected', 3, 2, 'False');
  expect(await ask('corrected', 100)).toBeUndefined();
});

it('refusalOf waits for the condition of this generation', async () => {
  stored('later', 3, 2, 'True');
  const asked = ask('later', 30_000);
  await expect.poll(() => server.requests.filter((line) => line.includes('workerclusters')).length).toBeGreaterThan(0);
  stored('later', 3, 3, 'False');
  expect(await asked).toContain('mars-1');
});

it('refusalOf returns undefined when the operator is silent or watching is forbidden', async () => {
  stored('silent', 1, 0, 'True');
  expect(await ask('silent', 100)).toBeUndefined();
  server.refuses.set(`/apis/${API_VERSION}/namespaces/default/workerclusters`, 403);
  expect(await ask('silent', 30_000)).toBeUndefined();
  server.refuses.clear();
});
