import { describe, expect, it } from 'vitest';
import { gardenRules } from '../../../operator/api/roles.ts';
import type { Asking, WorkAnswer } from '../../../operator/hubs/contract.ts';
import { kueueHub } from '../../../operator/hubs/kueue.ts';
import { ADMISSIONCHECKS, WORKLOADS } from '../../../operator/hubs/kueue-kinds.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { reader } from './hub-members.ts';

const SINCE = '2026-11-23T12:00:00Z';
const NOW = new Date('2026-11-23T12:00:30Z');
const api = { apiVersion: 'kueue.x-k8s.io/v1beta2' };
const check = (name: string, controllerName: string, more: object = {}): KubeObject => ({
  ...api,
  kind: 'AdmissionCheck',
  metadata: { name },
  spec: { controllerName },
  ...more,
});
const dispatch = check('fleet', 'kueue.x-k8s.io/multikueue');
const ours = check('capacity', 'multi-cluster.demo.io/burst');
const state = (name: string, is = 'Pending', more: object = {}) => ({
  name,
  state: is,
  message: '',
  lastTransitionTime: SINCE,
  ...more,
});
const condition = (type: string, status = 'True') => ({
  type,
  status,
  reason: type,
  message: '',
  lastTransitionTime: SINCE,
});
const podSet = (count: number, cpu = '3') => ({ name: 'main', count, resourceUsage: { cpu } });
const held = {
  conditions: [condition('QuotaReserved')],
  admission: { podSetAssignments: [podSet(3)] },
  admissionChecks: [state('capacity'), state('fleet')],
};
const job = (status: object = held, more: object = {}): KubeObject => ({
  ...api,
  kind: 'Workload',
  metadata: { name: 'train', namespace: 'shop', uid: 'of-train', resourceVersion: '7' },
  status,
  ...more,
});

const objects = (workloads: KubeObject[], checks = [dispatch, ours]) =>
  reader({
    multikueueconfigs: [{ ...api, kind: 'MultiKueueConfig', metadata: { name: 'fleet' }, spec: { clusters: ['a'] } }],
    multikueueclusters: [
      { ...api, kind: 'MultiKueueCluster', metadata: { name: 'a' }, status: { conditions: [condition('Active')] } },
    ],
    workloads,
    admissionchecks: checks,
  });
const asks = (workloads: KubeObject[], checks?: KubeObject[]) =>
  kueueHub.asks!(objects(workloads, checks), { type: 'Kueue' }, 'fleet');
const demand = (...workloads: KubeObject[]) => kueueHub.demand!(objects(workloads), { type: 'Kueue' }, 'fleet');

const READY: WorkAnswer = { state: 'Ready', message: 'there is room' };
const RETRY: WorkAnswer = { state: 'Retry', message: 'no money is left' };
const say = (answer: WorkAnswer | undefined) => () => answer;
/** What is written of Workloads. */
const written = async (one: KubeObject, answer: WorkAnswer | undefined, checks?: KubeObject[]) =>
  (await asks([one], checks))!
    .answers(say(answer), NOW)
    .filter(({ resource }) => resource === WORKLOADS)
    .map(({ object }) => object);
const entries = async (one: KubeObject, answer: WorkAnswer | undefined = READY, checks?: KubeObject[]) =>
  (await written(one, answer, checks)).flatMap(
    ({ status }) => (status as { admissionChecks: Record<string, unknown>[] }).admissionChecks,
  );

