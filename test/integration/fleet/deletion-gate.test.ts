import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { localSeed } from '../../../operator/garden/manifests.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { SECRETS, SEEDS, SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { providerNamed } from '../../../providers/index.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

let garden: TestApiserver;
let operator: Operator;
let clusters: Informer<WorkerCluster>;
let shoots: Informer<Shoot>;
const stop = new AbortController();
const RANGES = { pods: '10.1.0.0/16', nodes: '10.2.0.0/16', services: '10.3.0.0/16' };

const start = () =>
  startOperator(
    {
      garden: garden.client,
      log: silent,
      metrics: new Registry(),
      provider: () => providerNamed('simulated'),
      state: { namespace: 'default', directory: undefined },
    },
    stop.signal,
  );

/** A garden that is its own seed, and clusters that are on record only: all of the controllers, and no control planes. */
beforeAll(async () => {
  garden = await startApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  for (const profile of await profileManifests())
    if (profile.metadata.name === 'simulated-scale') await garden.client.apply(profile);
  await garden.client.apply(localSeed(RANGES as never, 'http://127.0.0.1:1'));
  clusters = new Informer<WorkerCluster>(garden.client, WORKERCLUSTERS);
  shoots = new Informer<Shoot>(garden.client, SHOOTS);
  for (const cache of [clusters, shoots]) cache.start();
  await Promise.all([clusters, shoots].map((cache) => cache.whenSynced(AbortSignal.timeout(30_000))));
  operator = await start();
});
afterAll(async () => {
  stop.abort();
  await Promise.all([operator?.stop(), clusters?.stop(), shoots?.stop()]);
  await garden?.stop();
});

const until = (what: string, predicate: () => boolean) =>
  waitFor([clusters, shoots], () => predicate() || undefined, { timeoutMs: 30_000, what });
const cluster = (name: string) => clusters.get(`default/${name}`);
const deleting = (name: string) => findCondition(cluster(name)?.status?.conditions, 'Deleting');

async function made(name: string): Promise<void> {
  await garden.client.apply({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name, namespace: 'default' },
    spec: { cloudProvider: 'simulated', cloudProfile: 'simulated-scale', controlPlaneNodes: 1, dataPlaneNodes: 1 },
  });
  await until(`${name} to be Ready`, () => cluster(name)?.status?.phase === 'Ready');
}

const seedOn = (name: string) => ({
  apiVersion: API_VERSION,
  kind: 'Seed',
  metadata: { name: `on-${name}` },
  spec: {
    provider: { type: 'local', region: 'local' },
    networks: { pods: '10.4.0.0/16', services: '10.5.0.0/16' },
    kubeconfigRef: { name: `${name}-kubeconfig`, namespace: 'default' },
  },
});

it('a cluster that is a Seed is taken apart only when the Seed has gone, also by an operator that was killed', async () => {
  await made('host');
  await garden.client.apply(seedOn('host'));
  await garden.client.delete(WORKERCLUSTERS, 'host', 'default');
  await until('the deletion to be held', () => deleting('host')?.reason === 'Held');
  expect(deleting('host')?.message).toContain('Seed on-host holds the cluster');

  await operator.stop();
  operator = await start();
  // Somebody who goes around the WorkerCluster meets the same gate.
  await garden.client.delete(SHOOTS, 'host', 'default');
  const held = () => findCondition(shoots.get('default/host')?.status?.conditions, 'Deleting')?.reason === 'Held';
  await until('the Shoot to be held', held);
  expect(await garden.client.getOrUndefined(SECRETS, 'host-kubeconfig', 'default')).toBeDefined();
  expect(await garden.client.getOrUndefined(SHOOTS, 'host', 'default')).toBeDefined();

  await garden.client.delete(SEEDS, 'on-host');
  await until(
    'the cluster to be gone',
    () => cluster('host') === undefined && shoots.get('default/host') === undefined,
  );
  expect(await garden.client.getOrUndefined(SECRETS, 'host-kubeconfig', 'default')).toBeUndefined();
});
