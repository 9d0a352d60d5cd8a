import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { addressList } from '../../../operator/api/address-range.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import { ALPHA_API_VERSION, ANNOTATIONS, API_VERSION, LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { CAPI_CLUSTERS } from '../../../operator/controllers/attached/cluster-api.ts';
import { ATTACHED_RECEIPTS } from '../../../operator/controllers/attached/receipt.ts';
import { MEMBERSHIP_RECEIPTS } from '../../../operator/controllers/membership/receipt.ts';
import { CLUSTER_INVENTORY } from '../../../operator/garden/daemon/inventory.ts';
import { CLUSTERPROFILES } from '../../../operator/hubs/cluster-profile.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  CONFIGMAPS,
  type KubeObject,
  MEMBERSHIPS,
  SECRETS,
  SERVICEACCOUNTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { type FlakyProxy, startFlakyProxy } from '../../kit/flaky-proxy.ts';
import { addNode } from '../../kit/hubs/hub-testbed.ts';
import { serveKinds } from '../../kit/hubs/serve-kinds.ts';
import { type RefusedKubeconfig, refusedKubeconfigs } from '../../kit/refused-kubeconfigs.ts';

const PATIENCE_MS = 120_000;
/** Test API servers are on the loopback, which tenants do not reach unless somebody allows it. */
const LOOPBACK = '127.0.0.0/8';

let garden: TestApiserver;
let theirs: TestApiserver;
let others: TestApiserver;
let clusters: Informer<WorkerCluster>;
let memberships: Informer<Membership>;
let operator: Operator | undefined;
/** Another way to the garden. */
let relay: FlakyProxy;
const stop = new AbortController();

const operate = async (allowed: string[] = [], clusterAPI = '') => {
  await operator?.stop();
  operator = await startOperator(
    {
      garden: garden.client,
      log: silent,
      metrics: new Registry(),
      provider: () => undefined,
      state: { namespace: 'kube-system', directory: undefined },
      attachable: addressList(allowed),
      clusterAPI,
    },
    stop.signal,
  );
};

beforeAll(async () => {
  [garden, theirs, others] = await Promise.all([startApiserver(), startApiserver(), startApiserver()]);
  relay = await startFlakyProxy(garden.url);
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  await serveKinds(garden.client, [CLUSTER_INVENTORY]);
  for (const name of ['shop', 'rival'])
    await garden.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await addNode(theirs, 'one', '4', '8Gi');
  clusters = new Informer<WorkerCluster>(garden.client, WORKERCLUSTERS);
  memberships = new Informer<Membership>(garden.client, MEMBERSHIPS);
  for (const cache of [clusters, memberships]) {
    cache.start();
    await cache.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  }
});
afterAll(async () => {
  stop.abort();
  await operator?.stop();
  await Promise.all([clusters?.stop(), memberships?.stop()]);
  await relay?.close();
  await Promise.all([garden?.stop(), theirs?.stop(), others?.stop()]);
});

const keep = (name: string, text: string, namespace = 'shop', key = 'value') =>
  garden.client.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    data: { [key]: Buffer.from(text).toString('base64') },
  } as KubeObject);
const attach = (name: string, attached: object = {}, namespace = 'shop') =>
  garden.client.apply({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name, namespace },
    spec: { mode: 'Attached', attached: { kubeconfigSecretRef: { name }, ...attached } },
  });
const detach = async (name: string, namespace = 'shop') => {
  await garden.client.delete(WORKERCLUSTERS, name, namespace);
  await until(`${name} to be let go`, () => !clusters.get(`${namespace}/${name}`));
};
const until = (what: string, predicate: () => boolean) =>
  waitFor([clusters, memberships], () => predicate() || undefined, {
    timeoutMs: PATIENCE_MS,
    what: () =>
      `${what}; last said: ${JSON.stringify([...clusters.list(), ...memberships.list()].map(({ status }) => status))}`,
  });
const serves = (name: string, namespace = 'shop') =>
  findCondition(clusters.get(`${namespace}/${name}`)?.status?.conditions, 'APIServerAvailable');
