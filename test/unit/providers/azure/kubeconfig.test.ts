import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { aksKubeconfig, certificateAuthorityOf } from '../../../../providers/azure/kubeconfig.ts';
import type { ManagedClusterOutputs } from '../../../../providers/cloud.ts';
import { context, FakeAzure, TOKEN } from './fake-azure.ts';
import { subscription } from './fixtures.ts';

const id = `/subscriptions/${subscription}/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c`;
const outputs = (localAccounts: string): ManagedClusterOutputs => ({
  name: 'c',
  endpoint: 'https://c.azmk8s.io',
  certificateAuthority: 'CERTIFICATE',
  version: '1.36.3',
  extra: { id, localAccounts },
});
const encoded = (text: string) => Buffer.from(text).toString('base64');

const ADMIN = (user: string) => `apiVersion: v1
clusters: [{name: c, cluster: {server: "https://c.azmk8s.io"}}]
contexts: [{name: c-admin, context: {cluster: c, user: clusterAdmin_g_c}}] # a remark
current-context: c-admin
kind: Config
preferences: {}
users: [{name: clusterAdmin_g_c, user: ${user}}]
`;

describe('aksKubeconfig', () => {
  it('returns a token of Entra ID and its expiry', async () => {
    await using azure = await FakeAzure.start(() => undefined);
    const { kubeconfig, expiresAt } = await aksKubeconfig(context(), azure.endpoints, outputs('false'));
    expect(load(kubeconfig)).toMatchObject({
      clusters: [{ cluster: { server: 'https://c.azmk8s.io', 'certificate-authority-data': encoded('CERTIFICATE') } }],
      users: [{ user: { token: TOKEN } }],
    });
    expect(expiresAt).toBe('2026-11-20T10:59:59.000Z');
    expect(azure.asked.map(({ path }) => path)).toEqual([expect.stringMatching(/oauth2\/v2\.0\/token$/)]);
  });

  it("returns the administrator's token for an adopted cluster with local accounts", async () => {
    await using azure = await FakeAzure.start(() => ({
      body: { kubeconfigs: [{ name: 'a', value: encoded(ADMIN('{token: admin}')) }] },
    }));
    const given = await aksKubeconfig(context(), azure.endpoints, outputs('true'));
    expect(given).toEqual({ kubeconfig: expect.not.stringContaining('remark') });
    expect(load(given.kubeconfig)).toMatchObject({
      clusters: [{ cluster: { server: 'https://c.azmk8s.io' } }],
      users: [{ user: { token: 'admin' } }],
    });
    expect(azure.asked[1]).toMatchObject({
      method: 'POST',
      path: `${id}/listClusterAdminCredential?api-version=2025-09-01`,
      authorization: `Bearer ${TOKEN}`,
    });
  });

  it('refuses a kubeconfig in which another parser would run a program', async () => {
    await using azure = await FakeAzure.start(() => ({
      body: { kubeconfigs: [{ name: 'a', value: encoded(ADMIN('{<<: {exec: {command: id}}}')) }] },
    }));
    await expect(aksKubeconfig(context(), azure.endpoints, outputs('true'))).rejects.toThrow('has <<');
  });

  it('rejects when AKS returns none', async () => {
    await using azure = await FakeAzure.start(() => ({ body: { kubeconfigs: [] } }));
    await expect(aksKubeconfig(context(), azure.endpoints, outputs('true'))).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    });
    expect(() => certificateAuthorityOf('')).toThrow('no certificate authority');
  });
});
