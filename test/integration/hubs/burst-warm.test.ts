import { afterAll, beforeAll, expect, it } from 'vitest';
import { ALPHA_API_VERSION, type BurstPolicy, LABELS, type WorkerCluster } from '../../../operator/api/index.ts';
import { CLUSTERS } from '../../../operator/hubs/karmada/cluster.ts';
import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import { BURSTPOLICIES, type KubeObject, NODES, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { runBurst, sellClusters } from '../../kit/hubs/burst-beside.ts';
import { HubScene } from '../../kit/hubs/hub-scene.ts';
import { KarmadaStandIn } from '../../kit/hubs/karmada-stand-in.ts';

const PATIENCE = { timeout: 120_000, interval: 100 };
const TEST_FINALIZER = 'multi-cluster.demo.io/test';
let scene: HubScene;

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
  runBurst(scene);
  await scene.startOperator();
});
afterAll(() => scene?.stop());

it('keeps a warm cluster in the hub, which places nothing there, and has it opened at once when work waits', async () => {
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
      candidates: [{ name: 'cloud', warmClusters: 1, template }],
      maximumClusters: 1,
      budget: { hourly: '1' },
    },
  });
  await expect.poll(async () => (await clusters()).length, PATIENCE).toBe(1);
  const [made] = await clusters();
  const { name } = made!.metadata;
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: [TEST_FINALIZER] } });
  // Of a node that nobody has made ready the API server says so for ever, where no controller of nodes runs.
  await scene.member.client.mergePatch(NODES, 'one', undefined, { spec: { taints: null } });
  scene.open([], 'demo', name);
  await scene.until(
    'the cluster to wait warm',
    () => scene.membership('test', name)?.status?.conditions?.some(({ type }) => type === 'Warm') === true,
  );
  await expect.poll(async () => (await policy())?.status?.clusters?.[0]?.phase, PATIENCE).toBe('Warm');
  expect(scene.state('test', name)).toBe('Joining');
  const { memberName = '' } = scene.membership('test', name)!.status!;
  const taints = async () =>
    (
      (await client.get<KubeObject & { spec: { taints?: { effect: string }[] } }>(CLUSTERS, memberName)).spec.taints ??
      []
    ).map(({ effect }) => effect);
  expect(await taints()).toContain('NoSchedule');

  await bind();
  await scene.until('the cluster to be open', () => scene.state('test', name) === 'Joined');
  await expect.poll(taints, PATIENCE).toEqual([]);
  expect((await clusters()).map(({ metadata }) => metadata.labels?.[LABELS.burstWarm])).toEqual([undefined]);
  // Another one is refused: the policy has as many as it may.
  const done = (await policy())!.status!.decisions!.filter(({ action }) => action !== 'Refuse');
  expect(done.map(({ action }) => action)).toEqual(['Open', 'Buy']);

  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await scene.until('the cluster to leave the hub', () => scene.memberships.size === 0);
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: null } });
  await expect.poll(policy, PATIENCE).toBeUndefined();
}, 120_000);
