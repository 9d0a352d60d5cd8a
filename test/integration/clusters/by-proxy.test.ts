import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { type ConnectProxy, ELSEWHERE, startProxy } from '../../kit/connect-proxy.ts';
import { addNode } from '../../kit/hubs/hub-testbed.ts';
import { runCoppice } from '../../kit/run.ts';

const SERVER = `${ELSEWHERE}:6443`;
let api: TestApiserver;
let proxy: ConnectProxy;

/** A garden on this machine. Its cluster `far` has a kubeconfig to a name that only the proxy knows. */
beforeAll(async () => {
  api = await startApiserver();
  proxy = await startProxy({ [SERVER]: Number(new URL(api.url).port) });
  const { client } = api;
  for (const manifest of installManifests()) await client.apply(manifest);
  await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await addNode(api, 'beyond-the-proxy', '4', '8Gi');
  const make = async (apiVersion: string, kind: string, name: string, spec: object, status?: object) => {
    const metadata = { name, ...(kind !== 'Hub' && { namespace: 'shop' }) };
    await client.apply({ apiVersion, kind, metadata, spec } as KubeObject);
    if (status) await client.apply({ apiVersion, kind, metadata, status } as KubeObject, { subresource: 'status' });
  };
  const kubeconfigRef = { name: 'far-kubeconfig', key: 'value' };
  await make(API_VERSION, 'WorkerCluster', 'far', { cloudProvider: 'local', dataPlaneNodes: 1 }, { kubeconfigRef });
  const kubeconfig = Buffer.from(api.kubeconfig.replace(api.url, `https://${SERVER}`)).toString('base64');
  const metadata = { name: 'far-kubeconfig', namespace: 'shop' };
  await client.apply({ apiVersion: 'v1', kind: 'Secret', metadata, data: { value: kubeconfig } } as KubeObject);
  const hub = { type: 'ClusterProfile', clusterProfile: { namespace: 'shop' }, allowedNamespaces: ['shop'] };
  await make(ALPHA_API_VERSION, 'Hub', 'fleet', hub);
  await make(ALPHA_API_VERSION, 'Membership', 'far', { cluster: 'far', hub: 'fleet' }, { state: 'Joined' });
  const template = { spec: { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 1 }] } };
  const candidates = [{ name: 'cloud', template }];
  const policy = { hub: 'fleet', candidates, maximumClusters: 1, budget: { hourly: '1' } };
  await make(ALPHA_API_VERSION, 'BurstPolicy', 'peak', policy);
});
afterAll(async () => {
  await proxy?.close();
  await api?.stop();
});
beforeEach(() => {
  proxy.asked.length = 0;
});

async function coppice(server: string, ...argv: string[]) {
  const file = join(api.directory, `${new URL(server).hostname}.kubeconfig`);
  await writeFile(file, api.kubeconfig.replace(api.url, server));
  const home = join(api.directory, 'home');
  const env = { HTTPS_PROXY: proxy.url, https_proxy: '', NO_PROXY: '', no_proxy: '' };
  return runCoppice([...argv, '--kubeconfig', file], { home, tools: home, env });
}

it.each([
  ['describe', ['describe', 'far', '-n', 'shop'], 'beyond-the-proxy'],
  ['hubs audit', ['hubs', 'audit'], 'Nothing is left over'],
  ['burst plan', ['burst', 'plan', '-n', 'shop'], 'Nothing was done'],
])('coppice %s reaches a cluster that is reachable only through the proxy', async (_, argv, said) => {
  const { code, stdout, stderr } = await coppice(api.url, ...argv);
  expect({ code, said: stdout + stderr }).toEqual({ code: 0, said: expect.stringContaining(said) });
  expect(stdout + stderr).not.toContain('could not');
  // The garden is on this machine, and was not asked for.
  expect(new Set(proxy.asked)).toEqual(new Set([SERVER]));
});

it('coppice reaches the garden itself through the proxy', async () => {
  const { code, stdout } = await coppice(`https://${SERVER}`, 'get', '-n', 'shop');
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('far') });
});
