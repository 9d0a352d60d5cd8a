import { expect, it } from 'vitest';
import { movableWork } from '../../../operator/burst/clusters/movable.ts';
import type { KubeObject, Pod } from '../../../operator/kube/resources.ts';
import { buildPod } from '../../kit/builders/objects.ts';

type Inside = Parameters<typeof movableWork>[1];

type MovableWork = Parameters<typeof movableWork>[0][number];

const web: MovableWork = {
  source: 'ResourceBinding shop/web-deployment',
  count: 2,
  each: '1 CPU',
  workload: { kind: 'Deployment', namespace: 'shop', name: 'web' },
};

const pod = (name: string, more: { metadata?: object; spec?: object; owner?: object | null } = {}): Pod =>
  buildPod({
    metadata: {
      name,
      namespace: 'shop',
      labels: { app: 'web', 'pod-template-hash': '5d4f' },
      ...(more.owner !== null && {
        ownerReferences: [{ kind: 'ReplicaSet', name: 'web-5d4f', controller: true, ...more.owner }],
      }),
      ...more.metadata,
    },
    spec: {
      nodeName: 'one',
      containers: [{ name: 'web', resources: { requests: { cpu: '1' } } }],
      ...more.spec,
    },
    status: { phase: 'Running' },
  });

const budget = (disruptionsAllowed: number, selector: object | undefined, namespace = 'shop'): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace },
  spec: { ...(selector && { selector }) },
  status: { disruptionsAllowed },
});

const inside = (more: Partial<Inside> = {}): Inside => ({
  pods: [pod('web-1'), pod('web-2')],
  budgets: [],
  others: [],
  ...more,
});

it("movable work is everything the hub has placed, with its pods' requests", () => {
  const found = movableWork([web], inside());
  expect(found).toMatchObject({ work: [{ source: web.source, count: 2, pod: { requests: { cpu: 1000 } } }] });
});

it('movable work counts differing pods of one workload separately, and excludes ending pods', () => {
  const larger = { containers: [{ name: 'web', resources: { requests: { cpu: '2' } } }] };
  const ending = pod('web-3', { metadata: { deletionTimestamp: '2026-11-23T12:00:00Z' } });
  const pods = [pod('web-1'), pod('web-2', { spec: larger }), ending];
  expect(movableWork([web], inside({ pods }))).toMatchObject({
    work: [
      { count: 1, pod: { requests: { cpu: 1000 } } },
      { count: 1, pod: { requests: { cpu: 2000 } } },
    ],
  });
});

it('movable work includes pods whose PodDisruptionBudget permits it, selects others, or selects nothing', () => {
  const budgets = [
    budget(1, { matchLabels: { app: 'web' } }),
    budget(0, { matchLabels: { app: 'db' } }),
    budget(0, { matchLabels: { app: 'web' } }, 'other'),
    budget(0, undefined),
  ];
  expect(movableWork([web], inside({ budgets }))).toHaveProperty('work');
});

const with2 = (second: Pod) => inside({ pods: [pod('web-1'), second] });
it.each<[string, readonly MovableWork[], Inside, string]>([
  ['a pod that nobody would make again', [web], with2(pod('web-2', { owner: null })), 'pod shop/web-2 was not placed'],
  ['a pod that the hub has not placed', [], inside(), 'pod shop/web-1 was not placed there by the hub'],
  [
    'a pod of another workload of a like name',
    [web],
    with2(pod('web-2', { owner: { name: 'web-api-5d4f' } })),
    'pod shop/web-2 was not placed',
  ],
  [
    'a Job that runs',
    [{ ...web, count: 1, workload: { ...web.workload, kind: 'Job' } }],
    inside({ pods: [pod('web-1', { owner: { kind: 'Job', name: 'web' } })] }),
    'is of a Job that has not ended',
  ],
  [
    'a pod that is not to be disrupted',
    [web],
    with2(pod('web-2', { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } } })),
    'pod shop/web-2 has annotation karpenter.sh/do-not-disrupt',
  ],
  [
    'a pod with data',
    [web],
    with2(pod('web-2', { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } })),
    'keeps data on volumes',
  ],
  [
    'a pod that nobody can judge',
    [web],
    with2(pod('web-2', { spec: { schedulerName: 'other' } })),
    'whether pod shop/web-2 has room elsewhere is not known',
  ],
  [
    'a budget that allows no disruption',
    [web],
    inside({ budgets: [budget(0, { matchLabels: { app: 'web' } })] }),
    'PodDisruptionBudget shop/web says so',
  ],
  ['work that is copied', [{ ...web, stays: 'is copied to its clusters' }], inside(), `${web.source} is copied`],
  [
    'replicas that are still to come',
    [{ ...web, count: 3 }],
    inside(),
    '3 replicas were placed there by the hub, and 2 pods exist',
  ],
  [
    'data of which nobody makes use',
    [web],
    inside({ others: ['PersistentVolumeClaim shop/data'] }),
    'PersistentVolumeClaim shop/data would end with the cluster',
  ],
])('is none of it with %s', (_, placed, what, why) => {
  const found = movableWork(placed, what);
  expect(found).toHaveProperty('stays');
  expect((found as { stays: string }).stays).toContain(why);
});
