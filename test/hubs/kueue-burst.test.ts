import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import { NO_CLUSTER } from '../../operator/hubs/kueue.ts';
import { CLUSTERQUEUES, MULTIKUEUECLUSTERS, MULTIKUEUECONFIGS } from '../../operator/hubs/kueue-kinds.ts';
import { BURSTPOLICIES, JOBS, SECRETS } from '../../operator/kube/resources.ts';
import type { BoughtClusters } from '../kit/hubs/bought-clusters.ts';
import type { BurstOnHub } from '../kit/hubs/burst-on-hub.ts';
import type { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import { job, jobIn, makePriorityClass, workloadOf } from '../kit/hubs/kueue-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { burstOnKueue } from '../kit/hubs/real-kueue-burst.ts';
import type { SchedulingMember } from '../kit/hubs/scheduling-member.ts';

const PATIENCE_MS = 120_000;

/**
 * Jobs that no cluster takes, on the real MultiKueue: a cluster is bought, gets them, and is given back. Each test goes on where the one
 * before ended.
 */
describe.skipIf(!programs)('the real Kueue and a BurstPolicy', () => {
  let burst: BurstOnHub;
  let testbed: HubTestbed;
  let own: SchedulingMember;
  let bought: BoughtClusters;
  const began = Date.now();
  const saw = (what: string) => console.log(`burst ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    burst = await burstOnKueue(programs!, ['first', 'second']);
    ({ testbed, own, bought } = burst);
    saw('Kueue, the operator and a private cluster of 4 CPUs run');
  });
  afterAll(() => burst?.stop());

  const client = () => testbed.garden.client;
  const submit = (name: string, cpu: string, count = 1, priorityClass?: string) =>
    client().create(job(name, cpu, count, priorityClass), { resource: JOBS });
  const policy = () => burst.policy();
  const decisions = async () => (await policy())?.status?.decisions ?? [];
  const took = async (from: number, poll: () => unknown, is: unknown, timeout = PATIENCE_MS) => {
    await expect.poll(poll, { timeout, interval: 50 }).toEqual(is);
    return ((Date.now() - from) / 1000).toFixed(1);
  };
  const status = async (name: string) => (await workloadOf(client(), name))?.status;

  it('buy nothing while the private cluster has room for all', async () => {
    await submit('base', '1', 3);
    await took(Date.now(), () => own.podsOf('base'), { running: 3, pending: 0 });
    await burst.makePolicy();
    const isMet = async () => findCondition((await policy())?.status?.conditions, 'DemandMet')?.reason;
    await took(Date.now(), isMet, 'NothingWaits');
    saw('base, a job of 3 pods of one CPU, runs in demo; nothing is bought');
    expect(bought.names).toEqual([]);
  });

  it("buy nothing for a job below the policy's priority", async () => {
    await makePriorityClass(client(), 'urgent', 1000);
    await client().mergePatch(BURSTPOLICIES, 'peak', 'shop', { spec: { minimumPriority: 100 } });
    await submit('low', '1', 3);
    const said = async () => (await policy())?.status?.demand?.map(({ source, state }) => `${source} ${state}`);
    await took(Date.now(), said, [expect.stringMatching(/^Workload shop\/job-low-.* LowPriority$/)]);
    const workload = await workloadOf(client(), 'low');
    saw(`low, 3 pods of one CPU, without a class: priority ${workload?.spec?.priority} by Kueue`);
    saw(`of low the policy says: ${(await policy())?.status?.demand?.[0]?.message}`);
    await client().delete(JOBS, 'low', 'shop', { propagationPolicy: 'Background' });
    await took(Date.now(), said, []);
    expect(bought.names).toEqual([]);
  });

  it('buy a cluster for a job of that priority without room, and Kueue sends it there', async () => {
    const from = Date.now();
    await submit('peak', '1', 3, 'urgent');
    await took(from, async () => (await status('peak'))?.nominatedClusterNames, ['shop--demo']);
    const { spec } = (await workloadOf(client(), 'peak'))!;
    saw(`the peak: job peak, 3 pods of one CPU, of class urgent: priority ${spec?.priority} by Kueue`);
    saw(JSON.stringify(await status('peak')));
    await expect.poll(() => bought.names, { timeout: PATIENCE_MS, interval: 50 }).toHaveLength(1);
    const [name] = bought.names as [string];
    saw(`WorkerCluster ${name} is made ${((bought.madeAt.get(name)! - from) / 1000).toFixed(1)} s after it came`);
    await took(from, async () => (await decisions())[0]?.action, 'Buy');
    const [{ why, hourly } = { why: '' }] = await decisions();
    saw(`decided: Buy, ${hourly} USD an hour, because ${why}`);
    await testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
    saw(`it has joined ${((Date.now() - bought.madeAt.get(name)!) / 1000).toFixed(1)} s after it was made`);
    const member = testbed.membership('test', name)!.status!.memberName!;
    saw(
      `Kueue has sent the job there ${await took(from, async () => (await status('peak'))?.clusterName, member)} s after it came`,
    );
    const running = () => bought.member(name)?.podsOf('peak').running;
    saw(`its 3 pods run ${await took(from, running, 3)} s after it came`);
    await took(from, async () => (await policy())?.status?.demand ?? [], []);
  });

  const givesBack = async (name: string, ofJob: string) => {
    const member = testbed.membership('test', name)!.status!.memberName!;
    const from = Date.now();
    await bought.member(name)!.finish(ofJob);
    await took(from, () => isComplete(ofJob), true);
    const decided = await took(from, async () => (await decisions())[0]?.action, 'Remove');
    saw(`decided ${decided} s after it ended: Remove, because ${(await decisions())[0]?.why}`);
    await expect.poll(() => bought.names, { timeout: PATIENCE_MS, interval: 100 }).toEqual([]);
    saw(`it is gone ${((Date.now() - from) / 1000).toFixed(1)} s after the job`);
    expect(await client().getOrUndefined(MULTIKUEUECLUSTERS, member)).toBeUndefined();
    const secrets = (await client().list(SECRETS)).items.map(({ metadata }) => metadata.name);
    expect(secrets.filter((one) => one.includes(name))).toEqual([]);
  };
  const isComplete = async (name: string) => {
    const { conditions = [] } = ((await jobIn(client(), name))?.status ?? {}) as { conditions?: any[] };
    return conditions.some(({ type, status: is }) => type === 'Complete' && is === 'True');
  };
  const listed = async () => ((await client().get(MULTIKUEUECONFIGS, 'test')).spec as { clusters: string[] }).clusters;

  it('return the cluster when the job has ended', async () => {
    const [name] = bought.names as [string];
    await givesBack(name, 'peak');
    expect(await listed()).toEqual(['shop--demo']);
    expect(own.podsOf('base')).toEqual({ running: 3, pending: 0 });
  });

  it('buy the first cluster of an empty fleet for its oldest job', async () => {
    await own.finish('base');
    await took(Date.now(), () => isComplete('base'), true);
    const clusterSelector = { matchLabels: { [LABELS.burst]: 'true' } };
    await testbed.makeHub('test', { clusterSelector });
    await testbed.until('the private cluster to leave', () => testbed.state() === undefined, PATIENCE_MS);
    await took(Date.now(), listed, [NO_CLUSTER]);
    const condition = async () =>
      findCondition((await client().get(CLUSTERQUEUES, 'all')).status?.conditions, 'Active');
    await took(Date.now(), async () => (await condition())?.status, 'False');
    saw(
      `the private cluster has left. ClusterQueue all: ${(await condition())?.reason}: ${(await condition())?.message}`,
    );
    const from = Date.now();
    await client().mergePatch(BURSTPOLICIES, 'peak', 'shop', { spec: { minimumPriority: null } });
    await submit('first', '1', 3);
    await expect.poll(() => bought.names, { timeout: PATIENCE_MS, interval: 50 }).toHaveLength(1);
    saw(`a job of 3 pods of one CPU comes, and has no quota: ${JSON.stringify(await status('first'))}`);
    const [name] = bought.names as [string];
    saw(`WorkerCluster ${name} is made ${((bought.madeAt.get(name)! - from) / 1000).toFixed(1)} s after it came`);
    await took(from, async () => (await decisions())[0]?.action, 'Buy');
    saw(`decided: Buy, because ${(await decisions())[0]?.why}`);
    await testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
    saw(`its 3 pods run ${await took(from, () => bought.member(name)?.podsOf('first').running, 3)} s after it came`);
    await givesBack(name, 'first');
    expect(await listed()).toEqual([NO_CLUSTER]);
  });
});
