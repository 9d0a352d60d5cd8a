import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { readerOf } from '../../../operator/controllers/membership/two-sides.ts';
import { kueueHub, NO_CLUSTER } from '../../../operator/hubs/kueue.ts';
import {
  ADMISSIONCHECKS,
  LOCALQUEUES,
  MULTIKUEUECLUSTERS,
  MULTIKUEUECONFIGS,
  WORKLOADS,
} from '../../../operator/hubs/kueue-kinds.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';
import { SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers, sweepMember } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';
import { KueueManager, KueueWorker, localQueue, workload, workloadName } from '../../kit/hubs/kueue.ts';
import { serveKinds } from '../../kit/hubs/serve-kinds.ts';

const NAME = 'shop--demo';
const JOBS: Resource = { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job', namespaced: true };

interface Testbed {
  readonly testbed: HubTestbed;
  readonly manager: KueueManager;
}

/** The garden is the manager cluster: all of it with the rights that the chart gives the operator, and no more. */
async function open(spec: Partial<HubSpec> = {}): Promise<Testbed> {
  const testbed = await HubTestbed.start({ type: 'Kueue', ...spec }, ['kueue'], 'chart');
  const { garden, member } = testbed;
  await serveKinds(member.client, ['kueue']);
  for (const { client } of [garden, member]) {
    for (const name of ['kueue-system', 'shop'])
      await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await client.create(localQueue('shop'), { resource: LOCALQUEUES });
  }
  const manager = new KueueManager(garden.client);
  const worker = new KueueWorker(member.client, () => manager.look());
  for (const standIn of [manager, worker]) {
    await standIn.start();
    testbed.onStop(() => standIn.stop());
  }
  return { testbed, manager };
}

keepsMembers({
  costs: { join: 14, leave: 10 },
  type: 'Kueue',
  open: async () => (await open()).testbed,
  kinds: [MULTIKUEUECLUSTERS],
  shows: `/multikueueclusters/${NAME}`,
  taken: {
    resource: MULTIKUEUECLUSTERS,
    object: {
      apiVersion: 'kueue.x-k8s.io/v1beta2',
      kind: 'MultiKueueCluster',
      metadata: { name: NAME },
      spec: { clusterSource: { clusterProfileRef: { name: 'theirs' } } },
    },
  },
  theirs: ({ access }) => {
    const clusterSource = { kubeConfig: { locationType: 'Secret', location: 'theirs-access' } };
    const cluster: KubeObject = {
      apiVersion: 'kueue.x-k8s.io/v1beta2',
      kind: 'MultiKueueCluster',
      metadata: { name: 'theirs' },
      spec: { clusterSource },
    };
    const secret: KubeObject = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'theirs-access', namespace: 'kueue-system' },
      data: { kubeconfig: Buffer.from(access).toString('base64') },
    };
    const objects = [
      { resource: MULTIKUEUECLUSTERS, object: cluster },
      { resource: SECRETS, object: secret },
    ];
    return { name: 'theirs', objects, whyNot: "is named by lists of somebody else's" };
  },
});

