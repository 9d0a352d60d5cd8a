import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MembershipController } from '../../../operator/controllers/membership/controller.ts';
import { CLUSTERS, type KarmadaCluster } from '../../../operator/hubs/karmada/cluster.ts';
import { karmadaHub } from '../../../operator/hubs/karmada/karmada.ts';
import { RESOURCEBINDINGS, WORKS } from '../../../operator/hubs/karmada/seen.ts';
import { type KubeObject, NAMESPACES, SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';
import { KarmadaStandIn, removeNamespace } from '../../kit/hubs/karmada-stand-in.ts';

async function open(): Promise<{ testbed: HubTestbed; standIn: KarmadaStandIn }> {
  const testbed = await HubTestbed.start({ type: 'Karmada', karmada: { renewsTokens: true } }, ['karmada']);
  const standIn = new KarmadaStandIn(testbed.garden.client, testbed.member.client);
  await standIn.start();
  testbed.onStop(() => standIn.stop());
  return { testbed, standIn };
}

keepsMembers({
  costs: { join: 20, leave: 10 },
  type: 'Karmada',
  open: async () => {
    const { testbed } = await open();
    await testbed.garden.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'karmada-cluster' } });
    return testbed;
  },
  kinds: [CLUSTERS],
  shows: '/clusters/shop--demo',
  taken: {
    resource: CLUSTERS,
    object: {
      apiVersion: 'cluster.karmada.io/v1alpha1',
      kind: 'Cluster',
      metadata: { name: 'shop--demo' },
      spec: { syncMode: 'Pull' },
    },
  },
  theirs: ({ id, server }) => {
    const secret = (name: string) => ({
      resource: SECRETS,
      object: { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'karmada-cluster' } },
    });
    const secretRef = { namespace: 'karmada-cluster', name: 'theirs' };
    const spec = { id, syncMode: 'Push', apiEndpoint: server, secretRef };
    const object = { apiVersion: 'cluster.karmada.io/v1alpha1', kind: 'Cluster', metadata: { name: 'theirs' }, spec };
    return { name: 'theirs', objects: [{ resource: CLUSTERS, object }, secret('theirs')] };
  },
});

const NAME = 'shop--demo';
const NAMESPACE = `karmada-es-${NAME}`;

