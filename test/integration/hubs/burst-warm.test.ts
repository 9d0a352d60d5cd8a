import { afterAll, beforeAll, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { CLUSTERS } from '../../../operator/hubs/karmada/cluster.ts';
import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import {
  BURSTPOLICIES,
  type KubeObject,
  NODES,
  PDBS,
  type Pod,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import type { TestApiserver } from '../../kit/apiserver.ts';
import { makePeakPolicy } from '../../kit/hubs/burst-beside.ts';
import { type KarmadaBurst, startKarmadaBurst } from '../../kit/hubs/karmada-burst-testbed.ts';

const PATIENCE = { timeout: 120_000, interval: 100 };
const TEST_FINALIZER = 'multi-cluster.demo.io/test';
let burst: KarmadaBurst;
let testbed: KarmadaBurst['testbed'];
let bind: KarmadaBurst['bind'];
let clusters: KarmadaBurst['clusters'];
let policy: KarmadaBurst['policy'];
/** The API server of the cluster that is emptied. */
let emptied: TestApiserver;

beforeAll(async () => {
  burst = await startKarmadaBurst({ evicts: true }, async (made) => {
    const full = await made.addMember('private', '16', '32Gi');
    emptied = await made.addMember('emptied', '4', '8Gi');
    // Of a node that nobody has made ready the API server says so for ever, where no controller of nodes runs.
    for (const one of [made.member, full, emptied])
      await one.client.mergePatch(NODES, 'one', undefined, { spec: { taints: null } });
  });
  ({ testbed, bind, clusters, policy } = burst);
});
afterAll(() => testbed?.stop());

/** Taints of a Cluster of the hub, by their effects. */
const taintsOf = async (memberName: string): Promise<string[]> => {
  type Tainted = KubeObject & { spec: { taints?: { effect: string }[] } };
  const { spec } = await testbed.garden.client.get<Tainted>(CLUSTERS, memberName);
  return (spec.taints ?? []).map(({ effect }) => effect);
};

it('a warm cluster is in the hub without work, and is opened at once for waiting work', async () => {
  const { client } = testbed.garden;
  const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 1 }] };
  const template = { metadata: { labels: { fleet: 'production' } }, spec };
  await makePeakPolicy(client, [{ name: 'cloud', warmClusters: 1, template }], {
    trigger: { pendingFor: '1s' },
    scaleIn: undefined,
    cooldown: undefined,
  });
  await expect.poll(async () => (await clusters()).length, PATIENCE).toBe(1);
  const [made] = await clusters();
  const { name } = made!.metadata;
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: [TEST_FINALIZER] } });
  testbed.open([], 'demo', name);
  await testbed.until(
    'the cluster to wait warm',
    () => testbed.membership('test', name)?.status?.conditions?.some(({ type }) => type === 'Warm') === true,
  );
  await expect.poll(async () => (await policy())?.status?.clusters?.[0]?.phase, PATIENCE).toBe('Warm');
  expect(testbed.state('test', name)).toBe('Joining');
  const { memberName = '' } = testbed.membership('test', name)!.status!;
  const taints = () => taintsOf(memberName);
  expect(await taints()).toContain('NoSchedule');

  await bind();
  await testbed.until('the cluster to be open', () => testbed.state('test', name) === 'Joined');
  await expect.poll(taints, PATIENCE).toEqual([]);
  expect((await clusters()).map(({ metadata }) => metadata.labels?.[LABELS.burstWarm])).toEqual([undefined]);
  // Another one is refused: the policy has as many as it may.
  const done = (await policy())!.status!.decisions!.filter(({ action }) => action !== 'Refuse');
  expect(done.map(({ action }) => action)).toEqual(['Open', 'Buy']);

  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await testbed.until('the cluster to leave the hub', () => testbed.memberships.size === 0);
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: null } });
  await expect.poll(policy, PATIENCE).toBeUndefined();
}, 120_000);

