import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { DESCRIPTIONS, MANAGEDCLUSTERS, SUBSCRIPTIONS } from '../../../operator/hubs/clusternet.ts';
import { CONFIGMAPS, type KubeObject, NAMESPACES, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers, sweepMember } from '../../kit/conformance/hubs.ts';
import { Clusternet, subscription } from '../../kit/hubs/clusternet.ts';
import { HubScene } from '../../kit/hubs/hub-scene.ts';
import { TokenController } from '../../kit/hubs/token-controller.ts';
import { turnOf } from '../../kit/hubs/turns.ts';
import { rotates } from '../../kit/rotation.ts';

const NAME = 'shop--demo';
const NAMESPACE = `clusternet-${NAME}`;
const PATIENCE = { timeout: 120_000 };

interface Scene {
  readonly scene: HubScene;
  readonly clusternet: Clusternet;
}

async function open(spec: Partial<HubSpec> = {}): Promise<Scene> {
  const scene = await HubScene.start({ type: 'Clusternet', ...spec }, ['clusternet']);
  await scene.member.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
  const clusternet = new Clusternet(scene.garden.client);
  for (const standIn of [clusternet, new TokenController(scene.member.client)]) {
    await standIn.start();
    scene.onStop(() => standIn.stop());
  }
  return { scene, clusternet };
}

const TURN = turnOf('Clusternet');

keepsMembers({
  turn: TURN,
  costs: { join: 17, leave: 11 },
  type: 'Clusternet',
  open: async () => (await open()).scene,
  kinds: [MANAGEDCLUSTERS, NAMESPACES],
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
    return { name: 'theirs', objects: [{ resource: MANAGEDCLUSTERS, object }], whyNot };
  },
});

rotates(describe, TURN)('Clusternet and its clusters', () => {
  let scene: HubScene;
  let clusternet: Clusternet;
  beforeAll(async () => {
    ({ scene, clusternet } = await open());
  });
  afterAll(() => scene?.stop());
  beforeEach(async () => {
    await scene.makeHub();
    await scene.startOperator();
    await scene.makeCluster({ fleet: 'web' });
    scene.open();
    await scene.until('the cluster to join', () => scene.state() === 'Joined');
  });
  afterEach(async () => {
    clusternet.isUp = true;
    clusternet.deployed.answers = true;
    clusternet.look();
    const { client } = scene.garden;
    await client.delete(SUBSCRIPTIONS, 'web', 'shop').catch(() => {});
    await scene.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await scene.until('the cluster to have left', () => scene.memberships.size === 0);
    await client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});
    await scene.stopOperator();
    await sweepMember(scene);
    for (const { metadata } of (await scene.member.client.list(CONFIGMAPS, { namespace: 'default' })).items)
      if (metadata.name.startsWith('web')) await scene.member.client.delete(CONFIGMAPS, metadata.name, 'default');
  });

  const subscribe = async (strategy?: 'Replication' | 'Dividing') => {
    const object = subscription('web', { fleet: 'web' }, strategy);
    await scene.garden.client.create(object, { resource: SUBSCRIPTIONS });
    await expect.poll(deployed, PATIENCE).toBe(true);
  };
  const deployed = async () =>
    (await scene.member.client.getOrUndefined(CONFIGMAPS, 'web-base-generic', 'default')) !== undefined;
  const cluster = () => scene.garden.client.getOrUndefined(MANAGEDCLUSTERS, NAME, NAMESPACE);
  const taints = async () =>
    ((await cluster())?.spec as { taints?: { key: string }[] } | undefined)?.taints?.map(({ key }) => key) ?? [];
  const ready = async () =>
    ((await cluster())?.status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions?.find(
      ({ type }) => type === 'Ready',
    )?.status;
  const waiting = () => scene.membership()?.status?.waiting ?? '';
  /** It stays what it is, and is selected no more. */
  const leave = (more: Partial<HubSpec> = {}) =>
    scene.makeHub('test', { ...more, clusterSelector: { matchLabels: { fleet: 'other' } } });
  const gone = () => scene.until('the membership to be gone', () => scene.memberships.size === 0);
  const idOf = (object: KubeObject | undefined) => (object?.spec as { clusterId?: string } | undefined)?.clusterId;

  it('is deployed to by its labels, and stays Ready although no agent reports', async () => {
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
    'keeps what a Subscription by %s has placed until the Hub lets it end',
    async (by) => {
      await subscribe(by);
      await leave();
      await scene.until('it to be said', () => waiting().includes('Subscription shop/web is placed'));
      // A taint would have deleted it.
      expect(await taints()).toEqual([]);
      expect(await deployed()).toBe(true);
      await leave({ drain: { allowDelete: true } });
      await gone();
      // Had the ManagedCluster gone first, all would have stayed there. Of one that divides it stays: Clusternet does not let go of it.
      expect(await deployed()).toBe(by === 'Dividing');
      expect(await scene.garden.client.getOrUndefined(NAMESPACES, NAMESPACE)).toBeUndefined();
    },
  );

  it('keeps new work away once nothing is placed, and leaves', async () => {
    await subscribe();
    clusternet.isUp = false;
    await leave();
    await scene.until('it to be said', () => waiting().includes('Subscription shop/web is placed'));
    clusternet.isUp = true;
    await scene.garden.client.delete(SUBSCRIPTIONS, 'web', 'shop');
    await gone();
    expect(await cluster()).toBeUndefined();
  });

  it('lets go of a dead cluster that is forced out, and nothing hangs in its namespace', async () => {
    await subscribe();
    clusternet.deployed.answers = false;
    await scene.silence();
    await expect.poll(ready, PATIENCE).toBe('False');
    await scene.makeHub('test', { drain: { timeout: '1s', force: true } });
    await scene.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    expect(await clusternet.list(DESCRIPTIONS)).toEqual([]);
    expect(await scene.garden.client.getOrUndefined(NAMESPACES, NAMESPACE)).toBeUndefined();
  });

  it('takes no new work while it sleeps, and nothing in it is deleted', async () => {
    await subscribe();
    await scene.sleep(true);
    await expect.poll(taints, PATIENCE).toEqual(['clusters.clusternet.io/unschedulable']);
    await expect.poll(() => clusternet.list(DESCRIPTIONS), PATIENCE).toEqual([]);
    expect(await deployed()).toBe(true);
    await scene.sleep(false);
    await expect.poll(() => clusternet.list(DESCRIPTIONS), PATIENCE).toHaveLength(1);
    expect(await deployed()).toBe(true);
  });

  it('has another id when it comes again: Clusternet would use the token that it had', async () => {
    const before = idOf(await cluster());
    await leave();
    await gone();
    await scene.makeHub();
    await scene.until('the cluster to join again', () => scene.state() === 'Joined');
    expect(idOf(await cluster())).not.toBe(before);
    await subscribe();
  });
});
