import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { localSeed } from '../../../operator/garden/manifests.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import {
  CONFIGMAPS,
  type KubeObject,
  NAMESPACES,
  SECRETS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { providerNamed } from '../../../providers/index.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

let garden: TestApiserver;
let operator: Operator;
let clusters: Informer<WorkerCluster>;
let shoots: Informer<Shoot>;
let secrets: Informer<Secret>;
const stop = new AbortController();
const RANGES = { pods: '10.1.0.0/16', nodes: '10.2.0.0/16', services: '10.3.0.0/16' };

/** A garden that is its own seed, and clusters that are on record only: all of the controllers, and no control planes. */
beforeAll(async () => {
  garden = await startApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  for (const profile of await profileManifests())
    if (profile.metadata.name === 'simulated-scale') await garden.client.apply(profile);
  await garden.client.apply(localSeed(RANGES as never, 'http://127.0.0.1:1'));
  clusters = new Informer<WorkerCluster>(garden.client, WORKERCLUSTERS);
  shoots = new Informer<Shoot>(garden.client, SHOOTS);
  secrets = new Informer<Secret>(garden.client, SECRETS);
  for (const cache of [clusters, shoots, secrets]) cache.start();
  await Promise.all([clusters, shoots, secrets].map((cache) => cache.whenSynced(AbortSignal.timeout(30_000))));
  operator = await startOperator(
    {
      garden: garden.client,
      log: silent,
      metrics: new Registry(),
      provider: () => providerNamed('simulated'),
      state: { namespace: 'kube-system', directory: undefined },
    },
    stop.signal,
  );
});
afterAll(async () => {
  stop.abort();
  await Promise.all([operator?.stop(), clusters?.stop(), shoots?.stop(), secrets?.stop()]);
  await garden?.stop();
});

const until = (what: string, predicate: () => boolean) =>
  waitFor([clusters, shoots, secrets], () => predicate() || undefined, { timeoutMs: 30_000, what });
const status = (name: string) => clusters.get(`default/${name}`)?.status;
const ask = (name: string) =>
  garden.client.apply({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name, namespace: 'default' },
    spec: { cloudProvider: 'simulated', cloudProfile: 'simulated-scale', controlPlaneNodes: 1, dataPlaneNodes: 1 },
  });
const isReady = (name: string) => until(`${name} to be Ready`, () => status(name)?.phase === 'Ready');
const refused = (name: string) =>
  until(`${name} to say why`, () => JSON.stringify(status(name) ?? '').includes('was not made for this cluster'));
async function removed(name: string): Promise<void> {
  await garden.client.delete(WORKERCLUSTERS, name, 'default');
  const gone = () => !clusters.get(`default/${name}`) && !shoots.get(`default/${name}`);
  await until(`${name} to be gone`, gone);
}
const caOf = (name: string) => {
  const text = secrets.get(`default/${name}-kubeconfig`)?.data?.value;
  return /certificate-authority-data: (\S+)/.exec(Buffer.from(text ?? '', 'base64').toString())?.[1];
};

it("a person's own Secret of the name that the kubeconfig would have outlives the cluster", async () => {
  const metadata = { name: 'mine-kubeconfig', namespace: 'default' };
  const { metadata: before } = await garden.client.create<Secret>({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    stringData: { value: 'mine' },
  });
  await ask('mine');
  await refused('mine');
  await removed('mine');
  const after = await garden.client.get<Secret>(SECRETS, metadata.name, 'default');
  expect([after.metadata.uid, after.metadata.resourceVersion]).toEqual([before.uid, before.resourceVersion]);
});

it("a person's own namespace of the name that the seed's would have outlives the cluster, with what is in it", async () => {
  const namespace = 'shoot--default--taken';
  await garden.client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const precious: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'precious', namespace } };
  await garden.client.create(precious);
  await ask('taken');
  await refused('taken');
  await removed('taken');
  const after = await garden.client.get(NAMESPACES, namespace);
  expect([after.metadata.deletionTimestamp, after.metadata.labels?.['pod-security.kubernetes.io/enforce']]).toEqual([
    undefined,
    undefined,
  ]);
  expect(await garden.client.getOrUndefined(CONFIGMAPS, 'precious', namespace)).toBeDefined();
});

it('keys that lost their labels stay the keys of the cluster', async () => {
  await ask('plain');
  await isReady('plain');
  const namespace = 'shoot--default--plain';
  const { metadata, data: before } = await garden.client.get<Secret>(SECRETS, 'pki', namespace);
  const labels = Object.fromEntries(Object.keys(metadata.labels ?? {}).map((label) => [label, null]));
  await garden.client.mergePatch(SECRETS, 'pki', namespace, { metadata: { labels } });
  const operation = { metadata: { annotations: { 'gardener.cloud/operation': 'reconcile' } } };
  await garden.client.mergePatch(SHOOTS, 'plain', 'default', operation);
  const labelled = () => Object.keys(secrets.get(`${namespace}/pki`)?.metadata.labels ?? {}).length;
  await until('the keys to have their labels back', () => labelled() >= Object.keys(labels).length);
  expect(before?.['ca.crt']).toBeDefined();
  expect(secrets.get(`${namespace}/pki`)?.data?.['ca.crt']).toBe(before?.['ca.crt']);
});

it('what was made for a cluster goes with it', async () => {
  await ask('ours');
  await isReady('ours');
  expect(caOf('ours')).toBeDefined();
  await removed('ours');
  expect(await garden.client.getOrUndefined(SECRETS, 'ours-kubeconfig', 'default')).toBeUndefined();
  const space = await garden.client.getOrUndefined(NAMESPACES, 'shoot--default--ours');
  expect(space === undefined || space.metadata.deletionTimestamp !== undefined).toBe(true);
});
