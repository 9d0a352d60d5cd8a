import { expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { ANNOTATIONS, LABELS, ROLES } from '../../../operator/api/group.ts';
import { hostedShootStatus } from '../../../operator/controllers/shoot/hosted/hosted-status.ts';
import { podProblems, problemsText } from '../../../operator/controllers/shoot/pod-problems.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildPod, buildShoot } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const pod = (name: string, status: object, more: object = {}): Pod =>
  buildPod({
    metadata: { name, labels: { [LABELS.role]: ROLES.controlPlane }, ...more },
    spec: { containers: [{ name: 'main', image: 'registry.k8s.io/kube-apiserver:v1.35.4' }] },
    status,
  });
const waiting = (reason: string, more: object = {}) => ({
  containerStatuses: [{ name: 'main', ready: false, restartCount: 3, state: { waiting: { reason } }, ...more }],
});
const unschedulable = {
  conditions: [
    {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message:
        '0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    },
  ],
};
const FAR = 'this machine is building Kubernetes 1.35.4, about 7 min left';
const PROGRESS = { annotations: { [ANNOTATIONS.imageProgress]: FAR } };
const WHY = 'this machine cannot make Kubernetes 1.35.4, and tries again at 14:05 UTC: no space left on device';
const FAILURE = { annotations: { [ANNOTATIONS.imageFailure]: WHY } };
const machine = { labels: { [LABELS.role]: ROLES.machine } };

it.each<[string, object, string | undefined, object?]>([
  ['runs', { containerStatuses: [{ name: 'main', ready: true, restartCount: 0, state: { running: {} } }] }, undefined],
  ['is being made', waiting('ContainerCreating'), undefined],
  ['has an image that is being made', waiting('ContainerCreating'), `ImageIsMade: ${FAR}`, PROGRESS],
  ['has an image whose pull gave up meanwhile', waiting('ImagePullBackOff'), `ImageIsMade: ${FAR}`, PROGRESS],
  ['has an image that cannot be made', waiting('ContainerCreating'), `ImageCannotBeMade: ${WHY}`, FAILURE],
  ['has an image that could not be pulled meanwhile', waiting('ErrImagePull'), `ImageCannotBeMade: ${WHY}`, FAILURE],
  ['had an image that was made', waiting('CrashLoopBackOff'), 'CrashLoopBackOff: main', PROGRESS],
  [
    'has no image',
    waiting('ErrImagePull'),
    'ErrImagePull: image registry.k8s.io/kube-apiserver:v1.35.4 cannot be pulled',
  ],
  // The kubelet says both in turn: what people read stays the same, or each turn would be a write.
  [
    'still has none',
    waiting('ImagePullBackOff'),
    'ErrImagePull: image registry.k8s.io/kube-apiserver:v1.35.4 cannot be pulled',
  ],
  [
    'crashes',
    waiting('CrashLoopBackOff', { lastState: { terminated: { exitCode: 2 } } }),
    'CrashLoopBackOff: container main ended with code 2',
  ],
  [
    'fits nowhere',
    unschedulable,
    'Unschedulable: 0/1 nodes are available: 1 Insufficient memory: the seed is full, so ask for fewer or smaller machines, or give it more nodes',
  ],
])('a pod that %s', (_, status, expected, metadata) => {
  const [problem] = podProblems([pod('one', status, metadata)]);
  expect(problem && `${problem.reason}: ${problem.message}`).toBe(expected);
});

it('a machine pod on a full seed reports how many of its cluster fit', () => {
  const placed = [1, 2].map((n) => ({ ...pod(`m-${n}`, {}, machine), spec: { containers: [], nodeName: 'seed' } }));
  const leaving = { ...pod('m-3', {}, { ...machine, deletionTimestamp: 'now' }), spec: { nodeName: 'seed' } } as never;
  const controlPlane = pod('etcd', {});
  const waits = [4, 5].map((n) => pod(`m-${n}`, unschedulable, machine));
  expect(problemsText(podProblems([...placed, leaving, controlPlane, ...waits]))).toBe(
    'pod m-4 and 1 more cannot start: Unschedulable: 0/1 nodes are available: 1 Insufficient memory: the seed is full, and has room for 2 of the 4 machines of this cluster; scale it to 2, or give the seed more nodes',
  );
});

it('a terminating pod is no problem', () => {
  expect(podProblems([pod('one', unschedulable, { deletionTimestamp: 'now' })])).toEqual([]);
});

it('pods with the same problem are reported in one clause, with a limited number of reasons', () => {
  const crowd = Array.from({ length: 300 }, (_, n) => pod(`machine-${100 + n}`, unschedulable, machine));
  const crash = (n: number) =>
    pod(`other-${n}`, waiting('CrashLoopBackOff', { lastState: { terminated: { exitCode: n } } }), machine);
  const told = problemsText(podProblems([...crowd, ...Array.from({ length: 50 }, (_, n) => crash(n))]));
  expect(told).toMatch(/^pod machine-100 and 299 more cannot start: Unschedulable: 0\/1 nodes/);
  expect(told).toMatch(/; 46 more reasons, see the pods$/);
});

it('pod problems are in the matching conditions of their shoot', () => {
  const shoot = buildShoot({ metadata: { name: 'one', generation: 1 }, spec: { provider: { type: 'local' } } });
  const problems = podProblems([
    pod('kube-apiserver-x', waiting('ErrImagePull')),
    pod('machines-workers-y', unschedulable, machine),
  ]);
  const { conditions } = hostedShootStatus(
    {
      shoot,
      technicalID: 'shoot--team--one',
      seedName: 'local',
      version: '1.35.4',
      endpoint: undefined,
      pools: [pool({ count: 1 })],
      operation: undefined,
      errors: [],
      observedGeneration: undefined,
      usable: undefined,
      inside: undefined,
      problems,
      draining: [],
      etcd: undefined,
      apiServer: undefined,
      controllerManager: undefined,
      scheduler: undefined,
    },
    new Date(0),
  );
  const of = (type: string) => findCondition(conditions, type);
  const image = 'pod kube-apiserver-x cannot start: ErrImagePull: image registry.k8s.io/kube-apiserver:v1.35.4';
  for (const type of ['Ready', 'APIServerAvailable', 'ControlPlaneHealthy'])
    expect(of(type)).toMatchObject({
      status: 'False',
      reason: 'PodsCannotStart',
      message: expect.stringContaining(image),
    });
  expect(of('EveryNodeReady')).toMatchObject({
    status: 'False',
    reason: 'SeedFull',
    message: expect.stringContaining('pod machines-workers-y cannot start: Unschedulable: 0/1 nodes'),
  });
});
