import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import { DEPLOYMENTS, NAMESPACES, NODES, SECRETS, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { addNode, HubScene } from '../kit/hubs/hub-scene.ts';
import {
  BY_WEIGHT,
  bindingOf,
  placed as placedIn,
  propagate as propagateTo,
  scheduled as scheduledIn,
} from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealKarmada } from '../kit/hubs/real-karmada.ts';

const PATIENCE_MS = 120_000;
const IDLE_MS = 12_000;
/** What the scheduler has, after a cluster has grown, to place work that waits for it. */
const PLACED_MS = 10_000;

const tier = (name: string) => ({ affinityName: name, labelSelector: { matchLabels: { tier: name } } });
const overflowing = {
  clusterAffinities: [{ ...tier('own'), overflowAffinities: [tier('burst')] }],
  replicaScheduling: BY_WEIGHT,
};

describe.skipIf(!programs)('the real Karmada', () => {
  let karmada: RealKarmada;
  let scene: HubScene;
  let second: TestApiserver;
  const began = Date.now();
  const saw = (what: string) => console.log(`karmada ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);
  beforeAll(async () => {
    karmada = await RealKarmada.start(programs!);
    saw('Karmada runs');
    const spec = { type: 'Karmada' as const, karmada: { renewsTokens: true, evicts: true } };
    scene = await HubScene.start(spec, [], 'admin', karmada.apiserver);
    second = await scene.addMember('small', '2', '2Gi');
    await scene.startOperator();
    saw('two clusters and the operator run');
  });
  afterAll(async () => {
    await karmada?.stop();
    await scene?.stop();
  });

  const cluster = async (name: string) => (await scene.garden.client.get(CLUSTERS, name)) as KarmadaCluster;
  const propagate = (name: string, replicas: number, cpu: string, placement: object) =>
    propagateTo(scene.garden.client, { name, replicas, cpu }, placement);
  const placed = (name: string) => placedIn(scene.garden.client, name);
  const scheduled = (name: string) => scheduledIn(scene.garden.client, name);
  const unschedulable = expect.objectContaining({ type: 'Scheduled', status: 'False', reason: 'Unschedulable' });

  it('takes two clusters, and opens them when it counts what their nodes offer', async () => {
    await scene.makeHub();
    for (const [name, tier] of Object.entries({ demo: 'own', small: 'burst' })) {
      await scene.makeCluster({ tier }, name);
      scene.open([], name);
    }
    for (const name of ['demo', 'small'])
      await scene.until(`${name} to join`, () => scene.state('test', name) === 'Joined', PATIENCE_MS);
    saw('both have joined');
    const { metadata, spec, status } = await cluster('shop--small');
    saw(JSON.stringify({ labels: metadata.labels, taints: spec?.taints, summary: status?.resourceSummary }));
    expect(spec?.taints ?? []).toEqual([]);
    expect(metadata.labels?.['multi-cluster.demo.io/offered']).toBe('cpu-2.memory-2Gi.grades-9');
  });

  it('divides work onto both, also onto nodes that its own grades count as nothing', async () => {
    await propagate('web', 4, '250m', { replicaScheduling: BY_WEIGHT });
    await expect
      .poll(() => placed('web'), { timeout: PATIENCE_MS })
      .toMatchObject({ 'shop--small': expect.any(Number) });
    saw(`placed: ${JSON.stringify(await placed('web'))}`);
    for (const { client } of [scene.member, second])
      await expect
        .poll(() => client.getOrUndefined(DEPLOYMENTS, 'web', 'shop'), { timeout: PATIENCE_MS })
        .toMatchObject({ spec: { replicas: expect.any(Number) } });
    saw('the Deployment is in both clusters');
  });

  it('places work that found no room as soon as a cluster has grown', async () => {
    await propagate('big', 6, '1500m', { replicaScheduling: BY_WEIGHT });
    await expect.poll(() => scheduled('big'), { timeout: PATIENCE_MS }).toContainEqual(unschedulable);
    saw(`no room: ${JSON.stringify(await scheduled('big'))}`);
    const grown = Date.now();
    await addNode(second, 'two', '16', '32Gi');
    await expect
      .poll(() => placed('big'), { timeout: PATIENCE_MS })
      .toMatchObject({ 'shop--small': expect.any(Number) });
    saw(`placed ${Date.now() - grown} ms after the node was there: ${JSON.stringify(await placed('big'))}`);
    expect(Date.now() - grown).toBeLessThan(PLACED_MS);
    const { metadata, spec } = await cluster('shop--small');
    saw(JSON.stringify({ offered: metadata.labels?.['multi-cluster.demo.io/offered'], taints: spec?.taints }));
    await scene.garden.client.delete(DEPLOYMENTS, 'big', 'shop');
  });

  it('places work that only overflows onto a cluster as soon as that has grown', async () => {
    await propagate('spill', 6, '3500m', overflowing);
    await expect.poll(() => scheduled('spill'), { timeout: PATIENCE_MS }).toContainEqual(unschedulable);
    saw(`no room to overflow to: ${JSON.stringify(await scheduled('spill'))}`);
    const grown = Date.now();
    await addNode(second, 'three', '16', '32Gi');
    await expect
      .poll(() => placed('spill'), { timeout: PATIENCE_MS })
      .toMatchObject({ 'shop--demo': 1, 'shop--small': 5 });
    saw(`overflowed ${Date.now() - grown} ms after the node was there: ${JSON.stringify(await placed('spill'))}`);
    saw(`rescheduleTriggeredAt ${(await bindingOf(scene.garden.client, 'spill'))?.spec.rescheduleTriggeredAt}`);
    expect(Date.now() - grown).toBeLessThan(PLACED_MS);
    await scene.garden.client.delete(DEPLOYMENTS, 'spill', 'shop');
  });

  it('writes nothing while nothing changes, though Karmada reports every two seconds', async () => {
    const { length } = scene.line.writes;
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const writes = scene.line.writes.slice(length);
    saw(`writes in ${IDLE_MS} ms: ${JSON.stringify(writes)}`);
    expect(writes).toEqual([]);
  });

  it('has work looked at again that Karmada overlooks: placed before, homeless since, and as it was', async () => {
    const { client } = scene.garden;
    const offered = async (name: string) => (await cluster(name)).metadata.labels?.['multi-cluster.demo.io/offered'];
    for (const node of ['two', 'three']) await second.client.delete(NODES, node);
    await expect.poll(() => offered('shop--small'), { timeout: PATIENCE_MS }).toBe('cpu-2.memory-2Gi.grades-9');
    await propagate('lone', 1, '3', overflowing);
    await expect.poll(() => placed('lone'), { timeout: PATIENCE_MS }).toEqual({ 'shop--demo': 1 });
    const { uid } = (await cluster('shop--demo')).metadata;
    await client.delete(CLUSTERS, 'shop--demo');
    await expect.poll(() => scheduled('lone'), { timeout: PATIENCE_MS }).toContainEqual(unschedulable);
    const grown = Date.now();
    await addNode(second, 'spare', '4', '8Gi');
    await expect.poll(() => placed('lone'), { timeout: PATIENCE_MS }).toEqual({ 'shop--small': 1 });
    const at = (await bindingOf(client, 'lone'))?.spec.rescheduleTriggeredAt;
    saw(`homeless work is placed ${Date.now() - grown} ms after the node was there; rescheduleTriggeredAt ${at}`);
    expect(Date.now() - grown).toBeLessThan(PLACED_MS);
    expect(at).toBeDefined();

    await client.delete(DEPLOYMENTS, 'lone', 'shop');
    // What somebody deleted has come back.
    const isBack = async () => {
      const { metadata, spec } = await cluster('shop--demo');
      return metadata.uid !== uid && (spec?.taints ?? []).length === 0 && (await offered('shop--demo')) !== undefined;
    };
    await expect.poll(() => isBack().catch(() => false), { timeout: PATIENCE_MS }).toBe(true);
    saw('the Cluster that somebody deleted is back');
  });

  it('moves work away from a cluster that leaves, and then leaves nothing of it', async () => {
    await expect.poll(() => placed('web'), { timeout: PATIENCE_MS }).toHaveProperty('shop--small');
    const began = Date.now();
    await scene.garden.client.delete(WORKERCLUSTERS, 'small', 'shop');
    await expect.poll(() => placed('web'), { timeout: PATIENCE_MS }).toEqual({ 'shop--demo': 4 });
    saw(`moved after ${Date.now() - began} ms; ${scene.membership('test', 'small')?.status?.waiting}`);
    expect((await cluster('shop--small')).metadata.deletionTimestamp).toBeUndefined();
    await scene.until('small to have left', () => !scene.membership('test', 'small'), PATIENCE_MS * 2);
    saw(`left after ${Date.now() - began} ms`);
    const { client } = scene.garden;
    expect(await client.getOrUndefined(CLUSTERS, 'shop--small')).toBeUndefined();
    expect(await client.getOrUndefined(NAMESPACES, 'karmada-es-shop--small')).toBeUndefined();
    const secrets = (await client.list(SECRETS, { namespace: 'karmada-cluster' })).items.map(
      (one) => one.metadata.name,
    );
    expect(secrets.sort()).toEqual(['shop--demo', 'shop--demo-impersonator']);
    expect(await placed('web')).toEqual({ 'shop--demo': 4 });
  });

  it('lets go of a cluster that is dead, by force, and leaves nothing of it', async () => {
    const { client } = scene.garden;
    await scene.makeHub('test', { drain: { timeout: '5s', force: true } });
    await scene.member.kill();
    await scene.silence();
    const began = Date.now();
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await scene.until('demo to have left', () => !scene.membership(), PATIENCE_MS);
    saw(`left by force after ${Date.now() - began} ms`);
    expect(await client.getOrUndefined(CLUSTERS, 'shop--demo')).toBeUndefined();
    await expect
      .poll(() => client.getOrUndefined(NAMESPACES, 'karmada-es-shop--demo'), { timeout: PATIENCE_MS })
      .toBeUndefined();
  });
});
