import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { KubeClient } from '../../../operator/kube/client.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { CONFIGMAPS, type ConfigMap } from '../../../operator/kube/resources.ts';
import { type ConnectProxy, ELSEWHERE, startProxy } from '../../kit/connect-proxy.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

let api: SharedApiserver;
let proxy: ConnectProxy;
let client: KubeClient;
let followed: Informer<ConfigMap>;
beforeAll(async () => {
  api = await sharedApiserver();
  proxy = await startProxy({ [`${ELSEWHERE}:6443`]: Number(new URL(api.url).port) });
  for (const name of ['https_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, '');
  vi.stubEnv('HTTPS_PROXY', proxy.url);
  const kubeconfig = api.kubeconfig.replace(api.url, `https://${ELSEWHERE}:6443`);
  client = KubeClient.fromAdministratorsKubeconfig(kubeconfig, 'the kubeconfig of a seed');
  followed = new Informer<ConfigMap>(client, CONFIGMAPS, { namespace: api.namespace, labelSelector: 'test=yes' });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await followed?.stop();
  await client?.close();
  await proxy?.close();
  await api?.leave();
});

const configMap = (name: string): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: api.namespace, name, labels: { test: 'yes' } },
});
const names = () => followed.list().map(({ metadata }) => metadata.name);

it('KubeClient reaches an API server behind a proxy, with few connections and one proxy request each', async () => {
  followed.start();
  await followed.whenSynced();
  const before = client.stats.requests;
  await Promise.all(Array.from({ length: 20 }, (_, index) => client.create(configMap(`by-proxy-${index}`))));
  await expect.poll(() => names().length).toBe(20);
  expect(client.stats.requests - before).toBe(20);
  // One for the watch, two for all else.
  expect(proxy.asked).toEqual(proxy.asked.map(() => `${ELSEWHERE}:6443`));
  expect(proxy.asked.length).toBeLessThanOrEqual(3);
});

it('a watch names the dead proxy in its error, and resumes once the proxy is back', async () => {
  const { requests } = client.stats;
  await proxy.close();
  await expect(client.get(CONFIGMAPS, 'by-proxy-0', api.namespace)).rejects.toThrow(
    `at https://${ELSEWHERE}:6443: proxy ${proxy.url} cannot be used: connect ECONNREFUSED`,
  );
  await expect.poll(() => String(followed.lastError)).toContain(`proxy ${proxy.url} cannot be used`);
  await api.client.create(configMap('meanwhile'));
  await proxy.start();
  await expect.poll(names, { timeout: 30_000 }).toContain('meanwhile');
  // Nothing is listed again, and the proxy is not stormed.
  expect(client.stats.requests - requests).toBeLessThan(15);
  expect((await client.get(CONFIGMAPS, 'meanwhile', api.namespace)).metadata.name).toBe('meanwhile');
});