describe("a job that Coppice's AdmissionCheck holds", () => {
  it('is demand although it was offered to no cluster, until a cluster takes it', async () => {
    const [one] = await demand(job());
    expect(one).toMatchObject({ source: 'Workload shop/train', count: 3, each: { cpu: '1' }, isHeld: true });
    expect(await demand(job({ ...held, admissionChecks: [state('capacity', 'Ready'), state('fleet')] }))).toHaveLength(
      1,
    );
    expect(await demand(job({ ...held, clusterName: 'a' }))).toEqual([]);
  });

  it.each<[string, object]>([
    ['is told to try again', { admissionChecks: [state('capacity', 'Retry'), state('fleet')] }],
    [
      'another check holds, for days maybe',
      { admissionChecks: [state('approval'), state('capacity'), state('fleet')] },
    ],
    ['has no quota', { conditions: [condition('QuotaReserved', 'False')] }],
    ['is being stopped', { conditions: [condition('QuotaReserved'), condition('Evicted')] }],
  ])('buys nothing while it %s', async (_, more) => expect(await demand(job({ ...held, ...more }))).toEqual([]));

  it('is answered at the version read, by its own entry only', async () => {
    expect(await written(job(), READY)).toEqual([
      {
        ...api,
        kind: 'Workload',
        metadata: { name: 'train', namespace: 'shop', uid: 'of-train', resourceVersion: '7' },
        status: {
          admissionChecks: [
            { name: 'capacity', state: 'Ready', message: 'there is room', lastTransitionTime: '2026-11-23T12:00:30Z' },
          ],
        },
      },
    ]);
  });

  it('is not answered twice equally, or without a decision', async () => {
    const waits: WorkAnswer = { state: 'Pending', message: 'a cluster comes' };
    const [entry] = await entries(job(), waits);
    expect(entry).toEqual(state('capacity', 'Pending', { message: 'a cluster comes' }));
    expect(await entries(job({ ...held, admissionChecks: [entry, state('fleet')] }), waits)).toEqual([]);
    expect(await written(job(), undefined)).toEqual([]);
  });

  it.each([
    [undefined, 0],
    [1, 60],
    [2, 120],
    [3, 240],
    [4, 300],
    [99, 300],
  ])('that retried %s times waits %s s more', async (retryCount, requeueAfterSeconds) => {
    const entry = state('capacity', 'Pending', retryCount === undefined ? {} : { retryCount });
    const [told] = await entries(job({ ...held, admissionChecks: [entry, state('fleet')] }), RETRY);
    expect(told).toMatchObject({ state: 'Retry', message: 'no money is left', requeueAfterSeconds });
    expect(told).not.toHaveProperty('retryCount');
  });

  it('gets a message of bounded length', async () => {
    const [entry] = await entries(job(), { state: 'Retry', message: 'x'.repeat(40_000) });
    expect(entry!.message).toHaveLength(1000);
  });

  it.each<[string, KubeObject, string, RegExp | undefined]>([
    [
      'another check holds as well',
      job({ ...held, admissionChecks: [state('approval'), ...held.admissionChecks] }),
      'Pending',
      /^AdmissionCheck approval has to be Ready first/,
    ],
    [
      'would run in the hub',
      job({ ...held, admissionChecks: [state('capacity')] }),
      'Retry',
      /names no AdmissionCheck of MultiKueue/,
    ],
    [
      'asks for what nobody can read',
      job({ ...held, admission: { podSetAssignments: [podSet(1, 'many')] } }),
      'Retry',
      /cannot be read/,
    ],
    [
      'has pods of nothing',
      job(held, { spec: { podSets: [{ name: 'main', template: {} }] } }),
      'Retry',
      /cannot be read/,
    ],
    [
      'nobody can judge',
      job(held, { spec: { podSets: [{ template: { spec: { containers: [], schedulerName: 'other' } } }] } }),
      'Retry',
      /^nothing is bought for it: it names a scheduler other than default-scheduler/,
    ],
    ['has no pods', job({ ...held, admission: { podSetAssignments: [podSet(0)] } }), 'Ready', /no pods/],
  ])('that %s is told so', async (_, one, is, words) => {
    const [entry] = await entries(one);
    expect(entry).toMatchObject({ state: is, message: expect.stringMatching(words!) });
  });

  it.each<[string, KubeObject, KubeObject[]?]>([
    [
      'of another hub',
      job({ ...held, admissionChecks: [state('capacity'), state('other')] }),
      [dispatch, check('other', 'kueue.x-k8s.io/multikueue'), ours],
    ],
    [
      'of another controller',
      job({ ...held, admissionChecks: [state('theirs'), state('fleet')] }),
      [dispatch, check('theirs', 'example.com/one'), ours],
    ],
    ['without quota', job({ ...held, conditions: [condition('QuotaReserved', 'False')] })],
    [
      'that is on its way out of its quota',
      job({ ...held, conditions: [condition('QuotaReserved'), condition('Evicted')] }),
    ],
    ['that was answered', job({ ...held, admissionChecks: [state('capacity', 'Ready'), state('fleet')] })],
    ['that is to be retried', job({ ...held, admissionChecks: [state('capacity', 'Retry'), state('fleet')] })],
  ])('is none %s: it is not answered', async (_, one, checks) => expect(await written(one, READY, checks)).toEqual([]));

  it("keeps the entries of Coppice's other checks", async () => {
    const second = check('second', 'multi-cluster.demo.io/burst');
    const two = job({ ...held, admissionChecks: [state('capacity'), state('fleet'), state('second', 'Ready')] });
    expect(await entries(two, READY, [dispatch, ours, second])).toMatchObject([
      { name: 'capacity', state: 'Ready' },
      { name: 'second', state: 'Ready', lastTransitionTime: SINCE },
    ]);
  });

  it('is answered before messages of others are updated', async () => {
    const other = { ...job(), metadata: { ...job().metadata, name: 'other' } };
    const asking = await asks([other, job()]);
    const told = asking!.answers(
      (source) => (source.endsWith('train') ? RETRY : { state: 'Pending', message: 'soon' }),
      NOW,
    );
    expect(told.slice(-2).map(({ object }) => object.metadata.name)).toEqual(['train', 'other']);
  });

  it('takes room in its cluster until its pods are visible', async () => {
    const admitted = { ...condition('Admitted'), lastTransitionTime: '2026-11-23T12:00:25Z' };
    const placed = job({ ...held, clusterName: 'a', conditions: [condition('QuotaReserved'), admitted] });
    const asking = (await asks([placed])) as Asking;
    const [one] = asking.taking(NOW);
    expect([{ name: 'a' }, { name: 'b' }].map((member) => one!.accepts!(member as never))).toEqual([true, false]);
    expect(asking.taking(new Date(NOW.getTime() + 10_000))).toEqual([]);
  });
});

