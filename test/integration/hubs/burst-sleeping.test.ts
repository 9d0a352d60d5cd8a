import { afterAll, beforeAll, expect, it } from 'vitest';
import { ALPHA_API_VERSION, type BurstPolicy, LABELS, type WorkerCluster } from '../../../operator/api/index.ts';
import type { DecidedSizes } from '../../../operator/controllers/decided-sizes.ts';
import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import { BURSTPOLICIES, type KubeObject, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { runBurst, sellClusters } from '../../kit/hubs/burst-beside.ts';
import { HubScene } from '../../kit/hubs/hub-scene.ts';
import { KarmadaStandIn } from '../../kit/hubs/karmada-stand-in.ts';

const PATIENCE = { timeout: 120_000, interval: 100 };
const TEST_FINALIZER = 'multi-cluster.demo.io/test';
let scene: HubScene;
let sizes: DecidedSizes;

/** Work that Karmada has no room for. */
async function bind(): Promise<void> {
  const { client } = scene.garden;
  const binding: KubeObject = {
    apiVersion: 'work.karmada.io/v1alpha2',
    kind: 'ResourceBinding',
    metadata: { name: 'web-deployment', namespace: 'shop' },
    spec: {
      resource: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' },
      replicas: 3,
      replicaRequirements: { resourceRequest: { cpu: '1', memory: '1Gi' } },
      clusters: [],
    },
  };
  const { apiVersion, kind, metadata } = await client.apply(binding, { resource: RESOURCEBINDINGS, force: true });
  const refused = { status: 'False', reason: 'Unschedulable', message: '0/0 clusters are available' };
  const conditions = [{ type: 'Scheduled', lastTransitionTime: '2026-11-23T12:00:00Z', ...refused }];
  await client.apply(
    { apiVersion, kind, metadata: { name: metadata.name, namespace: 'shop' }, status: { conditions } },
    { resource: RESOURCEBINDINGS, subresource: 'status', force: true },
  );
}

const clusters = async (): Promise<WorkerCluster[]> =>
  (await scene.garden.client.list<WorkerCluster>(WORKERCLUSTERS, { namespace: 'shop' })).items;
const policy = () => scene.garden.client.getOrUndefined<BurstPolicy>(BURSTPOLICIES, 'peak', 'shop');

beforeAll(async () => {
  // With the rights that the chart gives, and no more.
  scene = await HubScene.start({ type: 'Karmada', karmada: { renewsTokens: true } }, ['karmada'], 'chart');
  const { client } = scene.garden;
  const standIn = new KarmadaStandIn(client, scene.member.client);
  await standIn.start();
  scene.onStop(() => standIn.stop());
  for (const name of ['shop', 'karmada-cluster'])
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await sellClusters(client);
  // Karmada's own API server, with rights of its own there: here it is the same one.
  await client.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'karmada', namespace: 'kube-system' },
    stringData: { value: scene.garden.kubeconfig },
  });
  const clusterSelector = { matchLabels: { fleet: 'production' } };
  await scene.makeHub('test', { clusterSelector, kubeconfigRef: { name: 'karmada' } });
  runBurst(scene, (one) => {
    sizes = one;
  });
  await scene.startOperator();
});
afterAll(() => scene?.stop());

it('has a cluster sleep that was in the hub once, and opened when it has woken for work', async () => {
  const { client } = scene.garden;
  const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 1 }] };
  const template = { metadata: { labels: { fleet: 'production' } }, spec };
  await client.create({
    apiVersion: ALPHA_API_VERSION,
    kind: 'BurstPolicy',
    metadata: { name: 'peak', namespace: 'shop' },
    spec: {
      hub: 'test',
      trigger: { pendingFor: '1s' },
      candidates: [{ name: 'cloud', sleepingClusters: 1, template }],
      maximumClusters: 1,
      budget: { hourly: '1' },
    },
  });
  await expect.poll(async () => (await clusters()).length, PATIENCE).toBe(1);
  const [{ metadata: made }] = (await clusters()) as [WorkerCluster];
  const { name } = made;
  const tell = (asleep: boolean) =>
    client.mergePatch(
      WORKERCLUSTERS,
      name,
      'shop',
      { status: { hibernation: asleep ? { asleep, since: '2026-11-23T12:00:00Z' } : null } },
      { subresource: 'status' },
    );
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: [TEST_FINALIZER] } });
  const stop = scene.open([], 'demo', name);
  const order = () => sizes.sleepOrder(`shop/${name}`, made.uid ?? '');
  await expect.poll(order, PATIENCE).toMatchObject({ asleep: true, by: 'BurstPolicy shop/peak' });
  // What its own controller would make of that.
  stop();
  await tell(true);
  await expect.poll(async () => (await policy())?.status?.clusters?.[0]?.phase, PATIENCE).toBe('Asleep');
  await scene.until('the hub to know of it', () => scene.state('test', name) === 'Pending');

  await bind();
  await expect.poll(order, PATIENCE).toBe('none');
  await expect.poll(async () => (await policy())?.status?.clusters?.[0]?.phase, PATIENCE).toBe('Waking');
  expect((await clusters())[0]?.metadata.labels?.[LABELS.burstWarm]).toBeUndefined();
  expect(scene.state('test', name)).toBe('Pending');
  await tell(false);
  scene.open([], 'demo', name);
  await scene.until('the cluster to be open', () => scene.state('test', name) === 'Joined');
  await expect.poll(async () => (await policy())?.status?.candidates?.[0]?.wakingSeconds, PATIENCE).toBeDefined();
  const done = (await policy())!.status!.decisions!.filter(({ action }) => action !== 'Refuse');
  expect(done.map(({ action }) => action)).toEqual(['Wake', 'Buy']);

  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await scene.until('the cluster to leave the hub', () => scene.memberships.size === 0);
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: null } });
  await expect.poll(policy, PATIENCE).toBeUndefined();
}, 180_000);
