import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_VERSION, LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { managedReceiptName } from '../../../operator/api/names.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import {
  CREDENTIALSBINDINGS,
  EVENTS,
  NAMESPACES,
  NODES,
  type Resource,
  SECRETS,
  type Secret,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';
import { managedOnly } from '../../kit/managed-only.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

// One API server is the garden and, by another identity, every managed cluster: the way to nodes is the real one.
let garden: TestApiserver;
let cloud: MemoryCloud;
let operator: Operator;
let directory: string;
const stopping = new AbortController();

beforeAll(async () => {
  garden = await startApiserver();
  directory = await mkdtemp(join(tmpdir(), 'coppice-managed-'));
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  await until('the kinds to be served', () => garden.client.list(CREDENTIALSBINDINGS));
  await garden.client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await garden.client.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'cloud-identity' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
  });
  const { uid: _, resourceVersion: __, ...metadata } = memoryProfile.metadata;
  await garden.client.create({ ...memoryProfile, metadata });
  cloud = new MemoryCloud();
  cloud.endpoint = garden.url;
  cloud.certificateAuthority = garden.ca;
  cloud.token = garden.readerToken;
  const provider = managedOnly('memory', cloud.managed());
  operator = await startOperator(
    {
      garden: garden.connect(),
      log: silent,
      metrics: new Registry(),
      provider: () => provider,
      state: { namespace: 'kube-system', directory },
    },
    stopping.signal,
  );
});
afterAll(async () => {
  stopping.abort(new Error('the test is over'));
  await operator?.stop();
  await garden?.stop();
  if (directory) await rm(directory, { recursive: true, force: true });
});

