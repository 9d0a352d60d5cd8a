import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../operator/api/hub.ts';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import { DEPLOYMENTS, NAMESPACES, NODES, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { addNode, HubTestbed } from '../kit/hubs/hub-testbed.ts';
import {
  BY_WEIGHT,
  bindingOf,
  DUPLICATED,
  OVERFLOWING,
  placed as placedIn,
  propagate as propagateTo,
  scheduled as scheduledIn,
  settle,
} from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealKarmada } from '../kit/hubs/real-karmada.ts';
import { Replicas } from '../kit/hubs/replicas.ts';

const PATIENCE_MS = 120_000;
const IDLE_MS = 12_000;
/** What the scheduler has, after a cluster has grown, to place work that waits for it. */
const PLACED_MS = 10_000;
/** What a join may add to the making of a cluster. */
const JOINED_MS = 5_000;
const WEB_REPLICAS = 4;

/** How members are reached, and what is there because of that. */
export interface SyncModeUnderTest {
  readonly name: string;
  readonly spec: HubSpec;
  /** Begins what a kubelet of a member that joins would run. @returns ends it */
  readonly runsIn?: (karmada: RealKarmada, name: string, member: TestApiserver) => Promise<() => void>;
  /** What is there of shop/small, beside its Cluster, when it has joined. */
  readonly hasJoined: (hub: TestApiserver, member: TestApiserver) => Promise<void>;
  /** That nothing is there of shop/small any more. */
  readonly hasLeft: (hub: TestApiserver) => Promise<void>;
}

