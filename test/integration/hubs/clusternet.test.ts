import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { CLUSTERNET_CLUSTERS, DESCRIPTIONS, SUBSCRIPTIONS } from '../../../operator/hubs/clusternet.ts';
import { CONFIGMAPS, type KubeObject, NAMESPACES, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers, sweepMember } from '../../kit/conformance/hubs.ts';
import { Clusternet, subscription } from '../../kit/hubs/clusternet.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';
import { TokenController } from '../../kit/hubs/token-controller.ts';

const NAME = 'shop--demo';
const NAMESPACE = `clusternet-${NAME}`;
const PATIENCE = { timeout: 120_000 };

interface Testbed {
  readonly testbed: HubTestbed;
  readonly clusternet: Clusternet;
}

async function open(spec: Partial<HubSpec> = {}): Promise<Testbed> {
  const testbed = await HubTestbed.start({ type: 'Clusternet', ...spec }, ['clusternet']);
  await testbed.member.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
  const clusternet = new Clusternet(testbed.garden.client);
  for (const standIn of [clusternet, new TokenController(testbed.member.client)]) {
    await standIn.start();
    testbed.onStop(() => standIn.stop());
  }
  return { testbed, clusternet };
}

keepsMembers({
  costs: { join: 17, leave: 11 },
  type: 'Clusternet',
  open: async () => (await open()).testbed,
  kinds: [CLUSTERNET_CLUSTERS, NAMESPACES],
  shows: `/managedclusters/${NAME}`,
  taken: {
    resource: NAMESPACES,
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
  },
  theirs: ({ id, server }) => {
    const object: KubeObject = {
      apiVersion: 'clusters.clusternet.io/v1beta1',
      kind: 'ManagedCluster',
      metadata: { name: 'theirs', namespace: 'shop' },
      spec: { clusterId: id, clusterType: 'StandardCluster', syncMode: 'Push' },
      status: { apiserverURL: server },
    };
    const whyNot = "ManagedCluster shop/theirs of the hub has an agent of somebody else's";
    return { name: 'theirs', objects: [{ resource: CLUSTERNET_CLUSTERS, object }], whyNot };
  },
});

describe('a cluster in Clusternet', () => {
  let testbed: HubTestbed;
  let clusternet: Clusternet;
  beforeAll(async () => {
    ({ testbed, clusternet } = await open());
  });
  afterAll(() => testbed?.stop());
  beforeEach(async () => {
    await testbed.makeHub();
    await testbed.startOperator();
    await testbed.makeCluster({ fleet: 'web' });
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  });
  afterEach(async () => {
    clusternet.isUp = true;
    clusternet.deployed.answers = true;
    clusternet.look();
    const { client } = testbed.garden;
    await client.delete(SUBSCRIPTIONS, 'web', 'shop').catch(() => {});
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    await client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});
    await testbed.stopOperator();
    await sweepMember(testbed);
    for (const { metadata } of (await testbed.member.client.list(CONFIGMAPS, { namespace: 'default' })).items)
      if (metadata.name.startsWith('web')) await testbed.member.client.delete(CONFIGMAPS, metadata.name, 'default');
  });

  const subscribe = async (strategy?: 'Replication' | 'Dividing') => {
    const object = subscription('web', { fleet: 'web' }, strategy);
    await testbed.garden.client.create(object, { resource: SUBSCRIPTIONS });
    await expect.poll(deployed, PATIENCE).toBe(true);
  };
  const deployed = async () =>
    (await testbed.member.client.getOrUndefined(CONFIGMAPS, 'web-base-generic', 'default')) !== undefined;
  const cluster = () => testbed.garden.client.getOrUndefined(CLUSTERNET_CLUSTERS, NAME, NAMESPACE);
  const taints = async () =>
    ((await cluster())?.spec as { taints?: { key: string }[] } | undefined)?.taints?.map(({ key }) => key) ?? [];
  const ready = async () =>
    ((await cluster())?.status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions?.find(
      ({ type }) => type === 'Ready',
    )?.status;
  const waiting = () => testbed.membership()?.status?.waiting ?? '';
  /** It stays what it is, and is selected no more. */
  const leave = (more: Partial<HubSpec> = {}) =>
    testbed.makeHub('test', { ...more, clusterSelector: { matchLabels: { fleet: 'other' } } });
  const gone = () => testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
  const idOf = (object: KubeObject | undefined) => (object?.spec as { clusterId?: string } | undefined)?.clusterId;

  it('receives deployments by its labels, and stays Ready although no agent reports', async () => {
    await subscribe();
    expect(await cluster()).toMatchObject({
      metadata: { labels: { fleet: 'web', 'multi-cluster.demo.io/provider': 'local' } },
      spec: { syncMode: 'Push' },
      status: { appPusher: true, heartbeatFrequencySeconds: 315_360_000, allocatable: { cpu: '4', memory: '8Gi' } },
    });
    expect(await ready()).toBe('True');
    expect(await taints()).toEqual([]);
  });

  it.each(['Replication', 'Dividing'] as const)(
    'keeps what a Subscription by %s placed until the Hub permits its end',
    async (by) => {
      await subscribe(by);
      await leave();
      await testbed.until('it to be said', () => waiting().includes('Subscription shop/web is placed'));
      // A taint would have deleted it.
      expect(await taints()).toEqual([]);
      expect(await deployed()).toBe(true);
      await leave({ drain: { allowDelete: true } });
      await gone();
      // Had the ManagedCluster gone first, all would have stayed there. Of one that divides it stays: Clusternet does not let go of it.
      expect(await deployed()).toBe(by === 'Dividing');
      expect(await testbed.garden.client.getOrUndefined(NAMESPACES, NAMESPACE)).toBeUndefined();
    },
  );

  it('gets no new work once nothing is placed, and leaves', async () => {
    await subscribe();
    clusternet.isUp = false;
    await leave();
    await testbed.until('it to be said', () => waiting().includes('Subscription shop/web is placed'));
    clusternet.isUp = true;
    await testbed.garden.client.delete(SUBSCRIPTIONS, 'web', 'shop');
    await gone();
    expect(await cluster()).toBeUndefined();
  });

  it('is released by force when dead, and nothing hangs in its namespace', async () => {
    await subscribe();
    clusternet.deployed.answers = false;
    await testbed.silence();
    await expect.poll(ready, PATIENCE).toBe('False');
    await testbed.makeHub('test', { drain: { timeout: '1s', force: true } });
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    expect(await clusternet.list(DESCRIPTIONS)).toEqual([]);
    expect(await testbed.garden.client.getOrUndefined(NAMESPACES, NAMESPACE)).toBeUndefined();
  });

  it('gets no new work while it sleeps, and nothing in it is deleted', async () => {
    await subscribe();
    await testbed.sleep(true);
    await expect.poll(taints, PATIENCE).toEqual(['clusters.clusternet.io/unschedulable']);
    await expect.poll(() => clusternet.list(DESCRIPTIONS), PATIENCE).toEqual([]);
    expect(await deployed()).toBe(true);
    await testbed.sleep(false);
    await expect.poll(() => clusternet.list(DESCRIPTIONS), PATIENCE).toHaveLength(1);
    expect(await deployed()).toBe(true);
  });

  it('gets a new ID when it joins again, as Clusternet would reuse the old token', async () => {
    const before = idOf(await cluster());
    await leave();
    await gone();
    await testbed.makeHub();
    await testbed.until('the cluster to join again', () => testbed.state() === 'Joined');
    expect(idOf(await cluster())).not.toBe(before);
    await subscribe();
  });
});
