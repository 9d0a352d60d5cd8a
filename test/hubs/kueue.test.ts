import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rfc3339 } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import { NO_CLUSTER, ORIGIN } from '../../operator/hubs/kueue.ts';
import {
  ADMISSIONCHECKS,
  CLUSTERQUEUES,
  LOCALQUEUES,
  MULTIKUEUECLUSTERS,
  MULTIKUEUECONFIGS,
  WORKLOADS,
} from '../../operator/hubs/kueue-kinds.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  decodeSecret,
  JOBS,
  type KubeObject,
  SECRETS,
  SERVICEACCOUNTS,
  type Secret,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { runControllers } from '../kit/hubs/controllers.ts';
import { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import { job, jobIn, makeQueues, namesIn, workloadOf } from '../kit/hubs/kueue-work.ts';
import { Processes } from '../kit/hubs/processes.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealKueue } from '../kit/hubs/real-kueue.ts';
import { SchedulingMember } from '../kit/hubs/scheduling-member.ts';

const PATIENCE_MS = 120_000;
const IDLE_MS = 12_000;
/** Far longer than Kueue takes to ask. */
const HOLDS_MS = 3_000;
const KUBECONFIG = 'shop--demo-kubeconfig';

/** The real MultiKueue, with Kueue in the hub and in each member. Each test goes on where the one before ended. */
describe.skipIf(!programs)('the real Kueue', () => {
  let kueue: RealKueue;
  let processes: Processes;
  let testbed: HubTestbed;
  let small: TestApiserver;
  const members: Record<string, SchedulingMember> = {};
  const began = Date.now();
  const saw = (what: string) => console.log(`kueue ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    kueue = await RealKueue.begin(programs!);
    processes = await Processes.begin('members');
    testbed = await HubTestbed.start({ type: 'Kueue' }, [], 'chart');
    small = await testbed.addMember('small', '2', '4Gi');
    await runControllers(processes, testbed.garden, 'hub', ['namespace', 'garbagecollector']);
    for (const [name, member] of Object.entries({ demo: testbed.member, small })) {
      members[name] = await SchedulingMember.start(processes, member, name);
      await members[name].addNode('one', name === 'demo' ? '4' : '2', '8Gi');
    }
    await kueue.runIn(testbed.garden, 'hub');
    for (const [name, member] of Object.entries({ demo: testbed.member, small })) await kueue.runIn(member, name);
    await makeQueues(testbed.garden.client, { cpu: '100', memory: '100Gi' }, ['test']);
    await makeQueues(testbed.member.client, { cpu: '4', memory: '8Gi' });
    await makeQueues(small.client, { cpu: '2', memory: '8Gi' });
    await testbed.startOperator();
    saw('Kueue runs in a hub and two clusters, and the operator');
  });
  afterAll(async () => {
    for (const member of Object.values(members)) await member.stop();
    await processes?.stop();
    await kueue?.stop();
    await testbed?.stop();
  });

  const client = () => testbed.garden.client;
  const inside = (name: string) => (name === 'demo' ? testbed.member : small).client;
  const submit = (name: string, cpu: string, count = 1) => client().create(job(name, cpu, count), { resource: JOBS });
  /** Until what is polled is so. @returns seconds */
  const took = async (from: number, poll: () => unknown, is: unknown, timeout = PATIENCE_MS) => {
    await expect.poll(poll, { timeout, interval: 50 }).toEqual(is);
    return ((Date.now() - from) / 1000).toFixed(1);
  };
  const listed = async () =>
    ((await client().getOrUndefined(MULTIKUEUECONFIGS, 'test'))?.spec as { clusters?: string[] } | undefined)?.clusters;
  const condition = (object: KubeObject | undefined, type: string) =>
    (object?.status as { conditions?: any[] } | undefined)?.conditions?.find((one) => one.type === type);
  const runsIn = async (name: string) => (await workloadOf(client(), name))?.status?.clusterName;
  const running = (name: string) => () =>
    Object.entries(members).flatMap(([at, member]) => Array(member.podsOf(name).running).fill(at));
  const isComplete = (name: string) => async () => condition(await jobIn(client(), name), 'Complete')?.status;
  /** What a hub has made in a cluster. */
  const sent = async (name: string) => {
    const options = { namespace: 'shop', labelSelector: ORIGIN };
    const lists = await Promise.all([JOBS, WORKLOADS].map((kind) => inside(name).list(kind, options)));
    return lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
  };
  /** What of ours is in a cluster. */
  const inMember = async (name: string) => {
    const kinds = [SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS, SECRETS];
    const lists = await Promise.all(kinds.map((kind) => inside(name).list(kind, { labelSelector: LABELS.membership })));
    return lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
  };
  const queueOf = async (name: string) =>
    (await inside(name).get(LOCALQUEUES, 'jobs', 'shop')) as KubeObject & { spec: object };
  const joins = (name: string) =>
    testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
  const writesSince = (length: number) =>
    testbed.line.writes.slice(length).filter((write) => !write.includes('/hubs/'));

  it('connects to two clusters, and may send jobs to them', async () => {
    const made = Date.now();
    await testbed.makeHub();
    for (const name of ['demo', 'small']) {
      await testbed.makeCluster({ fleet: name }, name);
      testbed.open([], name);
    }
    const active = async (name: string) =>
      condition(await client().getOrUndefined(MULTIKUEUECLUSTERS, `shop--${name}`), 'Active')?.status;
    saw(`demo's MultiKueueCluster is Active ${await took(made, () => active('demo'), 'True')} s after it was made`);
    for (const name of ['demo', 'small']) await joins(name);
    saw(`both have joined ${((Date.now() - made) / 1000).toFixed(1)} s after they were made`);
    expect((await listed())?.toSorted()).toEqual(['shop--demo', 'shop--small']);
    await took(made, async () => condition(await client().get(ADMISSIONCHECKS, 'test'), 'Active')?.status, 'True');
    saw(JSON.stringify(condition(await client().get(ADMISSIONCHECKS, 'test'), 'Active')));
    await testbed.quiet();
    saw(`writes for both joins: ${writesSince(0).length}`);
  });

  it('runs a job in one of them, and gets its result', async () => {
    const from = Date.now();
    await submit('train', '1');
    await expect.poll(running('train'), { timeout: PATIENCE_MS, interval: 50 }).toHaveLength(1);
    saw(
      `train, a job of one CPU, runs in ${running('train')()} ${((Date.now() - from) / 1000).toFixed(1)} s after it came`,
    );
    const at = running('train')()[0]!;
    await took(from, () => runsIn('train'), `shop--${at}`);
    saw(
      `the hub knows ${await took(from, async () => ((await jobIn(client(), 'train'))?.status as any)?.active, 1)} s after it came`,
    );
    saw(JSON.stringify((await workloadOf(client(), 'train'))?.status));
    expect(await sent(at)).toHaveLength(2);
    const ends = Date.now();
    await members[at]!.finish('train');
    saw(`it is Complete in the hub ${await took(ends, isComplete('train'), 'True')} s after its pod ended`);
    saw(`nothing of it is in the cluster after ${await took(ends, () => sent(at), [])} s`);
  });

  it('gets no writes without changes', async () => {
    await testbed.quiet();
    const { length } = testbed.line.writes;
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    saw(`writes in ${IDLE_MS} ms: ${JSON.stringify(testbed.line.writes.slice(length))}`);
    expect(testbed.line.writes.slice(length)).toEqual([]);
  });

  it('reconnects with renewed credentials, and continues to send jobs', async () => {
    const access = async () =>
      decodeSecret((await client().get<Secret>(SECRETS, KUBECONFIG, 'kueue-system')).data).kubeconfig;
    const [before, log] = [await access(), await kueue.log('hub')];
    const from = Date.now();
    testbed.now = () => new Date(Date.now() + 20 * 3600_000);
    await testbed.makeCluster({ fleet: 'demo', touched: 'yes' });
    await took(from, async () => (await access()) !== before, true);
    testbed.now = () => new Date();
    const watches = (text: string) => text.split('"Starting watch"').length;
    await took(from, async () => watches(await kueue.log('hub')) > watches(log), true);
    saw(`Kueue watches by the new token ${((Date.now() - from) / 1000).toFixed(1)} s after it was due`);
    // Larger than the other cluster.
    await submit('renewed', '3');
    saw(`a job runs in demo ${await took(Date.now(), running('renewed'), ['demo'])} s after it came`);
    await members.demo!.finish('renewed');
    await took(from, isComplete('renewed'), 'True');
  });

  it('finishes a job in a leaving cluster, starts none there, and keeps nothing of it', async () => {
    const before = await queueOf('small');
    await submit('large', '3500m');
    await took(Date.now(), running('large'), ['demo']);
    await submit('stays', '1');
    await took(Date.now(), running('stays'), ['small']);
    const { length } = testbed.line.writes;
    const from = Date.now();
    await testbed.makeHub('test', { clusterSelector: { matchLabels: { fleet: 'demo' } } });
    await took(from, async () => ((await queueOf('small')).spec as any).stopPolicy, 'Hold');
    await testbed.until('what it waits for', () =>
      /Workload shop\/job-stays.* is placed/.test(testbed.membership('test', 'small')?.status?.waiting ?? ''),
    );
    saw(`small leaves: ${testbed.membership('test', 'small')?.status?.waiting}`);
    await submit('later', '1');
    await members.demo!.finish('large');
    saw(`a job that comes then runs in demo ${await took(from, running('later'), ['demo'])} s after that`);
    expect(running('stays')()).toEqual(['small']);
    expect((await listed())?.toSorted()).toEqual(['shop--demo', 'shop--small']);
    const ends = Date.now();
    await members.small!.finish('stays');
    await took(ends, isComplete('stays'), 'True');
    await testbed.until('small to have left', () => !testbed.membership('test', 'small'), PATIENCE_MS);
    saw(
      `left ${((Date.now() - ends) / 1000).toFixed(1)} s after its job ended, with ${writesSince(length).length} writes`,
    );
    expect(await listed()).toEqual(['shop--demo']);
    const secrets = await client().list(SECRETS, { namespace: 'kueue-system' });
    expect(secrets.items.filter(({ metadata }) => metadata.name.includes('small'))).toEqual([]);
    expect(await client().getOrUndefined(MULTIKUEUECLUSTERS, 'shop--small')).toBeUndefined();
    expect(await sent('small')).toEqual([]);
    const after = await queueOf('small');
    expect({ spec: after.spec, annotations: after.metadata.annotations }).toEqual({
      spec: before.spec,
      annotations: before.metadata.annotations,
    });
    await members.demo!.finish('later');
    await took(ends, isComplete('later'), 'True');
    expect(await inMember('small')).toEqual([]);
  });

  it('moves a job out of a leaving cluster if the Hub says so, and never runs it twice', async () => {
    await testbed.makeHub();
    await joins('small');
    await submit('huge', '3500m');
    await took(Date.now(), running('huge'), ['demo']);
    await submit('moves', '1');
    await took(Date.now(), running('moves'), ['small']);
    await members.demo!.finish('huge');
    await took(Date.now(), isComplete('huge'), 'True');
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, running('moves')().length);
    }, 20);
    const from = Date.now();
    const clusterSelector = { matchLabels: { fleet: 'demo' } };
    await testbed.makeHub('test', { kueue: { evicts: true }, clusterSelector });
    saw(`small is to leave: its job runs in demo ${await took(from, running('moves'), ['demo'])} s after that`);
    clearInterval(watch);
    expect(most).toBe(1);
    saw(JSON.stringify((await workloadOf(client(), 'moves'))?.status));
    await testbed.until('small to have left', () => !testbed.membership('test', 'small'), PATIENCE_MS);
    saw(`left ${((Date.now() - from) / 1000).toFixed(1)} s after that`);
    expect([...(await sent('small')), ...(await inMember('small'))]).toEqual([]);
    expect(((await queueOf('small')).spec as any).stopPolicy).toBe('None');
    await members.demo!.finish('moves');
    await took(from, isComplete('moves'), 'True');
  });

  it('sends no job that another AdmissionCheck holds to a cluster, so that capacity must be known before', async () => {
    const api = { apiVersion: 'kueue.x-k8s.io/v1beta2' };
    const check = { ...api, kind: 'AdmissionCheck', metadata: { name: 'burst' } };
    await client().create({ ...check, spec: { controllerName: 'example.com/burst' } }, { resource: ADMISSIONCHECKS });
    const isActive = {
      type: 'Active',
      status: 'True',
      reason: 'Active',
      message: '',
      lastTransitionTime: rfc3339(new Date()),
    };
    const status = { conditions: [isActive] };
    await client().mergePatch(ADMISSIONCHECKS, 'burst', undefined, { status }, { subresource: 'status' });
    const both = { admissionChecksStrategy: { admissionChecks: [{ name: 'test' }, { name: 'burst' }] } };
    await client().mergePatch(CLUSTERQUEUES, 'all', undefined, { spec: both });
    await submit('held', '1');
    const statusOf = async () => (await workloadOf(client(), 'held'))?.status;
    await took(
      Date.now(),
      async () => (await statusOf())?.conditions?.find(({ type }) => type === 'QuotaReserved')?.status,
      'True',
    );
    await new Promise((resolve) => setTimeout(resolve, HOLDS_MS));
    const { admissionChecks = [], nominatedClusterNames } = (await statusOf())!;
    saw(`held: ${JSON.stringify({ nominatedClusterNames, admissionChecks })}`);
    expect({ nominatedClusterNames, at: await sent('demo') }).toEqual({ nominatedClusterNames: undefined, at: [] });
    const from = Date.now();
    const ready = admissionChecks.map((one) => (one.name === 'burst' ? { ...one, state: 'Ready' } : one));
    const { name } = (await workloadOf(client(), 'held'))!.metadata;
    const patch = { status: { admissionChecks: ready } };
    await client().mergePatch(WORKLOADS, name, 'shop', patch, { subresource: 'status' });
    saw(`it runs ${await took(from, running('held'), ['demo'])} s after the other check is Ready`);
    await members.demo!.finish('held');
    await took(from, isComplete('held'), 'True');
    const one = { admissionChecksStrategy: { admissionChecks: [{ name: 'test' }] } };
    await client().mergePatch(CLUSTERQUEUES, 'all', undefined, { spec: one });
  });

  it('takes back the jobs of a dead cluster by force', async () => {
    await testbed.makeHub('test', { drain: { timeout: '5s', force: true } });
    await joins('small');
    await submit('lost', '3');
    await took(Date.now(), running('lost'), ['demo']);
    await testbed.member.kill();
    await testbed.silence();
    const from = Date.now();
    await client().delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('demo to have left', () => !testbed.membership(), PATIENCE_MS);
    saw(`demo is dead; left by force after ${((Date.now() - from) / 1000).toFixed(1)} s`);
    expect(await listed()).toEqual(['shop--small']);
    await took(from, () => runsIn('lost'), undefined);
    saw(`its job waits for another cluster ${((Date.now() - from) / 1000).toFixed(1)} s after that`);
    expect(await namesIn(client(), JOBS)).toContain('lost');
    expect(NO_CLUSTER).toBeDefined();
  });

  it('never exceeds its rights in the clusters', async () => {
    const log = await kueue.log('hub');
    expect(log.split('\n').filter((line) => line.includes('forbidden'))).toEqual([]);
  });
});