/** What the real Karmada does with clusters that come, grow and go, and with the work on them. Each test goes on where the one before ended. */
export function placesWork(mode: SyncModeUnderTest): void {
  describe.skipIf(!programs)(`the real Karmada, ${mode.name}`, () => {
    let karmada: RealKarmada;
    let testbed: HubTestbed;
    let small: TestApiserver;
    let third: TestApiserver;
    const replicas = new Replicas('web');
    const ends = new Map<string, () => void>();
    const began = Date.now();
    const saw = (what: string) => console.log(`${mode.name} ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);
    beforeAll(async () => {
      karmada = await RealKarmada.start(programs!);
      saw('Karmada runs');
      testbed = await HubTestbed.start(mode.spec, [], 'admin', karmada.apiserver);
      small = await testbed.addMember('small', '2', '2Gi');
      third = await testbed.addMember('third', '8', '16Gi');
      for (const [name, member] of Object.entries({ demo: testbed.member, small, third })) {
        await karmada.controllersOf(member, name);
        await replicas.runIn(name, member);
      }
      await testbed.startOperator();
      saw('three clusters and the operator run');
    });
    afterAll(async () => {
      await karmada?.stop();
      await replicas.stop();
      await testbed?.stop();
    });

    const cluster = async (name: string) => (await testbed.garden.client.get(CLUSTERS, name)) as KarmadaCluster;
    const offered = async (name: string) => (await cluster(name)).metadata.labels?.['multi-cluster.demo.io/offered'];
    const propagate = (name: string, count: number, cpu: string, placement: object) =>
      propagateTo(testbed.garden.client, { name, replicas: count, cpu }, placement);
    const placed = (name: string) => placedIn(testbed.garden.client, name);
    const scheduled = (name: string) => scheduledIn(testbed.garden.client, name);
    const unschedulable = expect.objectContaining({ type: 'Scheduled', status: 'False', reason: 'Unschedulable' });
    const hasNoRoom = async (name: string) => {
      await expect.poll(() => scheduled(name), { timeout: PATIENCE_MS }).toContainEqual(unschedulable);
      saw(`${name} finds no room: ${JSON.stringify(await scheduled(name))}`);
    };
    const deployed = ({ client }: TestApiserver, name: string) => client.getOrUndefined(DEPLOYMENTS, name, 'shop');
    const forget = (name: string) => testbed.garden.client.delete(DEPLOYMENTS, name, 'shop');
    const make = async (name: string, member: TestApiserver, labels: Record<string, string> = {}) => {
      await testbed.makeCluster(labels, name);
      testbed.open([], name);
      const end = await mode.runsIn?.(karmada, name, member);
      if (end) ends.set(name, end);
    };
    const joined = (name: string) =>
      testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
    /** Until what is polled is so. @returns milliseconds */
    const took = async (from: number, poll: () => Promise<unknown>, is: unknown) => {
      await expect.poll(poll, { timeout: PATIENCE_MS, interval: 50 }).toEqual(is);
      return Date.now() - from;
    };

    it('joins two clusters, and opens them when it counts their nodes', async () => {
      const made = Date.now();
      await testbed.makeHub();
      await make('demo', testbed.member, { tier: 'own' });
      await make('small', small, { tier: 'burst' });
      for (const name of ['demo', 'small']) await joined(name);
      saw(`both have joined ${Date.now() - made} ms after they were made`);
      const { spec, status } = await cluster('shop--small');
      saw(JSON.stringify({ taints: spec?.taints, summary: status?.resourceSummary }));
      expect(spec).toMatchObject({ syncMode: mode.spec.karmada?.syncMode ?? 'Push' });
      expect(spec?.taints ?? []).toEqual([]);
      expect(await offered('shop--small')).toBe('cpu-2.memory-2Gi.grades-9');
      await mode.hasJoined(testbed.garden, small);
    });

    it('divides work by free capacity, also onto nodes outside of its own grades', async () => {
      const from = Date.now();
      await propagate('web', WEB_REPLICAS, '250m', { replicaScheduling: BY_WEIGHT });
      const both = { 'shop--demo': expect.any(Number), 'shop--small': expect.any(Number) };
      await took(from, () => placed('web'), both);
      const ms = await took(from, async () => replicas.running, WEB_REPLICAS);
      saw(`${WEB_REPLICAS} replicas by dynamic weight: ${JSON.stringify(await placed('web'))}; all run after ${ms} ms`);
      for (const member of [testbed.member, small]) expect(await deployed(member, 'web')).toBeDefined();
    });

    it('duplicates work to both', async () => {
      await propagate('agent', 2, '100m', { replicaScheduling: DUPLICATED });
      await took(Date.now(), () => placed('agent'), { 'shop--demo': 2, 'shop--small': 2 });
      for (const member of [testbed.member, small])
        await expect
          .poll(() => deployed(member, 'agent'), { timeout: PATIENCE_MS })
          .toMatchObject({ spec: { replicas: 2 } });
      saw(`2 replicas, duplicated: ${JSON.stringify(await placed('agent'))}`);
    });

    it('fills a third cluster with unplaced work as soon as it has joined', async () => {
      await propagate('big', 6, '1500m', { replicaScheduling: BY_WEIGHT });
      await hasNoRoom('big');
      await testbed.quiet();
      const { length } = testbed.line.writes;
      const made = Date.now();
      await make('third', third);
      await joined('third');
      const ms = Date.now() - made;
      const full = expect.objectContaining({ 'shop--third': expect.any(Number) });
      const filled = await took(made, () => placed('big'), full);
      saw(
        `the third has joined ${ms} ms after it was usable, and is filled after ${filled} ms: ${JSON.stringify(await placed('big'))}`,
      );
      await expect.poll(() => deployed(third, 'big'), { timeout: PATIENCE_MS }).toBeDefined();
      await took(made, () => placed('agent'), { 'shop--demo': 2, 'shop--small': 2, 'shop--third': 2 });
      await testbed.quiet();
      const writes = testbed.line.writes.slice(length).filter((write) => !write.includes('/hubs/'));
      saw(`writes for its join: ${writes.length} ${JSON.stringify(writes)}`);
      expect(ms).toBeLessThan(JOINED_MS);
      expect(filled).toBeLessThan(PLACED_MS);
      await forget('big');
    });

    it('places unplaced work as soon as a cluster has grown', async () => {
      await propagate('bigger', 12, '1500m', { replicaScheduling: BY_WEIGHT });
      await hasNoRoom('bigger');
      const grown = Date.now();
      await addNode(small, 'two', '16', '32Gi');
      const onSmall = expect.objectContaining({ 'shop--small': expect.any(Number) });
      const ms = await took(grown, () => placed('bigger'), onSmall);
      saw(`placed ${ms} ms after the node was there: ${JSON.stringify(await placed('bigger'))}`);
      expect(ms).toBeLessThan(PLACED_MS);
      await forget('bigger');
    });

    it('places overflow onto a cluster as soon as that has grown', async () => {
      await propagate('spill', 6, '3500m', OVERFLOWING);
      await hasNoRoom('spill');
      const grown = Date.now();
      await addNode(small, 'three', '16', '32Gi');
      const ms = await took(grown, () => placed('spill'), { 'shop--demo': 1, 'shop--small': 5 });
      saw(`overflowed ${ms} ms after the node was there: ${JSON.stringify(await placed('spill'))}`);
      expect(ms).toBeLessThan(PLACED_MS);
      await forget('spill');
    });

    it('gets no writes without changes, though it reports every two seconds', async () => {
      await testbed.quiet();
      const { length } = testbed.line.writes;
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      const writes = testbed.line.writes.slice(length);
      saw(`writes in ${IDLE_MS} ms: ${JSON.stringify(writes)}`);
      expect(writes).toEqual([]);
    });

    it('reschedules work that it overlooks: placed before, unplaced since, and unchanged', async () => {
      const { client } = testbed.garden;
      for (const node of ['two', 'three']) await small.client.delete(NODES, node);
      await took(Date.now(), () => offered('shop--small'), 'cpu-2.memory-2Gi.grades-9');
      await propagate('lone', 1, '3', OVERFLOWING);
      await took(Date.now(), () => placed('lone'), { 'shop--demo': 1 });
      const { uid } = (await cluster('shop--demo')).metadata;
      const deleted = Date.now();
      await client.delete(CLUSTERS, 'shop--demo');
      await hasNoRoom('lone');
      await settle(client, 'lone');
      const grown = Date.now();
      await addNode(small, 'spare', '4', '8Gi');
      const ms = await took(grown, () => placed('lone'), { 'shop--small': 1 });
      const at = (await bindingOf(client, 'lone'))?.spec.rescheduleTriggeredAt;
      saw(`homeless work is placed ${ms} ms after the node was there; rescheduleTriggeredAt ${at}`);
      expect(ms).toBeLessThan(PLACED_MS);
      expect(at).toBeDefined();
      await forget('lone');
      // What somebody deleted comes back, and takes work as before.
      const isBack = async () => {
        const { metadata, spec } = await cluster('shop--demo');
        return metadata.uid !== uid && (spec?.taints ?? []).length === 0 && (await offered('shop--demo')) !== undefined;
      };
      await took(deleted, () => isBack().catch(() => false), true);
      await propagate('again', 2, '100m', { replicaScheduling: DUPLICATED });
      const back = await took(deleted, async () => (await deployed(testbed.member, 'again'))?.spec?.replicas, 2);
      saw(`a Cluster that somebody deleted is back, and work is in it, ${back} ms after that`);
      await forget('again');
    });

    it('drains a deleted cluster while every replica lives on, and then keeps nothing of it', async () => {
      const { client } = testbed.garden;
      await took(Date.now(), async () => replicas.running, WEB_REPLICAS);
      expect(await placed('web')).toHaveProperty('shop--small');
      const fewest = replicas.watch();
      const { length } = testbed.line.writes;
      const from = Date.now();
      await client.delete(WORKERCLUSTERS, 'small', 'shop');
      const isMoved = async () => !('shop--small' in (await placed('web')));
      const moved = await took(from, isMoved, true);
      saw(`moved after ${moved} ms; ${testbed.membership('test', 'small')?.status?.waiting}`);
      expect((await cluster('shop--small')).metadata.deletionTimestamp).toBeUndefined();
      await testbed.until('small to have left', () => !testbed.membership('test', 'small'), PATIENCE_MS * 2);
      const writes = testbed.line.writes.slice(length).filter((write) => !write.includes('/hubs/'));
      saw(`left after ${Date.now() - from} ms, with ${writes.length} writes: ${JSON.stringify(writes)}`);
      expect(await deployed(small, 'web')).toBeUndefined();
      expect(await client.getOrUndefined(CLUSTERS, 'shop--small')).toBeUndefined();
      expect(await client.getOrUndefined(NAMESPACES, 'karmada-es-shop--small')).toBeUndefined();
      await mode.hasLeft(testbed.garden);
      ends.get('small')?.();
      await small.kill();
      expect(fewest()).toBe(WEB_REPLICAS);
      saw(
        `it is destroyed, and there were never less than ${fewest()} replicas: ${JSON.stringify(await placed('web'))}`,
      );
    });

    it('releases a dead cluster by force, and keeps nothing of it', async () => {
      const { client } = testbed.garden;
      await testbed.makeHub('test', { drain: { timeout: '5s', force: true } });
      ends.get('demo')?.();
      await testbed.member.kill();
      await testbed.silence();
      const from = Date.now();
      await client.delete(WORKERCLUSTERS, 'demo', 'shop');
      await testbed.until('demo to have left', () => !testbed.membership(), PATIENCE_MS);
      saw(`left by force after ${Date.now() - from} ms`);
      expect(await client.getOrUndefined(CLUSTERS, 'shop--demo')).toBeUndefined();
      await took(from, () => client.getOrUndefined(NAMESPACES, 'karmada-es-shop--demo'), undefined);
      const ms = await took(from, () => placed('web'), { 'shop--third': WEB_REPLICAS });
      saw(`its work is on the third ${ms} ms after it was deleted`);
    });
  });
}
