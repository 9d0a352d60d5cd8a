import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION } from '../../../operator/api/group.ts';
import { previewBurst } from '../../../operator/controllers/burst/preview.ts';
import { CLUSTERS } from '../../../operator/hubs/karmada/cluster.ts';
import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import { BURSTPOLICIES, type Pod, SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { makePeakPolicy } from '../../kit/hubs/burst-beside.ts';
import { type KarmadaBurst, startKarmadaBurst } from '../../kit/hubs/karmada-burst-testbed.ts';

const PATIENCE = { timeout: 120_000, interval: 100 };
const TEST_FINALIZER = 'multi-cluster.demo.io/test';
let burst: KarmadaBurst;
let testbed: KarmadaBurst['testbed'];
let bind: KarmadaBurst['bind'];
let clusters: KarmadaBurst['clusters'];
let policy: KarmadaBurst['policy'];

beforeAll(async () => {
  burst = await startKarmadaBurst();
  ({ testbed, bind, clusters, policy } = burst);
});
afterAll(() => testbed?.stop());

it('each policy plans only for work that earlier policies leave, planned alone or together', async () => {
  const { client } = testbed.garden;
  await bind();
  const names = ['older', 'younger'];
  for (const name of names)
    await client.create({
      apiVersion: ALPHA_API_VERSION,
      kind: 'BurstPolicy',
      metadata: { name, namespace: 'shop' },
      spec: {
        hub: 'test',
        trigger: { pendingFor: '1h' },
        candidates: [
          { name: 'cloud', template: { spec: { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5 }] } } },
        ],
        maximumClusters: 1,
        budget: { hourly: '1' },
      },
    });
  const { items } = await client.list<BurstPolicy>(BURSTPOLICIES);
  const age = ({ metadata }: BurstPolicy) => `${metadata.creationTimestamp} ${metadata.uid}`;
  const order = items.sort((a, b) => (age(a) < age(b) ? -1 : 1)).map(({ metadata }) => metadata.name);
  const planned = async (asked: readonly string[]) => {
    const { policies } = await previewBurst(
      client,
      'kube-system',
      () => undefined,
      ({ metadata }) => asked.includes(metadata.name),
      AbortSignal.timeout(20_000),
    );
    const actions = policies.map(({ metadata, status }) => [
      metadata.name,
      status?.decisions?.map((one) => one.action),
    ]);
    return Object.fromEntries(actions);
  };
  const [first, second] = order as [string, string];
  expect(await planned([second])).toEqual({ [second]: [] });
  expect(await planned(names)).toEqual({ [first]: ['Buy'], [second]: [] });
  // What the operator knows to be sold out, the plan knows by the status of a policy.
  const soldOut = [{ profile: 'cloud', region: 'here', machineType: 'large', until: '2999-01-01T00:00:00Z' }];
  await client.mergePatch(BURSTPOLICIES, second, 'shop', { status: { soldOut } }, { subresource: 'status' });
  expect(await planned(names)).toEqual({ [first]: ['Refuse'], [second]: ['Refuse'] });
  for (const name of names) await client.delete(BURSTPOLICIES, name, 'shop');
  await expect.poll(async () => (await client.list(BURSTPOLICIES)).items, PATIENCE).toEqual([]);
  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
});

