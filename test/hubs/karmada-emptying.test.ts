import { setInterval } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import { DEPLOYMENTS, NAMESPACES, PDBS, SECRETS, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import type { BoughtClusters } from '../kit/hubs/bought-clusters.ts';
import { makePeakPolicy } from '../kit/hubs/burst-beside.ts';
import type { BurstOnHub } from '../kit/hubs/burst-on-hub.ts';
import type { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import { BY_WEIGHT, bindingOf, placed as placedIn, propagate } from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { burstOnKarmada } from '../kit/hubs/real-karmada-burst.ts';
import type { SchedulingMember } from '../kit/hubs/scheduling-member.ts';

const PATIENCE_MS = 120_000;
/** Karmada waits until what it moves runs elsewhere, and looks at a cluster that leaves each ten seconds, several times. */
const LEAVES_MS = 240_000;

/**
 * After a peak the real Karmada leaves a part of the work on the cluster that was bought: a policy has it emptied. Each test goes on where
 * the one before ended.
 */
describe.skipIf(!programs)('the real Karmada and a BurstPolicy that drains clusters', () => {
  let burst: BurstOnHub;
  let testbed: HubTestbed;
  let own: SchedulingMember;
  let kept: TestApiserver;
  let bought: BoughtClusters;
  let name: string;
  const began = Date.now();
  const saw = (what: string) => console.log(`emptying ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    // What other controllers say of its room once the peak is over: memberships ask it before the hub is to move anything.
    const resource = { cpu: '3', memory: '7Gi' };
    const status = { resource: { total: { cpu: '4', memory: '8Gi' }, available: resource, continuous: resource } };
    burst = await burstOnKarmada(programs!, ['first'], {
      evicts: true,
      prepare: ({ garden }) =>
        garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { status }, { subresource: 'status' }),
    });
    ({ testbed, own, bought } = burst);
    kept = burst.kept.first!;
  });
  afterAll(() => burst?.stop());

  const client = () => testbed.garden.client;
  const scale = (replicas: number) => client().mergePatch(DEPLOYMENTS, 'web', 'shop', { spec: { replicas } });
  const placed = () => placedIn(client(), 'web');
  const policy = () => burst.policy();
  const decisions = async () => (await policy())?.status?.decisions ?? [];
  const done = async () => (await decisions()).map(({ action }) => action).filter((action) => action !== 'Refuse');
  const stays = async () => (await policy())?.status?.clusters?.[0]?.stays;
  const memberName = () => testbed.membership('test', name)?.status?.memberName ?? `shop--${name}`;
  const running = () => own.podsOf('web').running + (name ? (bought.member(name)?.podsOf('web').running ?? 0) : 0);
  const poll = (what: () => unknown, timeout = PATIENCE_MS) => expect.poll(what, { timeout, interval: 50 });
  const since = (from: number) => ((Date.now() - from) / 1000).toFixed(1);
  /** At most so many pods of web may be disturbed at once. */
  const guard = (minAvailable: number) =>
    kept.client.apply({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { minAvailable, selector: { matchLabels: { app: 'web' } } },
    });

  it('leave a part of the work on the cluster bought for a peak', async () => {
    await propagate(client(), { name: 'web', replicas: 6, cpu: '500m' }, { replicaScheduling: BY_WEIGHT });
    await poll(running).toBe(6);
    // It looks every two seconds, and places by what it saw last.
    const counted = async () => (await client().get<KarmadaCluster>(CLUSTERS, 'shop--demo')).status?.resourceSummary;
    await poll(async () => (await counted())?.allocated?.cpu).toBe('3');
    const spec = { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5 }] };
    await makePeakPolicy(client(), [{ name: 'cloud', template: { metadata: { labels: { tier: 'burst' } }, spec } }], {
      scaleIn: { consolidationPolicy: 'WhenEmptyOrUnderutilized' },
    });
    await scale(12);
    await poll(() => bought.names).toHaveLength(1);
    [name] = bought.names as [string];
    await poll(running).toBe(12);
    saw(`web, 12 replicas of 500m by dynamic weight, all running: ${JSON.stringify(await placed())}`);
    await guard(12);
    await scale(4);
    await poll(running).toBe(4);
    saw(`the peak is over, web is scaled to 4: ${JSON.stringify(await placed())}`);
    expect(await placed()).toHaveProperty(memberName());
  });

  it('evict no pod whose PodDisruptionBudget forbids it', async () => {
    await poll(stays).toContain('PodDisruptionBudget shop/web');
    saw(`${name} stays: ${await stays()}`);
    expect(await done()).toEqual(['Buy']);
    expect(await placed()).toHaveProperty(memberName());
  });

  it('move the work to free capacity, and return the empty cluster', async () => {
    const member = memberName();
    let least = running();
    const watching = new AbortController();
    const watch = (async () => {
      for await (const _ of setInterval(50, undefined, { signal: watching.signal })) least = Math.min(least, running());
    })().catch(() => {});
    const from = Date.now();
    await kept.client.delete(PDBS, 'web', 'shop');
    await poll(done).toEqual(['Empty', 'Buy']);
    saw(`decided ${since(from)} s after the budget was taken off: Empty, because ${(await decisions())[0]?.why}`);
    await poll(placed).toEqual({ 'shop--demo': 4 });
    saw(`Karmada has placed all of it elsewhere ${since(from)} s after: ${JSON.stringify(await placed())}`);
    await poll(() => own.podsOf('web').running).toBe(4);
    await poll(done, LEAVES_MS).toEqual(['Remove', 'Empty', 'Buy']);
    saw(`decided ${since(from)} s after: Remove, because ${(await decisions())[0]?.why}`);
    await poll(() => bought.names, LEAVES_MS).toEqual([]);
    watching.abort();
    await watch;
    saw(`it is gone ${since(from)} s after; never fewer than ${least} replicas ran`);
    expect(least).toBeGreaterThanOrEqual(4);
    expect(await client().getOrUndefined(CLUSTERS, member)).toBeUndefined();
    expect(await client().getOrUndefined(NAMESPACES, `karmada-es-${member}`)).toBeUndefined();
    const secrets = (await client().list(SECRETS)).items.map(({ metadata }) => metadata.name);
    expect(secrets.filter((one) => one.includes(name))).toEqual([]);
  });

  it('settle: all of the work runs, and nothing is bought for it again', async () => {
    const said = async () => (await bindingOf(client(), 'web'))?.spec.clusters;
    await poll(async () => (await policy())?.status?.clusterCount).toBe(0);
    expect(await said()).toEqual([{ name: 'shop--demo', replicas: 4 }]);
    expect(own.podsOf('web')).toEqual({ running: 4, pending: 0 });
    expect((await policy())?.status?.demand).toEqual([]);
    expect(await done()).toEqual(['Remove', 'Empty', 'Buy']);
  });
});
