import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import { BURSTPOLICIES, type KubeObject, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { makePeakPolicy } from '../../kit/hubs/burst-beside.ts';
import { type KarmadaBurst, startKarmadaBurst } from '../../kit/hubs/karmada-burst-testbed.ts';

const SINCE = '2026-11-23T12:00:00Z';
const PATIENCE = { timeout: 120_000, interval: 100 };
const TEST_FINALIZER = 'multi-cluster.demo.io/test';
let burst: KarmadaBurst;
let testbed: KarmadaBurst['testbed'];
let bind: KarmadaBurst['bind'];
let clusters: KarmadaBurst['clusters'];
let policy: KarmadaBurst['policy'];

beforeAll(async () => {
  burst = await startKarmadaBurst({}, async (made) => {
    await made.addMember('own', '4', '8Gi');
  });
  ({ testbed, bind, clusters, policy } = burst);
});
afterAll(() => testbed?.stop());

/** What a cluster's own controller says of its sleep. */
const tellHibernation = (name: string, hibernation: object | null) =>
  testbed.garden.client.mergePatch(
    WORKERCLUSTERS,
    name,
    'shop',
    { status: { hibernation } },
    { subresource: 'status' },
  );

it('a sleeping cluster is in the hub once, and is opened after it wakes for work', async () => {
  const { client } = testbed.garden;
  const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 1 }] };
  const template = { metadata: { labels: { fleet: 'production' } }, spec };
  await makePeakPolicy(client, [{ name: 'cloud', sleepingClusters: 1, template }], {
    trigger: { pendingFor: '1s' },
    scaleIn: undefined,
    cooldown: undefined,
  });
  await expect.poll(async () => (await clusters()).length, PATIENCE).toBe(1);
  const [{ metadata: made }] = (await clusters()) as [WorkerCluster];
  const { name } = made;
  const tell = (asleep: boolean) => tellHibernation(name, asleep ? { asleep, since: SINCE } : null);
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: [TEST_FINALIZER] } });
  const stop = testbed.open([], 'demo', name);
  const order = () => burst.sizes().sleepOrder(`shop/${name}`, made.uid ?? '');
  await expect.poll(order, PATIENCE).toMatchObject({ asleep: true, by: 'BurstPolicy shop/peak' });
  // What its own controller would make of that.
  stop();
  await tell(true);
  await expect.poll(async () => (await policy())?.status?.clusters?.[0]?.phase, PATIENCE).toBe('Asleep');
  await testbed.until('the hub to know of it', () => testbed.state('test', name) === 'Pending');

  await bind();
  await expect.poll(order, PATIENCE).toBe('none');
  await expect.poll(async () => (await policy())?.status?.clusters?.[0]?.phase, PATIENCE).toBe('Waking');
  expect((await clusters())[0]?.metadata.labels?.[LABELS.burstWarm]).toBeUndefined();
  expect(testbed.state('test', name)).toBe('Pending');
  await tell(false);
  testbed.open([], 'demo', name);
  await testbed.until('the cluster to be open', () => testbed.state('test', name) === 'Joined');
  await expect.poll(async () => (await policy())?.status?.candidates?.[0]?.wakingSeconds, PATIENCE).toBeDefined();
  const done = (await policy())!.status!.decisions!.filter(({ action }) => action !== 'Refuse');
  expect(done.map(({ action }) => action)).toEqual(['Wake', 'Buy']);

  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await testbed.until('the cluster to leave the hub', () => testbed.memberships.size === 0);
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: null } });
  await expect.poll(policy, PATIENCE).toBeUndefined();
}, 180_000);

it('the policy wakes a foreign cluster for work without change of its spec, and lets it sleep afterwards', async () => {
  const { client } = testbed.garden;
  const spec = {
    cloudProvider: 'cloud',
    hibernation: { enabled: true },
    pools: [{ name: 'a', minimum: 1, maximum: 1 }],
  };
  const own: KubeObject = await client.create<KubeObject>({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: 'own', namespace: 'shop', labels: { fleet: 'production', rests: 'at-night' } },
    spec,
  });
  const stop = testbed.open([], 'own');
  await testbed.until('the cluster to be in the hub', () => testbed.state('test', 'own') === 'Joined');
  await tellHibernation('own', { asleep: true, since: SINCE });
  await testbed.until('the hub to place nothing on it', () => testbed.state('test', 'own') === 'Asleep');
  stop();
  await makePeakPolicy(client, [{ name: 'cloud', template: { spec } }], {
    trigger: { pendingFor: '1s' },
    scaleIn: { idleFor: '1s', minimumLife: '1s' },
    wake: [{ name: 'night', clusterSelector: { matchLabels: { rests: 'at-night' } } }],
  });
  const order = () => burst.sizes().sleepOrder('shop/own', own.metadata.uid ?? '');
  await bind();
  await expect.poll(order, PATIENCE).toMatchObject({ asleep: false, by: 'BurstPolicy shop/peak' });
  expect((await clusters()).map(({ metadata, spec: { hibernation } }) => [metadata.name, hibernation])).toEqual([
    ['own', { enabled: true }],
  ]);
  expect((await policy())?.status?.woken).toMatchObject([{ cluster: 'own', entry: 'night', phase: 'Waking' }]);
  const { by, why } = order() as { by: string; why: string };
  await tellHibernation('own', {
    asleep: false,
    since: SINCE,
    order: { by, why, otherwise: true, otherwiseSince: SINCE },
  });
  testbed.open([], 'own');
  await testbed.until('the cluster to be back', () => testbed.state('test', 'own') === 'Joined');
  const { memberName = '' } = testbed.membership('test', 'own')!.status!;
  await bind({ [memberName]: 3 });
  await expect.poll(async () => (await policy())?.status?.woken?.[0]?.phase, PATIENCE).toBe('Joined');

  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await expect.poll(order, PATIENCE).toBe('none');
  const decided = async () =>
    ((await policy())?.status?.decisions ?? [])
      // It has no nodes here: on a busy machine work waits on once it has joined, until the hub places it, and more is bought.
      .filter(({ action, cluster }) => action !== 'Refuse' && cluster === 'own')
      .map(({ action, cluster }) => [action, cluster]);
  await expect.poll(decided, PATIENCE).toEqual([
    ['Sleep', 'own'],
    ['Wake', 'own'],
  ]);
  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await expect.poll(policy, PATIENCE).toBeUndefined();
  await client.delete(WORKERCLUSTERS, 'own', 'shop');
  await testbed.until('the cluster to leave the hub', () => testbed.memberships.size === 0);
}, 180_000);