describe('Kueue and its clusters', () => {
  let testbed: HubTestbed;
  let manager: KueueManager;
  beforeAll(async () => {
    ({ testbed, manager } = await open());
  });
  afterAll(() => testbed?.stop());
  beforeEach(async () => {
    await testbed.makeHub();
    await testbed.startOperator();
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    await submit('train');
    await expect.poll(() => runsIn('train'), PATIENCE).toBe(NAME);
  });
  afterEach(async () => {
    manager.answers = true;
    const { client } = testbed.garden;
    for (const name of ['train', 'later']) await client.delete(WORKLOADS, workloadName(name), 'shop').catch(() => {});
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    await client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});
    await testbed.stopOperator();
    // A test that fails in the middle leaves no closed queue to the next one.
    await testbed.member.client.mergePatch(LOCALQUEUES, 'jobs', 'shop', { spec: { stopPolicy: 'None' } });
    await sweepMember(testbed);
    for (const resource of [JOBS, WORKLOADS])
      for (const { metadata } of await inMember(resource))
        await testbed.member.client.delete(resource, metadata.name, 'shop').catch(() => {});
  });

  const submit = (name: string) => testbed.garden.client.create(workload(name, 'shop'), { resource: WORKLOADS });
  const runsIn = async (name: string) =>
    (
      (await testbed.garden.client.getOrUndefined(WORKLOADS, workloadName(name), 'shop'))?.status as
        | { clusterName?: string }
        | undefined
    )?.clusterName;
  const listed = async () =>
    ((await testbed.garden.client.get(MULTIKUEUECONFIGS, 'test')).spec as { clusters: string[] }).clusters;
  const inMember = async (resource: Resource): Promise<KubeObject[]> =>
    (await testbed.member.client.list(resource, { namespace: 'shop' })).items;
  const namesIn = async (resource: Resource) => (await inMember(resource)).map(({ metadata }) => metadata.name);
  const queue = async () => (await inMember(LOCALQUEUES))[0]!;
  const finish = (name: string) => {
    const conditions = [
      {
        type: 'Finished',
        status: 'True',
        reason: 'Succeeded',
        message: '',
        lastTransitionTime: '2026-11-22T12:00:00Z',
      },
    ];
    const patch = { status: { conditions } };
    return testbed.garden.client.mergePatch(WORKLOADS, workloadName(name), 'shop', patch, { subresource: 'status' });
  };
  const waiting = () => testbed.membership()?.status?.waiting ?? '';
  /** It stays what it is, and is selected no more. */
  const leave = (more: Partial<HubSpec> = {}) =>
    testbed.makeHub('test', { ...more, clusterSelector: { matchLabels: { fleet: 'other' } } });
  const gone = () => testbed.until('the membership to be gone', () => testbed.memberships.size === 0);

  it('runs jobs by an AdmissionCheck that ClusterQueues can name', async () => {
    expect(await listed()).toEqual([NAME]);
    expect(await namesIn(JOBS)).toEqual(['train']);
    expect((await testbed.garden.client.get(ADMISSIONCHECKS, 'test')).spec).toEqual({
      controllerName: 'kueue.x-k8s.io/multikueue',
      parameters: { apiGroup: 'kueue.x-k8s.io', kind: 'MultiKueueConfig', name: 'test' },
    });
  });

  it('finishes a job in a leaving cluster, starts none there, and restores its queue', async () => {
    const before = await queue();
    await leave();
    await testbed.until('it to be said', () => waiting().includes('Workload shop/job-train is placed'));
    expect((await queue()).spec).toHaveProperty('stopPolicy', 'Hold');
    await submit('later');
    await expect.poll(() => namesIn(WORKLOADS), PATIENCE).toContain('job-later');
    // Off the list Kueue would take it for lost, and begin it anew elsewhere.
    expect(await listed()).toEqual([NAME]);
    expect(await runsIn('train')).toBe(NAME);
    expect(await namesIn(JOBS)).toEqual(['train']);
    await finish('train');
    await gone();
    expect(await listed()).toEqual([NO_CLUSTER]);
    // Kueue itself leaves there what it has dispatched to a cluster that is not in the list any more.
    expect([...(await namesIn(WORKLOADS)), ...(await namesIn(JOBS))]).toEqual([]);
    const { metadata, spec } = await queue();
    expect({ spec, annotations: metadata.annotations }).toEqual({
      spec: before.spec,
      annotations: before.metadata.annotations,
    });
  });

  it('takes a job back before the cluster is off the list, so that it never runs twice', async () => {
    await leave({ drain: { allowDelete: true } });
    await gone();
    expect(await runsIn('train')).toBeUndefined();
    expect([...(await namesIn(WORKLOADS)), ...(await namesIn(JOBS))]).toEqual([]);
    expect((await queue()).spec).toHaveProperty('stopPolicy', 'None');
  });

  it('moves jobs if the Hub says so', async () => {
    await leave({ kueue: { evicts: true } });
    await gone();
    expect(await runsIn('train')).toBeUndefined();
    expect(await namesIn(JOBS)).toEqual([]);
  });

  it('takes back the jobs of a dead cluster at once when that is removed by force', async () => {
    manager.answers = false;
    manager.look();
    await testbed.silence();
    await testbed.makeHub('test', { drain: { timeout: '1s', force: true } });
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    expect(await listed()).toEqual([NO_CLUSTER]);
    await expect.poll(() => runsIn('train'), PATIENCE).toBeUndefined();
  });

  it('reports a job that no cluster admits, until one does', async () => {
    const { client } = testbed.garden;
    const demand = () => kueueHub.demand!(readerOf(client, AbortSignal.timeout(5_000)), { type: 'Kueue' }, 'test');
    await testbed.member.client.mergePatch(LOCALQUEUES, 'jobs', 'shop', { spec: { stopPolicy: 'Hold' } });
    await submit('later');
    const lastTransitionTime = '2026-11-23T12:00:00Z';
    const reserved = {
      type: 'QuotaReserved',
      status: 'True',
      reason: 'QuotaReserved',
      message: '',
      lastTransitionTime,
    };
    const podSetAssignments = [{ name: 'main', count: 1, resourceUsage: { cpu: '2', memory: '1Gi' } }];
    const status = {
      conditions: [reserved],
      admission: { clusterQueue: 'all', podSetAssignments },
      admissionChecks: [{ name: 'test', state: 'Pending', message: '', lastTransitionTime }],
      nominatedClusterNames: [NAME],
    };
    await client.mergePatch(WORKLOADS, workloadName('later'), 'shop', { status }, { subresource: 'status' });
    expect(await demand()).toEqual([
      {
        source: 'Workload shop/job-later',
        uid: (await client.get(WORKLOADS, workloadName('later'), 'shop')).metadata.uid,
        namespace: 'shop',
        count: 1,
        each: { cpu: '2', memory: '1Gi' },
        since: lastTransitionTime,
        inOneCluster: true,
        // Quota counts more than the job's container asks for: the rest is the pod's overhead.
        template: {
          labels: {},
          spec: { containers: [{ name: 'work' }], overhead: { cpu: '2000m', memory: '1073741824' } },
        },
      },
    ]);
    // Where no cluster can be asked, it is told of by its ClusterQueue. What says such things the operator has to be allowed to watch.
    for (const { group, plural } of kueueHub.demandWatch!.resources)
      for (const verb of ['list', 'watch']) {
        const resourceAttributes = { group, resource: plural, verb };
        const review = await client.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user: 'system:serviceaccount:kube-system:coppice-operator', resourceAttributes },
          },
        });
        expect({ verb, plural, ...review.status }).toMatchObject({ allowed: true });
      }
    await testbed.member.client.mergePatch(LOCALQUEUES, 'jobs', 'shop', { spec: { stopPolicy: 'None' } });
    await expect.poll(() => runsIn('later'), PATIENCE).toBe(NAME);
    expect(await demand()).toEqual([]);
  });

  it('keeps a queue stopped that a person has stopped', async () => {
    const { client } = testbed.member;
    await finish('train');
    await client.mergePatch(LOCALQUEUES, 'jobs', 'shop', { spec: { stopPolicy: 'Hold' } });
    await leave();
    await gone();
    expect((await queue()).spec).toHaveProperty('stopPolicy', 'Hold');
  });
});

const PATIENCE = { timeout: 120_000 };
