import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { ADMISSION_CONTROLLER } from '../../operator/api/group.ts';
import { ADMISSIONCHECKS, CLUSTERQUEUES } from '../../operator/hubs/kueue-kinds.ts';
import { JOBS, type KubeObject } from '../../operator/kube/resources.ts';
import type { BoughtClusters } from '../kit/hubs/bought-clusters.ts';
import type { BurstOnHub } from '../kit/hubs/burst-on-hub.ts';
import type { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import { job, workloadOf } from '../kit/hubs/kueue-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { burstOnKueue } from '../kit/hubs/real-kueue-burst.ts';
import type { SchedulingMember } from '../kit/hubs/scheduling-member.ts';

const PATIENCE_MS = 120_000;

/** A ClusterQueue of the real Kueue whose jobs pass an AdmissionCheck of ours. Each test goes on where the one before ended. */
describe.skipIf(!programs)("the real Kueue and Coppice's AdmissionCheck", () => {
  let burst: BurstOnHub;
  let testbed: HubTestbed;
  let own: SchedulingMember;
  let bought: BoughtClusters;
  const began = Date.now();
  const saw = (what: string) => console.log(`admission ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    burst = await burstOnKueue(programs!, ['first'], 'chart');
    ({ testbed, own, bought } = burst);
    saw('Kueue, the operator and a private cluster of 4 CPUs run');
  });
  afterAll(() => burst?.stop());

  const client = () => testbed.garden.client;
  const submit = (name: string, cpu: string, count = 1, pods: object = {}) => {
    const { spec, ...made } = job(name, cpu, count) as KubeObject & { spec: { template: { spec: object } } };
    Object.assign(spec.template.spec, pods);
    return client().create({ ...made, spec }, { resource: JOBS });
  };
  const status = async (name: string) => (await workloadOf(client(), name))?.status;
  const check = async (name: string) => (await status(name))?.admissionChecks?.find((one) => one.name === 'capacity');
  const condition = async (name: string, type: string) =>
    findCondition((await status(name))?.conditions as never, type);
  const active = async () =>
    findCondition((await client().get(ADMISSIONCHECKS, 'capacity')).status?.conditions, 'Active');
  const took = async (from: number, poll: () => unknown, is: unknown, timeout = PATIENCE_MS) => {
    await expect.poll(poll, { timeout, interval: 50 }).toEqual(is);
    return ((Date.now() - from) / 1000).toFixed(1);
  };

  it('are not active while no policy buys anything, and Kueue reports it', async () => {
    await client().create(
      {
        apiVersion: 'kueue.x-k8s.io/v1beta2',
        kind: 'AdmissionCheck',
        metadata: { name: 'capacity' },
        spec: { controllerName: ADMISSION_CONTROLLER },
      },
      { resource: ADMISSIONCHECKS },
    );
    const both = { admissionChecksStrategy: { admissionChecks: [{ name: 'test' }, { name: 'capacity' }] } };
    await client().mergePatch(CLUSTERQUEUES, 'all', undefined, { spec: both });
    await took(Date.now(), async () => (await active())?.reason, 'NoPolicy');
    saw(`AdmissionCheck capacity: ${JSON.stringify(await active())}`);
    await burst.makePolicy();
    saw(`it is Active ${await took(Date.now(), async () => (await active())?.status, 'True')} s after the policy came`);
  });

  it('admit a job for which there is room, and Kueue sends it to a cluster', async () => {
    const from = Date.now();
    await submit('base', '1', 3);
    const state = async () => (await check('base'))?.state;
    saw(`base, 3 pods of one CPU, is Ready ${await took(from, state, 'Ready')} s after it came`);
    saw(JSON.stringify(await check('base')));
    const runs = await took(from, () => own.podsOf('base'), { running: 3, pending: 0 });
    saw(`its pods run in demo ${runs} s after it came; nothing is bought`);
    expect(bought.names).toEqual([]);
  });

  it('hold a job while a cluster is bought for it, report that, and then admit it', async () => {
    const from = Date.now();
    await submit('peak', '1', 3);
    await expect.poll(() => bought.names, { timeout: PATIENCE_MS, interval: 50 }).toHaveLength(1);
    const [name] = bought.names as [string];
    saw(`WorkerCluster ${name} is made ${((bought.madeAt.get(name)! - from) / 1000).toFixed(1)} s after peak came`);
    const states: string[] = [];
    await expect
      .poll(
        async () => {
          const { state = '', message = '' } = (await check('peak')) ?? {};
          if (states.at(-1) !== `${state}: ${message}`) states.push(`${state}: ${message}`);
          return state;
        },
        { timeout: PATIENCE_MS, interval: 20 },
      )
      .toBe('Ready');
    saw(`it is Ready ${((Date.now() - from) / 1000).toFixed(1)} s after it came:\n    ${states.join('\n    ')}`);
    expect(
      states.some((one) => one.startsWith(`Pending: BurstPolicy shop/peak: WorkerCluster ${name} was ordered`)),
    ).toBe(true);
    const member = testbed.membership('test', name)!.status!.memberName!;
    await took(from, async () => (await status('peak'))?.clusterName, member);
    saw(`its 3 pods run ${await took(from, () => bought.member(name)?.podsOf('peak').running, 3)} s after it came`);
  });

  it('release the quota of a job for which nothing can be bought, and check the job again', async () => {
    // What runs has six of them.
    const resources = [
      { name: 'cpu', nominalQuota: '9' },
      { name: 'memory', nominalQuota: '100Gi' },
    ];
    const resourceGroups = [{ coveredResources: ['cpu', 'memory'], flavors: [{ name: 'default', resources }] }];
    await client().mergePatch(CLUSTERQUEUES, 'all', undefined, {
      spec: { resourceGroups, queueingStrategy: 'StrictFIFO' },
    });
    const from = Date.now();
    await submit('more', '3');
    const hasQuota = (name: string) => async () => (await condition(name, 'QuotaReserved'))?.status;
    await took(from, hasQuota('more'), 'True');
    await submit('small', '500m');
    await took(from, hasQuota('small'), 'False');
    const tries = async () => (await check('more'))?.retryCount;
    saw(
      `more, one pod of 3 CPUs, has all that is left of the quota; told to retry ${await took(from, tries, 1)} s after`,
    );
    saw(`Kueue: ${(await condition('more', 'Evicted'))?.message}`);
    const anywhere = () => own.podsOf('small').running + bought.member(bought.names[0]!)!.podsOf('small').running;
    const small = await took(from, anywhere, 1);
    saw(`small, one pod of 500m that had no quota, runs ${small} s after more came`);
    expect((await workloadOf(client(), 'more'))?.spec).toMatchObject({ active: true });
    await own.finish('base');
    const again = Date.now();
    await took(again, () => own.podsOf('more').running, 1);
    saw(`base has ended; more runs in demo ${((Date.now() - again) / 1000).toFixed(1)} s after that`);
  });

  it('never admit a job with enough CPU that fits nowhere, and report why', async () => {
    const resources = { requests: { cpu: '100m', memory: '64Mi' } };
    const served = [{ name: 'main', image: 'job', resources, ports: [{ containerPort: 80, hostPort: 80 }] }];
    const jobs: readonly [string, number, object, RegExp][] = [
      // No cluster has nine nodes.
      ['ports', 9, { containers: served }, /^Retry: BurstPolicy shop\/peak: nothing is bought/m],
      ['odd', 1, { schedulerName: 'other' }, /^Retry: nothing is bought for it: it names a scheduler other than/m],
    ];
    for (const [name, count, pods, words] of jobs) {
      const from = Date.now();
      await submit(name, '100m', count, pods);
      const said: string[] = [];
      await expect
        .poll(
          async () => {
            const { state = '', message = '' } = (await check(name)) ?? {};
            if (said.at(-1) !== `${state}: ${message}`) said.push(`${state}: ${message}`);
            return said.join('\n');
          },
          { timeout: PATIENCE_MS, interval: 20 },
        )
        .toMatch(words);
      saw(`${name} is told ${((Date.now() - from) / 1000).toFixed(1)} s after it came:\n    ${said.join('\n    ')}`);
      expect(said.filter((one) => one.startsWith('Ready'))).toEqual([]);
      expect((await status(name))?.clusterName).toBeUndefined();
      await client().delete(JOBS, name, 'shop', { propagationPolicy: 'Background' });
      await took(Date.now(), () => status(name), undefined);
    }
    expect(bought.names).toHaveLength(1);
  });

  it('cause no write without changes', async () => {
    await testbed.quiet();
    const { length } = testbed.line.writes;
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    expect(testbed.line.writes.slice(length).filter((one) => one.includes('kueue.x-k8s.io'))).toEqual([]);
  });
});