describe("Coppice's AdmissionCheck", () => {
  const active = (status: string, reason: string, message: string) => ({
    conditions: [{ type: 'Active', status, reason, message, lastTransitionTime: SINCE }],
  });
  const served = active('True', 'Active', 'Coppice answers, as BurstPolicies of Hub fleet decide');
  const conditionOf = async (one: KubeObject, isServed: boolean) => {
    const parts = (await asks([], [dispatch, one]))!.answers(isServed ? say(undefined) : undefined, NOW);
    const [part] = parts.filter(({ resource }) => resource === ADMISSIONCHECKS);
    const [said] = (part?.object.status as ReturnType<typeof active> | undefined)?.conditions ?? [];
    return said && `${said.status} ${said.reason}`;
  };
  const kept = (status: object) => ({ ...ours, status });

  it.each<[string, KubeObject, boolean, string | undefined]>([
    ['is active where policies buy for the hub', ours, true, 'True Active'],
    ['is not told so again', kept(served), true, undefined],
    ['is not active where none does', ours, false, 'False NoPolicy'],
    ['is so no more when the last one goes', kept(served), false, 'False NoPolicy'],
    ['is so again when one comes', kept(active('False', 'NoPolicy', 'none')), true, 'True Active'],
    [
      'stays active by another hub',
      kept(active('True', 'Active', 'as BurstPolicies of Hub other decide')),
      false,
      undefined,
    ],
    [
      'takes no parameters',
      { ...ours, spec: { ...(ours.spec as object), parameters: { name: 'x' } } },
      true,
      'False BadParameters',
    ],
  ])('%s', async (_, one, isServed, is) => expect(await conditionOf(one, isServed)).toBe(is));

  it('is the only check that is answered', async () => {
    expect(await asks([job()], [dispatch, check('theirs', 'example.com/one')])).toBeUndefined();
    expect((await asks([job()]))!.answers(say(undefined), NOW).map(({ object }) => object.metadata.name)).toEqual([
      'capacity',
    ]);
  });

  it('gives quota back where no policy buys, with the reason', async () => {
    const parts = (await asks([job()]))!.answers(undefined, NOW);
    expect(parts.map(({ object }) => object.status)).toMatchObject([
      { conditions: [{ status: 'False' }] },
      { admissionChecks: [{ state: 'Retry', message: 'no BurstPolicy names Hub fleet, so nobody would buy room' }] },
    ]);
  });

  it('may be written by the operator, with the Workloads it holds', () => {
    for (const resource of ['admissionchecks/status', 'workloads/status'])
      expect(gardenRules().filter((rule) => rule.resources.includes(resource))).toMatchObject([
        { apiGroups: ['kueue.x-k8s.io'], verbs: ['get', 'patch'] },
      ]);
  });
});