it('the policy announces a purchase, adds a cluster for unplaceable work of Karmada, and returns it without remains', async () => {
  const { client } = testbed.garden;
  await bind();
  await makePeakPolicy(
    client,
    [
      {
        name: 'cloud',
        template: {
          metadata: { labels: { fleet: 'production' } },
          spec: { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5, autoscale: 'Coppice' }] },
        },
      },
    ],
    { trigger: { pendingFor: '1s' }, scaleIn: { idleFor: '1s', minimumLife: '1s' }, dryRun: true },
  );
  // The policy has been looked at, so that whatever is written from now on somebody else writes.
  await expect.poll(async () => (await policy())?.status?.decisions?.length, PATIENCE).toBe(1);
  const before = await policy();
  const seen = AbortSignal.timeout(20_000);
  const { policies, gaps } = await previewBurst(
    client,
    'kube-system',
    () => undefined,
    () => true,
    seen,
  );
  expect(gaps).toEqual([]);
  expect(policies.map(({ status }) => status?.decisions)).toMatchObject([
    [{ action: 'Buy', candidate: 'cloud', hourly: '0.1', why: expect.stringContaining('have no place') }],
  ]);
  expect(await clusters()).toEqual([]);
  expect((await policy())?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  await client.mergePatch(BURSTPOLICIES, 'peak', 'shop', { spec: { dryRun: false } });

  await expect
    .poll(async () => (await clusters()).length || JSON.stringify((await policy())?.status), PATIENCE)
    .toBe(1);
  const [made] = await clusters();
  expect(made!.spec.pools).toEqual([{ name: 'a', minimum: 1, maximum: 1, autoscale: 'Coppice' }]);
  const { name } = made!.metadata;

  // What the controllers of clusters do: hold it, and open a connection to it.
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: [TEST_FINALIZER] } });
  const pods: Pod[] = [];
  testbed.open(pods, 'demo', name);
  await testbed.until('the cluster to join', () => testbed.state('test', name) === 'Joined');
  const { memberName = '' } = testbed.membership('test', name)!.status!;
  // Nobody wrote a kubeconfig of it here, so a plan cannot know what fits on it, and says so.
  const unseen = await previewBurst(
    client,
    'kube-system',
    () => undefined,
    () => true,
    AbortSignal.timeout(20_000),
  );
  expect(unseen.gaps).toEqual([expect.stringContaining(`WorkerCluster shop/${name}: `)]);
  expect((await client.get(CLUSTERS, memberName)).metadata.labels).toMatchObject({
    'multi-cluster.demo.io/burst': 'true',
    fleet: 'production',
  });
  const requests = [{ name: 'web', resources: { requests: { cpu: '3', memory: '1Gi' } } }];
  const metadata = { name: 'web', namespace: 'shop' };
  pods.push({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'one', containers: requests } });
  await bind({ [memberName]: 3 });
  await expect
    .poll(async () => (await policy())?.status?.conditions?.find(({ type }) => type === 'DemandMet')?.status, PATIENCE)
    .toBe('True');
  // It has work, and is old enough.
  await delay(2_000);
  expect((await clusters())[0]!.metadata.deletionTimestamp).toBeUndefined();

  // More work: its pool grows, and no other cluster is made.
  await bind({}, 'more');
  const decided = () => burst.sizes().get(`shop/${name}`, made!.metadata.uid!);
  await expect
    .poll(() => [...(decided() as ReadonlyMap<string, object>)], PATIENCE)
    .toEqual([['a', expect.objectContaining({ count: 2, by: 'BurstPolicy shop/peak' })]]);
  expect((await policy())!.status!.nodes).toMatchObject([{ cluster: name, pool: 'a', count: 1 }]);
  // It is granted as many, and counts for that.
  expect((await clusters())[0]!.spec.pools).toMatchObject([{ maximum: 2 }]);
  expect((await policy())!.status!.clusters).toMatchObject([{ grantedNodes: 2, counted: '0.2' }]);
  await client.delete(RESOURCEBINDINGS, 'more-deployment', 'shop');

  pods.length = 0;
  await client.delete(RESOURCEBINDINGS, 'web-deployment', 'shop');
  await expect.poll(async () => (await clusters())[0]?.metadata.deletionTimestamp, PATIENCE).toBeDefined();
  await testbed.until('the cluster to leave the hub', () => testbed.memberships.size === 0);
  expect(await client.getOrUndefined(CLUSTERS, memberName)).toBeUndefined();
  await client.mergePatch(WORKERCLUSTERS, name, 'shop', { metadata: { finalizers: null } });
  await expect.poll(async () => (await policy())?.status?.clusterCount, PATIENCE).toBe(0);
  const { decisions = [], spend } = (await policy())!.status!;
  expect(decisions.filter(({ dryRun }) => !dryRun).map(({ action }) => action)).toEqual(['Remove', 'Grow', 'Buy']);
  expect(Number(spend!.amount)).toBeGreaterThan(0);
  expect(testbed.events).toContainEqual(expect.stringMatching(/^BurstPolicy ClusterBought: .*have no place/));

  await client.delete(BURSTPOLICIES, 'peak', 'shop');
  await expect.poll(policy, PATIENCE).toBeUndefined();
  const secrets = (await client.list(SECRETS, { namespace: 'kube-system' })).items;
  expect(secrets.map((one) => one.metadata.name).filter((one) => /^(burst|membership)-/.test(one))).toEqual([]);
}, 120_000);
