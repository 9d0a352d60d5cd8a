import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { connectCluster } from '../../../operator/clusters/kubeconfig-cluster.ts';
import { SeedRegistry } from '../../../operator/clusters/seed-access.ts';
import { HubConnections } from '../../../operator/controllers/membership/hub-connections.ts';
import { clientOf } from '../../../operator/controllers/shoot/connect.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import { NODES } from '../../../operator/kube/resources.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { buildSeed } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { type ConnectProxy, startProxy } from '../../kit/connect-proxy.ts';

/** Reserved for documentation: nobody answers there. */
const text = writeKubeconfigText({ server: 'https://192.0.2.1:6443', ca: '', token: 't', name: 'c', user: 'u' });
const never = new AbortController().signal;
const secret = { data: { value: Buffer.from(text).toString('base64') } };
const garden = partOf<KubeClient>({ get: async () => secret, getOrUndefined: async () => secret });
let proxy: ConnectProxy;
beforeAll(async () => {
  proxy = await startProxy({});
});
afterAll(() => proxy?.close());
beforeEach(() => {
  proxy.asked.length = 0;
  for (const name of ['https_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, '');
  vi.stubEnv('HTTPS_PROXY', proxy.url);
});
afterEach(() => vi.unstubAllEnvs());

it.each<[string, () => Promise<unknown>]>([
  [
    'a seed',
    () => {
      const seed = buildSeed({ metadata: { name: 'far' }, spec: { kubeconfigRef: { name: 'far' } } });
      return new SeedRegistry(garden, silent).open(seed, never);
    },
  ],
  [
    'a hub',
    () => {
      const hubs = new HubConnections(garden, 'coppice-system', silent, () => {});
      return hubs.open('far', { kubeconfigRef: { name: 'far' } } as HubSpec, undefined, never);
    },
  ],
  [
    'a managed cluster',
    () => connectCluster(text, { changed: () => {}, answers: () => {} }, { tenant: 'shop', log: silent }, never),
  ],
])('%s is reached by the proxy of the environment', async (_, open) => {
  await expect(open()).rejects.toThrow(
    `at https://192.0.2.1:6443: proxy ${proxy.url} did not open a connection to 192.0.2.1:6443: 403 Forbidden`,
  );
  expect(new Set(proxy.asked)).toEqual(new Set(['192.0.2.1:6443']));
});

const operation = (exposure: 'LoadBalancer' | undefined, isElsewhere: boolean, isInCloud = false) =>
  partOf<Operation>({
    values: { exposure },
    seed: { isElsewhere },
    provider: { inCloud: isInCloud },
    controlPlanePool: isInCloud ? {} : undefined,
  });

it.each([
  ['a load balancer of a seed elsewhere', operation('LoadBalancer', true), true],
  ['machines in a cloud', operation(undefined, false, true), true],
  ["a load balancer of the garden's own cluster", operation('LoadBalancer', false), false],
  ['the address of a Service', operation(undefined, false), false],
] as const)('a hosted API server at %s is reached by a proxy: %s', async (_, op, isByProxy) => {
  const client = clientOf(op, text, { reachMs: 50 });
  await expect(client.list(NODES)).rejects.toThrow(isByProxy ? /proxy http.*403 Forbidden$/ : /^((?!proxy).)*$/);
  expect(proxy.asked).toEqual(isByProxy ? ['192.0.2.1:6443'] : []);
  await client.close();
});