const refused = async (name: string, reason: string, namespace = 'shop') => {
  await until(`${name} to be refused for ${reason}`, () => serves(name, namespace)?.reason === reason);
  return serves(name, namespace)!.message ?? '';
};
const isReady = (name: string, namespace = 'shop') =>
  findCondition(clusters.get(`${namespace}/${name}`)?.status?.conditions, 'Ready')?.status === 'True';
const receipts = async (labelSelector: string) =>
  (await garden.client.list(SECRETS, { namespace: 'kube-system', labelSelector })).items.length;
/** What hubs have put into a cluster. */
const putInto = async ({ client }: TestApiserver) => {
  const kinds = [SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS, SECRETS];
  const found = await Promise.all(kinds.map((kind) => client.list(kind, { labelSelector: LABELS.managedBy })));
  return found.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
};

/** A kubeconfig with these fields in its cluster and its user. */
const config = (cluster: object, user: object = { token: 't' }, more: object[] = []) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: theirs.url, ...cluster } }],
    users: [{ name: 'u', user }, ...more],
  });

describe("a tenant's kubeconfig", () => {
  const marker = `${fileURLToPath(new URL('.', import.meta.url))}was-run`;
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: [marker] };
  const table: RefusedKubeconfig[] = [
    ...refusedKubeconfigs(config, exec),
    [
      'does not reach the loopback of IPv6',
      () => config({ server: 'https://[::1]:6443' }),
      'KubeconfigRefused',
      /^address ::1 is internal/,
    ],
    [
      'does not reach the garden, though its network is allowed',
      () => garden.kubeconfig,
      'KubeconfigRefused',
      /^address 127.0.0.1 is that of the garden's or a seed's API server, and refused\./,
    ],
    [
      'does not reach the garden by another way',
      () => garden.kubeconfig.replaceAll(garden.url, relay.url),
      'PlatformCluster',
      /points to the garden, which only administrators attach$/,
    ],
    [
      'shows who somebody is',
      () => writeKubeconfigText({ server: theirs.url, ca: theirs.ca, token: 'wrong', name: 'c', user: 'u' }),
      'Unauthorized',
      /does not accept the credentials/,
    ],
    [
      'gives rights',
      () => writeKubeconfigText({ server: theirs.url, ca: theirs.ca, token: theirs.readerToken, name: 'c', user: 'u' }),
      'Forbidden',
      /may not get namespace kube-system$/,
    ],
    [
      'leads to whom its authority vouches for',
      () => writeKubeconfigText({ server: theirs.url, ca: others.ca, token: 't', name: 'c', user: 'u' }),
      'NotReachable',
      /./,
    ],
  ];

  it('is refused if it could harm others', async () => {
    await operate([LOOPBACK]);
    for (const [index, [, text]] of table.entries()) {
      await keep(`k${index}`, text());
      await attach(`k${index}`);
    }
    for (const [index, [what, , reason, message]] of table.entries()) {
      expect([what, await refused(`k${index}`, reason)]).toEqual([what, expect.stringMatching(message)]);
      expect(isReady(`k${index}`)).toBe(false);
    }
    await attach('none');
    expect(await refused('none', 'KubeconfigMissing')).toMatch(
      /^Secret shop\/none does not exist: put the kubeconfig of the cluster into its key value$/,
    );
    await expect(readFile(marker)).rejects.toThrow('ENOENT');
    expect(await putInto(theirs)).toEqual([]);
    expect(await receipts(ATTACHED_RECEIPTS)).toBe(0);
    for (const { metadata } of clusters.list()) await detach(metadata.name);
  });

  it('reaches no loopback unless allowed; administrators may, and may attach the garden itself', async () => {
    await operate();
    await keep('demo', theirs.kubeconfig);
    await attach('demo');
    expect(await refused('demo', 'KubeconfigRefused')).toMatch(
      /^address 127.0.0.1 is internal to the platform, and refused\. Give an address on the internet; or ask an administrator/,
    );
    await attach('self', { kubeconfigSecretRef: undefined, garden: true });
    expect(await refused('self', 'PlatformCluster')).toBe(
      'the garden itself is attached in namespace kube-system only',
    );
    await detach('self');
    await detach('demo');

    await keep('demo', theirs.kubeconfig, 'kube-system');
    await attach('demo', {}, 'kube-system');
    await attach('self', { kubeconfigSecretRef: undefined, garden: true }, 'kube-system');
    await until('both to be Ready', () => isReady('demo', 'kube-system') && isReady('self', 'kube-system'));
    await detach('demo', 'kube-system');
    await detach('self', 'kube-system');
    // The operator's own line to the garden did not end with it.
    expect(await garden.client.ready()).toBe(true);
  });
});