describe('a cluster in Karmada', () => {
  let testbed: HubTestbed;
  let standIn: KarmadaStandIn;
  beforeAll(async () => {
    ({ testbed, standIn } = await open());
    await testbed.startOperator();
  });
  afterAll(() => testbed?.stop());

  const cluster = async () =>
    (await testbed.garden.client.getOrUndefined(CLUSTERS, NAME)) as KarmadaCluster | undefined;
  const waiting = () => testbed.membership()?.status?.waiting ?? '';
  const join = async (more: Parameters<HubTestbed['makeHub']>[1] = {}) => {
    await testbed.makeHub('test', more);
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  };
  /** It stays what it is, and is selected no more. */
  const leave = (more: Parameters<HubTestbed['makeHub']>[1] = {}) =>
    testbed.makeHub('test', { ...more, clusterSelector: { matchLabels: { fleet: 'other' } } });
  const left = () => testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
  const place = async (spec: object) => {
    const object: KubeObject = {
      apiVersion: 'work.karmada.io/v1alpha2',
      kind: 'ResourceBinding',
      metadata: { name: 'web-deployment', namespace: 'shop' },
      spec: { resource: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' }, ...spec },
    };
    await testbed.garden.client.apply(object, { resource: RESOURCEBINDINGS, force: true });
  };
  const keys = async () => ((await cluster())?.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).sort();

  it('has resource models that fit its nodes, and keeps labels and taints of others', async () => {
    await join();
    const { spec, metadata } = (await cluster())!;
    expect(spec).toMatchObject({ syncMode: 'Push', id: expect.any(String), resourceModels: { length: 9 } });
    await expect
      .poll(async () => (await cluster())?.metadata.labels)
      .toHaveProperty('multi-cluster.demo.io/offered', 'cpu-4.memory-8Gi');
    expect(metadata.labels).toHaveProperty('multi-cluster.demo.io/provider', 'local');
    expect(await keys()).toEqual([]);
    const cordoned = { key: 'cluster.karmada.io/unschedulable', effect: 'NoSchedule' };
    const observe = karmadaHub.observe.bind(karmadaHub);
    // Somebody cordons it after it was looked at, and before it is written.
    const look = vi.spyOn(karmadaHub, 'observe').mockImplementationOnce(async (...all) => {
      const seen = await observe(...all);
      await testbed.garden.client.mergePatch(CLUSTERS, NAME, undefined, { spec: { taints: [cordoned] } });
      return seen;
    });
    await testbed.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { labels: { tier: 'gold' } } });
    await expect.poll(async () => (await cluster())?.metadata.labels).toHaveProperty('tier', 'gold');
    expect(await keys()).toEqual(['cluster.karmada.io/unschedulable:NoSchedule']);
    look.mockRestore();
  });

  it('is checked again when Karmada reports during a check', async () => {
    const told = vi.spyOn(MembershipController.prototype, 'hubChanged');
    const observe = karmadaHub.observe.bind(karmadaHub);
    const reported = { conditions: [{ type: 'Ready', status: 'True' }], resourceSummary: { allocatable: more } };
    try {
      await testbed.quiet();
      standIn.isDown = true;
      vi.spyOn(karmadaHub, 'observe').mockImplementation(async (...all) => {
        const seen = await observe(...all);
        if (seen.cluster?.status?.resourceSummary?.allocatable?.cpu === more.cpu) return seen;
        const before = told.mock.calls.length;
        await testbed.garden.client.mergePatch(
          CLUSTERS,
          NAME,
          undefined,
          { status: reported },
          { subresource: 'status' },
        );
        await expect.poll(() => told.mock.calls.length).toBeGreaterThan(before);
        return seen;
      });
      // Something by which it is looked at, and nothing is written.
      await testbed.garden.client.mergePatch(CLUSTERS, NAME, undefined, { metadata: { annotations: { look: 'now' } } });
      await expect
        .poll(async () => (await cluster())?.metadata.labels?.['multi-cluster.demo.io/offered'])
        .toBe('cpu-64.memory-8Gi');
    } finally {
      vi.restoreAllMocks();
      standIn.wake();
    }
  });

  it('stays while a binding that Karmada does not move names it, and leaves afterwards', async () => {
    await place({ clusters: [{ name: NAME, replicas: 1 }] });
    await leave();
    await testbed.until('it to be said', () => waiting().includes('ResourceBinding shop/web-deployment is placed'));
    expect(await keys()).toEqual([
      'cluster.karmada.io/unschedulable:NoSchedule',
      'multi-cluster.demo.io/leaving:NoExecute',
      'multi-cluster.demo.io/leaving:NoSchedule',
    ]);
    // A Karmada that evicts all the same is seen to.
    await place({ clusters: [{ name: 'other' }], gracefulEvictionTasks: [evictedFrom(NAME)] });
    await testbed.until('it to be moved', () => waiting().includes('the hub moves ResourceBinding'));
    expect((await cluster())?.metadata.deletionTimestamp).toBeUndefined();
    await place({ clusters: [{ name: 'other' }] });
    await left();
    expect(await cluster()).toBeUndefined();
  });

  it('leaves no namespace that Karmada leaked', async () => {
    standIn.leaksNamespace = true;
    await join();
    await leave();
    await testbed.until('the namespace to be swept', () => waiting().includes(NAMESPACE));
    await removeNamespace(testbed.garden.client, NAMESPACE);
    await left();
    standIn.leaksNamespace = false;
  });

  it('is removed by force from a dead Karmada, its Works first', async () => {
    const { client } = testbed.garden;
    await join();
    await expect.poll(() => client.getOrUndefined(NAMESPACES, NAMESPACE)).toBeDefined();
    await client.apply(work, { resource: WORKS });
    standIn.isDown = true;
    await leave({ drain: { timeout: '1s', force: true } });
    await expect.poll(() => client.getOrUndefined(WORKS, work.metadata.name, NAMESPACE)).toBeUndefined();
    await expect.poll(cluster).toBeUndefined();
    await removeNamespace(client, NAMESPACE);
    await left();
    standIn.wake();
  });
});

const more = { cpu: '64', memory: '8Gi' };

const evictedFrom = (fromCluster: string) => ({ fromCluster, producer: 'TaintManager', reason: 'TaintUntolerated' });

const work: KubeObject = {
  apiVersion: 'work.karmada.io/v1alpha1',
  kind: 'Work',
  metadata: {
    name: 'web',
    namespace: NAMESPACE,
    labels: { 'work.karmada.io/permanent-id': 'one' },
    finalizers: ['karmada.io/execution-controller'],
  },
  spec: { workload: {} },
};
