import { afterAll, beforeAll, expect, it } from 'vitest';
import { KubeClient } from '../../../operator/kube/client.ts';
import { CLUSTERROLES } from '../../../operator/kube/resources.ts';
import { isUsable, NOT_AT_FIRST } from '../../../operator/shoot/readiness.ts';
import { adminRole } from '../../../operator/shoot/system-components.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

let api: TestApiserver;
beforeAll(async () => {
  api = await startApiserver();
});
afterAll(() => api?.stop());

/** A webhook that nobody answers for, and that must answer. */
const failClosed = (rule: object) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'never' },
  webhooks: [
    {
      name: 'never.example.com',
      clientConfig: { url: 'https://127.0.0.1:9/never' },
      rules: [{ apiVersions: ['*'], operations: ['*'], scope: '*', ...rule }],
      failurePolicy: 'Fail',
      sideEffects: 'None',
      timeoutSeconds: 1,
      admissionReviewVersions: ['v1'],
    },
  ],
});

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

it.each([
  ['namespaces', '/api/v1/namespaces', 'Namespace', { apiGroups: [''], resources: ['namespaces'] }],
  ['all there is', '/api/v1/namespaces/default/configmaps', 'ConfigMap', { apiGroups: ['*'], resources: ['*/*'] }],
])('a cluster is usable for its admin although a webhook that guards %s is down', async (_, path, kind, rule) => {
  const client = KubeClient.fromKubeconfig(api.kubeconfig);
  const refusal = () =>
    client
      .request('POST', path, { query: { dryRun: 'All' }, body: { apiVersion: 'v1', kind, metadata: { name: 'x' } } })
      .then(
        () => 'made',
        (error: Error) => error.message,
      );
  try {
    await client.request('POST', CONFIGURATIONS, { body: failClosed(rule) });
    // Webhooks take effect a moment after they were made.
    await expect.poll(refusal).toContain('failed calling webhook');
    expect(await isUsable(client)).toEqual({ usable: true });
    await client.request('DELETE', `${CONFIGURATIONS}/never`);
  } finally {
    await client.close();
  }
});

it('a cluster is not usable for a user without a role', async () => {
  expect(await isUsable(api.connect({ token: api.readerToken }))).toMatchObject({ usable: false });
});

it("isUsable excludes health checks by the API server's names", async () => {
  const client = KubeClient.fromKubeconfig(api.kubeconfig);
  const excluded = NOT_AT_FIRST.map((check) => `exclude=${check}`);
  const said = await client.request<string>('GET', `/readyz?verbose&${excluded.join('&')}`);
  await client.close();
  for (const check of NOT_AT_FIRST) expect(said).toContain(`[+]${check} excluded: ok`);
});

it("the operator's admin role equals that of the API server", async () => {
  const client = KubeClient.fromKubeconfig(api.kubeconfig);
  const live = await client.get(CLUSTERROLES, adminRole().metadata.name);
  await client.close();
  expect(live).toMatchObject(adminRole());
});
