import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import { BURSTPOLICIES, DEPLOYMENTS, NAMESPACES, NODES, SECRETS } from '../../operator/kube/resources.ts';
import type { BoughtClusters } from '../kit/hubs/bought-clusters.ts';
import { makePeakPolicy } from '../kit/hubs/burst-beside.ts';
import type { BurstOnHub } from '../kit/hubs/burst-on-hub.ts';
import type { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import {
  BY_WEIGHT,
  bindingOf,
  DUPLICATED,
  IN_TURN,
  ON_OWN,
  OVERFLOWING,
  placed as placedIn,
  propagate as propagateTo,
  SPREAD,
  scheduled as scheduledIn,
  settle,
} from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { burstOnKarmada } from '../kit/hubs/real-karmada-burst.ts';
import type { SchedulingMember } from '../kit/hubs/scheduling-member.ts';

const PATIENCE_MS = 120_000;
/** Karmada looks at a cluster that leaves each ten seconds, several times. */
const LEAVES_MS = 240_000;

/**
 * A peak on the real Karmada, from a full private cluster to one that is bought, filled, emptied and given back. Each test goes on where
 * the one before ended.
 */
describe.skipIf(!programs)('the real Karmada and a BurstPolicy', () => {
  let burst: BurstOnHub;
  let testbed: HubTestbed;
  let own: SchedulingMember;
  let bought: BoughtClusters;
  const began = Date.now();
  const saw = (what: string) => console.log(`burst ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    burst = await burstOnKarmada(programs!, ['first', 'second', 'third']);
    ({ testbed, own, bought } = burst);
    saw('Karmada, the operator and a private cluster of 4 CPUs run');
  });
  afterAll(() => burst?.stop());

  const client = () => testbed.garden.client;
  const propagate = (name: string, replicas: number, cpu: string, placement: object) =>
    propagateTo(client(), { name, replicas, cpu }, placement);
  const scale = (name: string, replicas: number) =>
    client().mergePatch(DEPLOYMENTS, name, 'shop', { spec: { replicas } });
  const placed = (name: string) => placedIn(client(), name);
  const policy = () => burst.policy();
  const decisions = async () => (await policy())?.status?.decisions ?? [];
  /** Its name in Karmada. */
  const memberOf = (name: string) => testbed.membership('test', name)?.status?.memberName ?? `shop--${name}`;
  const refusal = async (name: string) => {
    const found = await scheduledIn(client(), name);
    return found.find(({ status }) => status === 'False')!;
  };
  /** What Karmada counts as taken on the private cluster: it looks every two seconds, and places by what it saw last. */
  const counts = (cpu: string) => async () =>
    ((await client().get(CLUSTERS, 'shop--demo')) as KarmadaCluster).status?.resourceSummary?.allocated?.cpu === cpu;
  /** Until what is polled is so. @returns seconds */
  const took = async (from: number, poll: () => unknown, is: unknown, timeout = PATIENCE_MS) => {
    await expect.poll(poll, { timeout, interval: 50 }).toEqual(is);
    return ((Date.now() - from) / 1000).toFixed(1);
  };
  const running = (name: string, cluster?: string) =>
    own.podsOf(name).running + (cluster ? (bought.member(cluster)?.podsOf(name).running ?? 0) : 0);
  const buys = async (from: number) => {
    await expect.poll(() => bought.names, { timeout: PATIENCE_MS, interval: 50 }).toHaveLength(1);
    const [name] = bought.names as [string];
    saw(`WorkerCluster ${name} is made ${((bought.madeAt.get(name)! - from) / 1000).toFixed(1)} s after that`);
    await took(from, async () => (await decisions())[0]?.action, 'Buy');
    const [{ why, hourly } = { why: '' }] = await decisions();
    saw(`decided: Buy, ${hourly} USD an hour, because ${why}`);
    await testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
    const ms = Date.now() - bought.madeAt.get(name)!;
    saw(`${memberOf(name)} has joined Karmada ${(ms / 1000).toFixed(1)} s after it was made`);
    return name;
  };
  const givesBack = async (name: string, from: number) => {
    const member = memberOf(name);
    const decided = await took(from, async () => (await decisions())[0]?.action, 'Remove');
    saw(`decided ${decided} s later: Remove, because ${(await decisions())[0]?.why}`);
    await expect.poll(() => bought.names, { timeout: LEAVES_MS, interval: 100 }).toEqual([]);
    saw(`it is gone ${((Date.now() - from) / 1000).toFixed(1)} s after the load`);
    expect(await client().getOrUndefined(CLUSTERS, member)).toBeUndefined();
    expect(await client().getOrUndefined(NAMESPACES, `karmada-es-${member}`)).toBeUndefined();
    const secrets = (await client().list(SECRETS)).items.map(({ metadata }) => metadata.name);
    expect(secrets.filter((one) => one.includes(name))).toEqual([]);
  };

  it('buy nothing while the private cluster has room for all', async () => {
    await propagate('web', 6, '500m', { replicaScheduling: BY_WEIGHT });
    await took(Date.now(), () => own.podsOf('web'), { running: 6, pending: 0 });
    await took(Date.now(), counts('3'), true);
    await makePeakPolicy(client(), [
      {
        name: 'cloud',
        template: {
          metadata: { labels: { tier: 'burst' } },
          spec: { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5 }] },
        },
      },
      {
        name: 'gpu',
        template: { spec: { cloudProvider: 'cloud', pools: [{ name: 'a', machineType: 'gpu', maximum: 5 }] } },
      },
    ]);
    const isMet = async () => findCondition((await policy())?.status?.conditions, 'DemandMet')?.reason;
    await took(Date.now(), isMet, 'NothingWaits');
    saw(
      `web, 6 replicas of 500m by dynamic weight: ${JSON.stringify(await placed('web'))}, all running; nothing is bought`,
    );
    expect(bought.names).toEqual([]);
  });

  it('buy a cluster for a division that does not fit, and Karmada fills it', async () => {
    const from = Date.now();
    await scale('web', 14);
    await expect
      .poll(() => refusal('web'), { timeout: PATIENCE_MS, interval: 50 })
      .toMatchObject({ reason: 'Unschedulable' });
    saw(`the peak: web is scaled to 14. Karmada: ${(await refusal('web')).message}`);
    const name = await buys(from);
    const filled = { 'shop--demo': expect.any(Number), [memberOf(name)]: expect.any(Number) };
    const ms = await took(from, () => placed('web'), filled);
    saw(`placed ${ms} s after the peak: ${JSON.stringify(await placed('web'))}`);
    saw(`all 14 run ${await took(from, () => running('web', name), 14)} s after the peak`);
  });

  it('keep the cluster while it has work, and return it afterwards', async () => {
    const [name] = bought.names as [string];
    await scale('web', 6);
    await took(Date.now(), () => running('web', name), 6);
    const left = await placed('web');
    saw(
      `web is scaled to 6: ${JSON.stringify(left)}: Karmada takes from both in proportion, so the cluster has work, and stays`,
    );
    expect(left).toHaveProperty(memberOf(name));
    const from = Date.now();
    await client().delete(DEPLOYMENTS, 'web', 'shop');
    await givesBack(name, from);
  });

  it('buy nothing for duplicated work, which never waits for room', async () => {
    await propagate('copy', 3, '1500m', { replicaScheduling: DUPLICATED, ...ON_OWN });
    await took(Date.now(), () => own.podsOf('copy'), { running: 2, pending: 1 });
    await took(Date.now(), counts('3'), true);
    saw(
      `copy, 3 replicas of 1500m, Duplicated: ${JSON.stringify(await placed('copy'))}, of which one finds no node; Karmada counts it as placed`,
    );
    await propagate('spread', 1, '100m', { replicaScheduling: DUPLICATED, ...ON_OWN, ...SPREAD });
    await expect.poll(() => refusal('spread'), { timeout: PATIENCE_MS }).toMatchObject({ reason: 'SchedulerError' });
    saw(`spread, Duplicated onto two clusters at least. Karmada: ${(await refusal('spread')).message}`);
  });

  it('buy nothing for GPUs, which Karmada does not see with grades of CPU and memory', async () => {
    const gpus = { 'nvidia.com/gpu': '2' };
    const status = { allocatable: gpus, capacity: gpus };
    await testbed.member.client.mergePatch(NODES, 'one', undefined, { status }, { subresource: 'status' });
    const summary = async () =>
      ((await client().get(CLUSTERS, 'shop--demo')) as KarmadaCluster).status?.resourceSummary;
    await took(Date.now(), async () => (await summary())?.allocatable?.['nvidia.com/gpu'], '2');
    await propagateTo(client(), { name: 'gpu', replicas: 1, cpu: '100m', gpu: '1' }, { replicaScheduling: BY_WEIGHT });
    await expect.poll(() => refusal('gpu'), { timeout: PATIENCE_MS }).toMatchObject({ reason: 'Unschedulable' });
    saw(`gpu, 1 replica of 100m and a GPU, of which 2 are free. Karmada: ${(await refusal('gpu')).message}`);
    const said = async () => (await policy())?.status?.demand?.map(({ source, state }) => `${source} ${state}`);
    await took(Date.now(), said, ['ResourceBinding shop/gpu-deployment Refused']);
    saw(`of gpu the policy says: ${(await policy())?.status?.demand?.[0]?.message}`);
    await client().delete(DEPLOYMENTS, 'gpu', 'shop');
    await took(Date.now(), said, []);
  });

  it('buy nothing for work whose nodeSelector no purchasable node matches', async () => {
    const picky = { name: 'picky', replicas: 2, cpu: '1500m', nodeSelector: { disk: 'ssd' } };
    await propagateTo(client(), picky, { replicaScheduling: BY_WEIGHT });
    await expect.poll(() => refusal('picky'), { timeout: PATIENCE_MS }).toMatchObject({ reason: 'Unschedulable' });
    saw(`picky, 2 of 1500m on nodes with disk=ssd. Karmada: ${(await refusal('picky')).message}`);
    const said = async () => (await policy())?.status?.demand?.map(({ source, state }) => `${source} ${state}`);
    await took(Date.now(), said, ['ResourceBinding shop/picky-deployment Refused']);
    const [verdict] = (await policy())?.status?.demand ?? [];
    saw(`of picky the policy says: ${verdict?.message}`);
    expect(verdict?.message).toContain("cloud: node(s) didn't match Pod's node affinity/selector");
    await client().delete(DEPLOYMENTS, 'picky', 'shop');
    await took(Date.now(), said, []);
  });

  it('buy a cluster for overflowing work, and for work with a later affinity that matches', async () => {
    const from = Date.now();
    await propagate('spill', 4, '800m', OVERFLOWING);
    await propagate('turn', 2, '900m', { ...IN_TURN, replicaScheduling: BY_WEIGHT });
    for (const name of ['spill', 'turn'])
      await expect.poll(() => refusal(name), { timeout: PATIENCE_MS, interval: 50 }).toBeDefined();
    await settle(client(), 'spill');
    saw(`spill, 4 of 800m from the private cluster onto tier burst. Karmada: ${(await refusal('spill')).message}`);
    saw(`turn, 2 of 900m, on tier own or else on tier burst. Karmada: ${(await refusal('turn')).message}`);
    const name = await buys(from);
    const member = memberOf(name);
    const spilt = await took(from, () => placed('spill'), { 'shop--demo': 1, [member]: 3 });
    const turned = await took(from, () => placed('turn'), { [member]: 2 });
    for (const [app, ms] of Object.entries({ spill: spilt, turn: turned })) {
      const touched = (await bindingOf(client(), app))?.spec.rescheduleTriggeredAt;
      const whose = touched ? 'by our rescheduleTriggeredAt' : 'by itself';
      saw(`${app} is placed ${ms} s after it came, ${whose}: ${JSON.stringify(await placed(app))}`);
    }
    saw(`all run ${await took(from, () => running('spill', name) + running('turn', name), 6)} s after they came`);
    const waited = (await decisions()).flatMap(({ action, why }) => (action === 'Buy' ? [why] : []));
    // Neither of the two that are duplicated was among what it was bought for.
    expect(waited[0]).toMatch(/^6 replicas .* of .*spill-deployment, .*turn-deployment have no place/);
    await took(from, async () => (await policy())?.status?.demand, []);
    expect((await bindingOf(client(), 'spill'))?.spec.rescheduleTriggeredAt).toBeDefined();
    const said = findCondition((await policy())?.status?.conditions, 'DemandMet');
    saw(`spread and the rest of copy wait still; DemandMet=${said?.status}: ${said?.message}`);
  });

  it('return the cluster when the overflow has room again', async () => {
    const [name] = bought.names as [string];
    const from = Date.now();
    await client().delete(DEPLOYMENTS, 'turn', 'shop');
    await scale('spill', 1);
    const ms = await took(from, () => placed('spill'), { 'shop--demo': 1 });
    saw(`spill is scaled to 1, and back on the private cluster after ${ms} s`);
    await givesBack(name, from);
  });

  it("buy nothing for work below the policy's priority", async () => {
    const urgent = {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'urgent' },
      value: 1000,
    };
    await client().create(urgent);
    await client().mergePatch(BURSTPOLICIES, 'peak', 'shop', { spec: { minimumPriority: 100 } });
    await propagate('low', 1, '1900m', { replicaScheduling: BY_WEIGHT });
    await expect.poll(() => refusal('low'), { timeout: PATIENCE_MS }).toMatchObject({ reason: 'Unschedulable' });
    const said = async () => (await policy())?.status?.demand?.map(({ source, state }) => `${source} ${state}`);
    await took(Date.now(), said, ['ResourceBinding shop/low-deployment LowPriority']);
    saw(`of low, 1 replica of 1900m, the policy says: ${(await policy())?.status?.demand?.[0]?.message}`);
    await client().delete(DEPLOYMENTS, 'low', 'shop');
    await took(Date.now(), said, []);
    expect(bought.names).toEqual([]);
  });

  it('buy as many nodes as Karmada requires, which counts less of a node than is free', async () => {
    const from = Date.now();
    // Two of them fit beside what the system has of a node; Karmada counts seven eighths of it, in which there is room for one.
    // They go to nodes of a pool alone, such as the candidate has.
    const nodeSelector = { [LABELS.pool]: 'a' };
    const odd = { name: 'odd', replicas: 2, cpu: '1900m', nodeSelector, priorityClass: 'urgent' };
    await propagateTo(client(), odd, { replicaScheduling: BY_WEIGHT });
    await expect.poll(() => refusal('odd'), { timeout: PATIENCE_MS, interval: 50 }).toBeDefined();
    saw(`odd, 2 of 1900m by dynamic weight, of class urgent. Karmada: ${(await refusal('odd')).message}`);
    const { schedulePriority } = (await bindingOf(client(), 'odd'))!.spec;
    saw(`schedulePriority of its binding: ${JSON.stringify(schedulePriority)}`);
    const name = await buys(from);
    const placedAt = await took(from, () => placed('odd'), { [memberOf(name)]: 2 });
    saw(`placed ${placedAt} s after it came: ${JSON.stringify(await placed('odd'))}`);
    saw(`both run ${await took(from, () => running('odd', name), 2)} s after it came, on nodes of pool a`);
    await client().delete(DEPLOYMENTS, 'odd', 'shop');
  });

  it('return all clusters when the policy is deleted, and leave nothing', async () => {
    const { spend, decisions: all = [] } = (await policy())!.status!;
    const actions = all.map(({ action }) => action).filter((action) => action !== 'Refuse');
    expect(actions).toEqual(['Buy', 'Remove', 'Buy', 'Remove', 'Buy']);
    expect(Number(spend!.amount)).toBeGreaterThan(0);
    const from = Date.now();
    await client().delete(BURSTPOLICIES, 'peak', 'shop');
    await took(from, policy, undefined, LEAVES_MS);
    expect(bought.names).toEqual([]);
    const secrets = (await client().list(SECRETS, { namespace: 'kube-system' })).items;
    expect(secrets.filter(({ metadata }) => metadata.name.startsWith('burst-'))).toEqual([]);
    const left = (await client().list(CLUSTERS)).items.map(({ metadata }) => metadata.name);
    expect(left).toEqual(['shop--demo']);
    saw('the policy is deleted; of its clusters nothing is left in Karmada or in the garden');
  });
});