/** A replica of web, which a Deployment has made. */
const replica = (name: string, cpu = '1'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'shop',
    labels: { app: 'web', 'pod-template-hash': '5d4f' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f', uid: 'web', controller: true }],
  },
  spec: { nodeName: 'one', containers: [{ name: 'web', resources: { requests: { cpu, memory: '1Gi' } } }] },
});

it('the hub drains a little-used cluster into others and the policy returns it; an undisturbable one stays', async () => {
  const { client } = testbed.garden;
  await testbed.makeCluster({ fleet: 'production' }, 'private');
  const resource = { cpu: '15', memory: '30Gi' };
  const status = { resource: { total: resource, available: resource, continuous: resource } };
  await client.mergePatch(WORKERCLUSTERS, 'private', 'shop', { status }, { subresource: 'status' });
  const others = [replica('other', '15')];
  testbed.open(others, 'private');
  await testbed.until('the private cluster to join', () => testbed.state('test', 'private') === 'Joined');

  const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 1 }] };
  await bind();
  await makePeakPolicy(client, [{ name: 'cloud', template: { metadata: { labels: { fleet: 'production' } }, spec } }], {
    trigger: { pendingFor: '1s' },
    scaleIn: { idleFor: '1s', minimumLife: '1s', consolidationPolicy: 'WhenEmptyOrUnderutilized' },
  });
  const bought = async () => (await clusters()).find(({ metadata }) => metadata.labels?.[LABELS.burstPolicy]);
  await expect.poll(bought, PATIENCE).toBeDefined();
  const { name } = (await bought())!.metadata;
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: [TEST_FINALIZER] } });
  const pods = ['web-1', 'web-2', 'web-3'].map((one) => replica(one));
  testbed.open(pods, 'emptied', name);
  await testbed.until('the cluster to join', () => testbed.state('test', name) === 'Joined');
  const { memberName = '' } = testbed.membership('test', name)!.status!;
  await bind({ [memberName]: 3 });
  const shown = async () => (await policy())?.status?.clusters?.[0];
  await expect.poll(async () => (await policy())?.status?.demand, PATIENCE).toEqual([]);

  // The peak is over, and one replica is left there. The others have no room for it.
  pods.length = 1;
  await bind({ [memberName]: 1 });
  await expect.poll(shown, PATIENCE).toMatchObject({ stays: expect.stringContaining('not enough room elsewhere') });
  // They have, and a budget forbids that it is disturbed.
  await emptied.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await emptied.client.apply({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  });
  others.length = 0;
  await expect.poll(shown, PATIENCE).toMatchObject({ stays: expect.stringContaining('PodDisruptionBudget shop/web') });
  expect(await taintsOf(memberName)).toEqual([]);

  await emptied.client.delete(PDBS, 'web', 'shop');
  await expect.poll(() => taintsOf(memberName), PATIENCE).toEqual(expect.arrayContaining(['NoSchedule', 'NoExecute']));
  expect(await shown()).toMatchObject({ phase: 'Emptying' });
  expect((await bought())!.metadata.deletionTimestamp).toBeUndefined();
  await bind({ [testbed.membership('test', 'private')!.status!.memberName!]: 1 });
  // Nothing is placed there any more, and its last pod ends.
  await testbed.until(
    'the hub to be done',
    () =>
      testbed
        .membership('test', name)
        ?.status?.conditions?.some(({ type, status: is }) => type === 'Drained' && is === 'True') === true,
  );
  expect((await bought())!.metadata.deletionTimestamp).toBeUndefined();
  pods.length = 0;
  await expect.poll(async () => (await bought())?.metadata.deletionTimestamp, PATIENCE).toBeDefined();
  await testbed.until('the cluster to leave the hub', () => testbed.membership('test', name) === undefined);
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: null } });
  await expect.poll(async () => (await policy())?.status?.clusterCount, PATIENCE).toBe(0);
  // Where the test is slow to place the work in the new cluster, the policy says that it buys no second one.
  const done = (await policy())!.status!.decisions!.filter(({ action }) => action !== 'Refuse');
  expect(done.map(({ action }) => action)).toEqual(['Remove', 'Empty', 'Buy']);

  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await expect.poll(policy, PATIENCE).toBeUndefined();
}, 180_000);