describe('an attached cluster', () => {
  const joined = () =>
    until('the cluster to join', () => memberships.get('shop/demo.test')?.status?.state === 'Joined');
  const mine: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine', namespace: 'default' } };

  beforeAll(async () => {
    await operate([LOOPBACK]);
    await theirs.client.apply(mine);
    await garden.client.apply({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Hub',
      metadata: { name: 'test' },
      spec: { type: 'ClusterProfile', allowedNamespaces: ['shop'], drain: { timeout: '1s' } },
    });
    await keep('demo', theirs.kubeconfig);
    await attach('demo');
  });

  it('shows its facts, and joins hubs like any other', async () => {
    await joined();
    const { status } = clusters.get('shop/demo')!;
    expect(status).toMatchObject({
      mode: 'Attached',
      phase: 'Ready',
      endpoint: theirs.url,
      kubernetesVersion: expect.stringMatching(/^1\.\d+\.\d+$/),
      kubeconfigRef: { name: 'demo', key: 'value' },
      nodes: { desired: 1, current: 1, ready: 1 },
      resource: { total: { cpu: '4' } },
    });
    expect(status?.admitted).toBeUndefined();
    const told = async () => JSON.stringify((await garden.client.get(CLUSTERPROFILES, 'shop--demo', 'shop')).status);
    // What the status of the cluster says reaches the hub a moment after the join.
    await expect.poll(told).toContain('Attached');
    expect(await putInto(theirs)).not.toEqual([]);
  });

  it('exists in the garden once: a second object for it is refused until the first is deleted', async () => {
    await keep('twice', theirs.kubeconfig);
    await attach('twice');
    expect(await refused('twice', 'SameCluster')).toMatch(/^WorkerCluster shop\/demo is the same cluster/);
    await keep('theft', theirs.kubeconfig, 'rival');
    await attach('theft', {}, 'rival');
    expect(await refused('theft', 'SameCluster', 'rival')).toMatch(/^a WorkerCluster of another namespace is the same/);
    expect(memberships.get('shop/twice.test')?.status?.state).not.toBe('Joined');
    await detach('twice');
    await detach('theft', 'rival');
    expect(isReady('demo')).toBe(true);
  });

  it('stays in its hubs while its Secret is missing', async () => {
    await garden.client.delete(SECRETS, 'demo', 'shop');
    expect(await refused('demo', 'KubeconfigMissing')).toMatch(/^Secret shop\/demo does not exist/);
    await until(
      'the membership to wait',
      () => memberships.get('shop/demo.test')?.status?.waiting === 'the API server of the cluster does not answer yet',
    );
    expect(memberships.get('shop/demo.test')?.status?.state).toBe('Joined');
    expect(clusters.get('shop/demo')?.status?.nodes?.current).toBe(1);
    await keep('demo', theirs.kubeconfig);
    await until('the cluster to be back', () => isReady('demo'));
  });

  it('is not exchanged for another one without approval', async () => {
    const identity = clusters.get('shop/demo')!.status!.clusterIdentity!;
    await keep('demo', others.kubeconfig);
    const message = await refused('demo', 'OtherCluster');
    expect(message).toContain(`not ${identity}): nothing is done to it`);
    expect(clusters.get('shop/demo')?.status?.clusterIdentity).toBe(identity);
    expect(await putInto(others)).toEqual([]);
    expect(memberships.get('shop/demo.test')?.status?.state).toBe('Joined');

    const approval = /annotate (\S+)=(\S+)$/.exec(message)!;
    await garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', {
      metadata: { annotations: { [approval[1]!]: approval[2]! } },
    });
    await until('the other cluster to be used', () => isReady('demo'));
    expect(clusters.get('shop/demo')?.status?.clusterIdentity).toBe(approval[2]);
    // Its hub knows the old one as the member: nothing is made in the new one for that.
    expect(await putInto(others)).toEqual([]);
    // Nor is it taken for gone from the old one because it is not in the new one.
    await garden.client.delete(MEMBERSHIPS, 'demo.test', 'shop');
    await until('the leave to wait for the old cluster', () =>
      (memberships.get('shop/demo.test')?.status?.waiting ?? '').startsWith('the cluster does not answer, and '),
    );

    await garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', {
      metadata: { annotations: { [ANNOTATIONS.approveCluster]: identity } },
    });
    await keep('demo', theirs.kubeconfig);
    await until(
      'the first to be back',
      () => isReady('demo') && clusters.get('shop/demo')?.status?.clusterIdentity === identity,
    );
  });

  it('leaves without a trace, and nothing else in it changes', async () => {
    // It had left, and joins again.
    await joined();
    await detach('demo');
    expect(memberships.size).toBe(0);
    expect(await putInto(theirs)).toEqual([]);
    expect(await theirs.client.get(CONFIGMAPS, 'mine', 'default')).toBeDefined();
    expect(await receipts(ATTACHED_RECEIPTS)).toBe(0);
    expect(await receipts(MEMBERSHIP_RECEIPTS)).toBe(0);
    // The Secret is theirs.
    expect(await garden.client.getOrUndefined(SECRETS, 'demo', 'shop')).toBeDefined();
  });

  it('is released by force when it is unreachable', async () => {
    await attach('demo');
    await joined();
    await theirs.kill();
    await refused('demo', 'NotReachable');
    await garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await until('the leave to wait', () =>
      (memberships.get('shop/demo.test')?.status?.waiting ?? '').startsWith('the cluster does not answer, and '),
    );
    await garden.client.mergePatch(MEMBERSHIPS, 'demo.test', 'shop', {
      metadata: { annotations: { [ANNOTATIONS.forceLeave]: 'true' } },
    });
    await until('the cluster to be let go', () => !clusters.get('shop/demo'));
    expect(memberships.size).toBe(0);
  });
});

