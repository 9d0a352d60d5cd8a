import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { profileManifests, simulatedProfile } from '../../../operator/api/profiles.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { CLOUDPROFILES, QUOTAS, SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { providerNamed } from '../../../providers/index.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

let garden: TestApiserver;
let operator: Operator;
let clusters: Informer<WorkerCluster>;
let quotas: Informer<Quota>;
const stop = new AbortController();

/** An operator, and no seed: control planes wait for one for ever, which is none of a quota's business. */
beforeAll(async () => {
  garden = await startApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  const profiles = new Informer<CloudProfile>(garden.client, CLOUDPROFILES);
  clusters = new Informer<WorkerCluster>(garden.client, WORKERCLUSTERS);
  quotas = new Informer<Quota>(garden.client, QUOTAS);
  for (const cache of [profiles, clusters, quotas]) cache.start();
  await Promise.all([profiles, clusters, quotas].map((cache) => cache.whenSynced(AbortSignal.timeout(30_000))));
  const aws = (await profileManifests()).find(({ metadata }) => metadata.name === 'aws')!;
  await garden.client.apply(simulatedProfile(aws));
  await profiles.stop();
  const options = {
    garden: await garden.asOperator(),
    log: silent,
    metrics: new Registry(),
    provider: () => providerNamed('simulated'),
    state: { namespace: 'default', directory: undefined },
  };
  operator = await startOperator(options, stop.signal);
});
afterAll(async () => {
  stop.abort();
  await Promise.all([operator?.stop(), clusters?.stop(), quotas?.stop()]);
  await garden?.stop();
});

const ask = (name: string, dataPlaneNodes: number) =>
  garden.client.apply({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name, namespace: 'default' },
    spec: { cloudProvider: 'aws', dataPlaneNodes },
  });
const limit = (metrics: object) =>
  garden.client.apply({
    apiVersion: API_VERSION,
    kind: 'Quota',
    metadata: { name: 'team', namespace: 'default' },
    spec: { metrics },
  });
const accepted = (name: string) => findCondition(clusters.get(`default/${name}`)?.status?.conditions, 'SpecAccepted');
const until = (what: string, predicate: () => boolean) =>
  waitFor([clusters, quotas], () => predicate() || undefined, { timeoutMs: 20_000, what });

describe('a Quota with an operator on a real API server', () => {
  it('refuses a cluster that exceeds it with a condition, and admits the cluster once it fits', async () => {
    await limit({ nodes: 4, 'cost.hourly': '2' });
    await ask('a', 3);
    await until('a to be accepted', () => accepted('a')?.status === 'True');
    await ask('b', 3);
    await until('b to be refused', () => accepted('b')?.reason === 'QuotaExceeded');
    expect(accepted('b')?.message).toContain('quota "team" allows nodes 4: 3 used, 3 more requested, 1 left');
    expect(await garden.client.getOrUndefined(SHOOTS, 'b', 'default')).toBeUndefined();
    // 3 x m5.large in eu-central-1 and a control plane: what the cloud would take.
    await until(
      'the quota to show it',
      () => quotas.get('default/team')?.status?.summary === 'nodes 3/4, cost.hourly 0.445/2 USD',
    );

    await limit({ nodes: 6, 'cost.hourly': '2' });
    await until('b to be accepted', () => accepted('b')?.status === 'True');
    await ask('c', 1);
    await until('c to be refused', () => accepted('c')?.reason === 'QuotaExceeded');
    await garden.client.delete(WORKERCLUSTERS, 'a', 'default');
    await until('c to be accepted', () => accepted('c')?.status === 'True');
    await until('the quota to show it', () => quotas.get('default/team')?.status?.used?.nodes === '4');
  });
});