async function until<T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = 60_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const found = await ask();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`waited too long for ${what}: ${last}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const keys = (name: string, accessKey: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shop' },
  stringData: { accessKey },
});
const binding = (name: string, secret: string, more: object = {}): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'CredentialsBinding',
  metadata: { name, namespace: 'shop' },
  provider: { type: 'memory' },
  credentialsRef: { apiVersion: 'v1', kind: 'Secret', name: secret, ...more },
});
const cluster = (name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name, namespace: 'shop' },
  spec: { cloudProvider: 'memory', dataPlaneNodes: 1, ...spec },
});
const get = <T extends KubeObject>(resource: Resource, name: string) =>
  garden.client.getOrUndefined<T>(resource, name, 'shop');
const condition = async (resource: Resource, name: string, type: string) =>
  (await get<WorkerCluster>(resource, name))?.status?.conditions?.find((known) => known.type === type);
const recordOf = (key: string) => garden.client.getOrUndefined(SECRETS, managedReceiptName(key), 'kube-system');
const isGone = async (resource: Resource, name: string) => (await get(resource, name)) === undefined;
const node = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { [LABELS.pool]: 'default' } },
  status: {
    conditions: [{ type: 'Ready', status: 'True' }],
    allocatable: { cpu: '2', memory: '4Gi', pods: '10' },
    capacity: { cpu: '2', memory: '4Gi', pods: '10' },
  },
});

describe('a CredentialsBinding', () => {
  test('shows whether the cloud accepts it, and follows changes', async () => {
    await garden.client.create(binding('early', 'later'));
    const early = await until('the binding to be judged', () => condition(CREDENTIALSBINDINGS, 'early', 'Ready'));
    expect(early).toMatchObject({ status: 'False', codes: ['ERR_RETRYABLE_CONFIGURATION_PROBLEM'] });
    await garden.client.create(keys('later', 'wrong'));
    await until('the refusal', async () => {
      const codes = (await condition(CREDENTIALSBINDINGS, 'early', 'Ready'))?.codes;
      return codes?.includes('ERR_INFRA_UNAUTHENTICATED');
    });
    await garden.client.apply(keys('later', 'key-1'));
    await until('the binding to be Ready', async () => {
      return (await condition(CREDENTIALSBINDINGS, 'early', 'Ready'))?.status === 'True';
    });
    expect((await get(CREDENTIALSBINDINGS, 'early'))?.status.account).toBe('account-1');
    const other = { ...binding('early', 'later'), provider: { type: 'aws' } };
    await expect(garden.client.apply(other)).rejects.toThrow('provider.type cannot be changed');
  });

  test("is refused at admission for another tenant's Secret", async () => {
    const foreign = binding('foreign', 'keys', { namespace: 'bank' });
    await expect(garden.client.create(foreign)).rejects.toThrow('in their own namespace only');
    const thief = cluster('thief', { credentialsRef: { name: 'keys', namespace: 'bank' } });
    await expect(garden.client.create(thief)).rejects.toThrow('put them into namespace shop');
    await garden.client.create(cluster('honest', { credentialsRef: { name: 'keys', namespace: 'shop' } }), {
      dryRun: true,
    });
  });
});

describe('a managed cluster', () => {
  test('is created up to a kubeconfig that lists nodes, and deleted completely', async () => {
    await garden.client.create(keys('cloud', 'key-1'));
    await garden.client.create(binding('bound', 'cloud'));
    await garden.client.create(cluster('one', { credentialsRef: { name: 'bound' } }));
    await until('no nodes to be noticed', async () => {
      return (await condition(WORKERCLUSTERS, 'one', 'EveryNodeReady'))?.reason === 'ScalingOut';
    });
    await garden.client.create(node('n1'));
    await garden.client.mergePatch(NODES, 'n1', undefined, { status: node('n1').status }, { subresource: 'status' });
    // Nothing in this test takes the taint of a new node off.
    await garden.client.mergePatch(NODES, 'n1', undefined, { spec: { taints: null } });
    await until('the cluster to be Ready', async () => {
      return (await condition(WORKERCLUSTERS, 'one', 'Ready'))?.status === 'True';
    });
    const { status } = (await get<WorkerCluster>(WORKERCLUSTERS, 'one'))!;
    expect(status).toMatchObject({
      mode: 'Managed',
      nodes: { desired: 1, current: 1, ready: 1 },
      resource: { total: { cpu: '2' } },
      lastOperation: { type: 'Create', state: 'Succeeded' },
    });

    const secret = (await get<Secret>(SECRETS, 'one-kubeconfig'))!;
    expect(secret.metadata.labels).toMatchObject({ 'cluster.x-k8s.io/cluster-name': 'one' });
    const kubeconfig = Buffer.from(secret.data!.value!, 'base64').toString();
    expect(kubeconfig).not.toContain(garden.readerToken);
    const client = KubeClient.fromKubeconfig(kubeconfig);
    try {
      expect((await client.list(NODES)).items.map((found) => found.metadata.name)).toEqual(['n1']);
    } finally {
      await client.close();
    }
    const hours =
      (Date.parse(secret.metadata.annotations!['multi-cluster.demo.io/expires-at']!) - Date.now()) / 3600_000;
    expect(hours).toBeGreaterThan(0.5);

    const passphrase = await garden.client.get<Secret>(SECRETS, 'coppice-state-passphrase', 'kube-system');
    expect(passphrase.immutable).toBe(true);
    expect((await stat(join(directory, 'pulumi'))).mode & 0o777).toBe(0o700);

    // Whoever deletes credentials while a cluster needs them is kept waiting, not the cluster.
    await garden.client.delete(SECRETS, 'cloud', 'shop');
    await garden.client.delete(CREDENTIALSBINDINGS, 'bound', 'shop');
    expect((await get(SECRETS, 'cloud'))?.metadata.deletionTimestamp).toBeDefined();
    await garden.client.delete(WORKERCLUSTERS, 'one', 'shop');
    await until('the cluster to be gone', () => isGone(WORKERCLUSTERS, 'one'));
    expect(cloud.made.size).toBe(0);
    await until('what was held to be let go', async () => {
      const gone = [isGone(SECRETS, 'cloud'), isGone(CREDENTIALSBINDINGS, 'bound')];
      return (await Promise.all(gone)).every(Boolean) && !(await recordOf('shop/one'));
    });
  });

  test('that is deleted by force leaves a report of its remains', async () => {
    await garden.client.create(keys('force', 'key-1'));
    await garden.client.create(cluster('two', { credentialsRef: { kind: 'Secret', name: 'force' } }));
    await until('the cluster to be made', async () => {
      return (await condition(WORKERCLUSTERS, 'two', 'InfrastructureReady'))?.status === 'True';
    });
    const pause = cloud.pause('delete pool default');
    await garden.client.delete(WORKERCLUSTERS, 'two', 'shop');
    await pause.reached;
    await garden.client.mergePatch(WORKERCLUSTERS, 'two', 'shop', { metadata: { finalizers: null } });
    await until('the cluster to be gone', () => isGone(WORKERCLUSTERS, 'two'));
    const { uid } = (await garden.client.get(NAMESPACES, 'kube-system')).metadata;
    expect([...cloud.made.values()].map(({ owner }) => owner.garden)).toEqual([uid, uid, uid]);
    const event = await until('the report', async () => {
      const events = await garden.client.list(EVENTS, { namespace: 'shop' });
      return events.items.find(({ reason }) => reason === 'LeftBehind');
    });
    expect(event.message).toContain('deleted by force: 3 resources are left in account account-1');
    expect(event.message).toContain('coppice sweep');
    expect(await recordOf('shop/two')).toBeDefined();
    expect(await get(SECRETS, 'two-cloud')).toBeUndefined();
  });
});