it('Clusters of Cluster API are attached by a selector, once their kubeconfig exists, and released on deletion', async () => {
  const { group, version, plural, kind } = CAPI_CLUSTERS;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const versions = [{ name: version, served: true, storage: true, schema }];
  // As much of the kind as is looked at.
  await garden.client.apply({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: { group, scope: 'Namespaced', names: { plural, kind }, versions },
  });
  await operate([LOOPBACK], 'fleet=a');
  const capi = { apiVersion: `${group}/${version}`, kind, metadata: { name: 'capi', namespace: 'shop' } };
  const metadata = { ...capi.metadata, labels: { fleet: 'a' }, finalizers: ['cluster.cluster.x-k8s.io/test'] };
  const served = () =>
    garden.client.apply({ ...capi, metadata }, { resource: CAPI_CLUSTERS }).then(Boolean, () => false);
  await vi.waitFor(async () => expect(await served()).toBe(true), { timeout: PATIENCE_MS, interval: 200 });
  await garden.client.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'capi-kubeconfig', namespace: 'shop', labels: { [LABELS.clusterName]: 'capi' } },
    type: 'cluster.x-k8s.io/secret',
    data: { value: Buffer.from(others.kubeconfig).toString('base64') },
  } as KubeObject);
  await until('the Cluster to be attached', () => isReady('capi'));
  expect(clusters.get('shop/capi')?.metadata.labels).toMatchObject({ fleet: 'a' });
  await garden.client.delete(CAPI_CLUSTERS, 'capi', 'shop');
  await until('it to be let go', () => !clusters.get('shop/capi'));
});
