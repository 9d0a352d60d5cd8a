import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eksToken } from '../../../providers/aws/token.ts';
import type { Plugin } from '../../kit/cloud/client.ts';
import { awsGround, azureGround, cloudForFile, gcpGround, REGIONS, T } from './testbed.ts';

const fake = cloudForFile();
let aws: Plugin;
let gcp: Plugin;
let azure: Plugin;

const CA = '-----BEGIN CERTIFICATE-----\nof a real one\n-----END CERTIFICATE-----\n';
const REAL = { endpoint: 'https://127.0.0.1:6443', certificateAuthority: CA };
const decoded = (base64: string) => Buffer.from(base64, 'base64').toString();

beforeAll(async () => {
  [aws, gcp, azure] = await Promise.all([fake.plugin('aws'), fake.plugin('gcp'), fake.plugin('azure-native')]);
});

describe('a managed cluster of the fake cloud with a real API server', () => {
  it('has its endpoint and CA in the outputs of EKS', async () => {
    const ground = await awsGround(aws, 'real', 60);
    fake.cloud.setEndpoint('real', REAL);
    const { outputs } = await aws.create(T.cluster, 'cluster', ground.cluster);
    expect(outputs.endpoint).toBe('https://127.0.0.1:6443');
    expect(decoded(outputs.certificateAuthority.data)).toBe(CA);
  });

  it('has its endpoint, without scheme, and CA in the outputs of GKE', async () => {
    const ground = await gcpGround(gcp, 'real-gke');
    await gcp.create(T.gke, 'cluster', ground.cluster);
    fake.cloud.setEndpoint('real-gke', REAL);
    const found = await gcp.read(T.gke, fake.cloud.resource(T.gke, 'real-gke').id);
    expect(found?.outputs.endpoint).toBe('127.0.0.1:6443');
    expect(decoded(found?.outputs.masterAuth.clusterCaCertificate)).toBe(CA);
  });

  it('has its endpoint in the outputs of AKS, and an administrator with local accounts', async () => {
    const ground = await azureGround(azure, 'real-aks');
    fake.cloud.setEndpoint('real-aks', { ...REAL, token: 'a-real-token' });
    const { outputs } = await azure.create(T.aks, 'cluster', ground.cluster);
    expect(outputs.fqdn).toBe('127.0.0.1:6443');
    const { kubeconfigs } = await azure.invoke('azure-native:containerservice:listManagedClusterAdminCredentials', {
      resourceGroupName: 'real-aks',
      resourceName: 'real-aks',
    });
    const kubeconfig = JSON.parse(decoded(kubeconfigs[0].value));
    expect(kubeconfig.clusters[0].cluster.server).toBe('https://127.0.0.1:6443');
    expect(kubeconfig.users[0].user).toEqual({ token: 'a-real-token' });
  });
});

describe('authentication at the fake EKS', () => {
  it('admits principals of access entries with a recent token for this cluster only', async () => {
    const ground = await awsGround(aws, 'guarded', 62);
    await aws.create(T.cluster, 'cluster', ground.cluster);
    const { key, secret, principal } = fake.cloud.account('aws');
    const lets = async (name: string, at = new Date(), secretAccessKey = secret) => {
      const { token } = await eksToken(name, REGIONS.aws, { accessKeyID: key, secretAccessKey }, at);
      return fake.cloud.isAdministrator(fake.cloud.resource(T.cluster, 'guarded'), token);
    };
    expect(await lets('guarded')).toBe(false);
    const entry = { clusterName: 'guarded', principalArn: principal };
    await aws.create('aws:eks/accessEntry:AccessEntry', 'admin', entry);
    await aws.create('aws:eks/accessPolicyAssociation:AccessPolicyAssociation', 'admin', {
      ...entry,
      policyArn: 'arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy',
      accessScope: { type: 'cluster' },
    });
    expect(await lets('guarded')).toBe(true);
    expect(await lets('other')).toBe(false);
    expect(await lets('guarded', new Date(Date.now() - 16 * 60_000))).toBe(false);
    expect(await lets('guarded', new Date(), 'a guess')).toBe(false);
    fake.cloud.faults.set({ revoked: [key] });
    expect(await lets('guarded')).toBe(false);
    fake.cloud.faults.clear();
  });
});

describe('a hook that provides API servers', () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      asked.push(`${request.method} ${JSON.parse(text).name}`);
      response.end(JSON.stringify(REAL));
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    fake.cloud.setEndpointHook(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  });
  afterAll(() => server.close());

  it('is called for each new cluster, and after its deletion', async () => {
    const ground = await awsGround(aws, 'hooked', 61);
    const { outputs } = await aws.create(T.cluster, 'cluster', ground.cluster);
    expect(outputs.endpoint).toBe('https://127.0.0.1:6443');
    await aws.delete(T.cluster, 'hooked');
    expect(asked).toEqual(['POST hooked', 'DELETE hooked']);
  });
});
