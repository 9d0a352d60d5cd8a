import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import {
  CLUSTERROLES,
  DEPLOYMENTS,
  LEASES,
  NAMESPACES,
  ROLES,
  SECRETS,
  SERVICEACCOUNTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { addNode, HubScene } from '../kit/hubs/hub-scene.ts';
import { BY_WEIGHT, placed as placedIn, propagate, scheduled } from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealKarmada } from '../kit/hubs/real-karmada.ts';

const PATIENCE_MS = 120_000;
const IDLE_MS = 12_000;

describe.skipIf(!programs)('the real Karmada, whose agents pull', () => {
  let karmada: RealKarmada;
  let scene: HubScene;
  let second: TestApiserver;
  const ends: (() => void)[] = [];
  const began = Date.now();
  const saw = (what: string) => console.log(`karmada pull ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);
  beforeAll(async () => {
    karmada = await RealKarmada.start(programs!);
    saw('Karmada runs');
    const spec = {
      type: 'Karmada' as const,
      karmada: { syncMode: 'Pull' as const, evicts: true },
      member: { agentImage: 'docker.io/karmada/karmada-agent:v1.19.0' },
    };
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
  const placed = (name: string) => placedIn(scene.garden.client, name);

  it('takes two clusters, whose agents report by the credentials that they got', async () => {
    await scene.makeHub();
    for (const [name, member] of Object.entries({ demo: scene.member, small: second })) {
      await scene.makeCluster({}, name);
      scene.open([], name);
      ends.push(await karmada.startAgent(name, member));
    }
    for (const name of ['demo', 'small'])
      await scene.until(`${name} to join`, () => scene.state('test', name) === 'Joined', PATIENCE_MS);
    saw('both have joined');
    const { metadata, spec, status } = await cluster('shop--small');
    saw(JSON.stringify({ spec, summary: status?.resourceSummary }));
    expect(spec).toMatchObject({ syncMode: 'Pull' });
    expect(spec?.taints ?? []).toEqual([]);
    expect(metadata.labels?.['multi-cluster.demo.io/offered']).toBe('cpu-2.memory-2Gi.grades-9');
    const secrets = (await scene.garden.client.list(SECRETS, { namespace: 'karmada-cluster' })).items;
    expect(secrets).toEqual([]);
    expect(await scene.garden.client.getOrUndefined(LEASES, 'shop--small', 'karmada-cluster')).toBeDefined();
    expect(await second.client.getOrUndefined(NAMESPACES, 'karmada-cluster')).toBeUndefined();
  });

  it('divides work onto both', async () => {
    const began = Date.now();
    await propagate(scene.garden.client, { name: 'web', replicas: 4, cpu: '250m' }, { replicaScheduling: BY_WEIGHT });
    await expect
      .poll(() => placed('web'), { timeout: PATIENCE_MS })
      .toMatchObject({ 'shop--small': expect.any(Number) });
    saw(`placed: ${JSON.stringify(await placed('web'))}`);
    for (const { client } of [scene.member, second])
      await expect
        .poll(() => client.getOrUndefined(DEPLOYMENTS, 'web', 'shop'), { timeout: PATIENCE_MS })
        .toMatchObject({ spec: { replicas: expect.any(Number) } });
    saw(`the Deployment is in both clusters after ${Date.now() - began} ms`);
  });

  it('places work that found no room as soon as a cluster has grown', async () => {
    const { client } = scene.garden;
    await propagate(client, { name: 'big', replicas: 6, cpu: '1500m' }, { replicaScheduling: BY_WEIGHT });
    await expect
      .poll(() => scheduled(client, 'big'), { timeout: PATIENCE_MS })
      .toContainEqual(expect.objectContaining({ status: 'False', reason: 'Unschedulable' }));
    const grown = Date.now();
    await addNode(second, 'two', '16', '32Gi');
    await expect
      .poll(() => placed('big'), { timeout: PATIENCE_MS })
      .toMatchObject({ 'shop--small': expect.any(Number) });
    saw(`placed ${Date.now() - grown} ms after the node was there: ${JSON.stringify(await placed('big'))}`);
    await client.delete(DEPLOYMENTS, 'big', 'shop');
  });

  it('writes nothing while nothing changes', async () => {
    const { length } = scene.line.writes;
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    expect(scene.line.writes.slice(length)).toEqual([]);
  });

  it('moves work away from a cluster that leaves, and then leaves nothing of it', async () => {
    const { client } = scene.garden;
    const began = Date.now();
    await client.delete(WORKERCLUSTERS, 'small', 'shop');
    await expect.poll(() => placed('web'), { timeout: PATIENCE_MS }).toEqual({ 'shop--demo': 4 });
    saw(`moved after ${Date.now() - began} ms`);
    await scene.until('small to have left', () => !scene.membership('test', 'small'), PATIENCE_MS * 2);
    saw(`left after ${Date.now() - began} ms`);
    // The agent has taken it away, and not only forgotten it.
    expect(await second.client.getOrUndefined(DEPLOYMENTS, 'web', 'shop')).toBeUndefined();
    expect(await client.getOrUndefined(CLUSTERS, 'shop--small')).toBeUndefined();
    expect(await client.getOrUndefined(NAMESPACES, 'karmada-es-shop--small')).toBeUndefined();
    for (const kind of [SERVICEACCOUNTS, CLUSTERROLES, ROLES]) {
      const names = (await client.list(kind)).items.map(({ metadata }) => metadata.name);
      expect(names.filter((name) => name.includes('shop--small'))).toEqual([]);
    }
    await expect
      .poll(() => client.getOrUndefined(LEASES, 'shop--small', 'karmada-cluster'), { timeout: PATIENCE_MS })
      .toBeUndefined();
    expect(await placed('web')).toEqual({ 'shop--demo': 4 });
  });

  it('lets go of a cluster that is dead with its agent, by force, and leaves nothing of it', async () => {
    const { client } = scene.garden;
    await scene.makeHub('test', {
      drain: { timeout: '5s', force: true },
    });
    for (const end of ends) end();
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
