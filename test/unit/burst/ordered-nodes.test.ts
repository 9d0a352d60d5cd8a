import { expect, it } from 'vitest';
import type { ReplicaDemand } from '../../../operator/burst/demand.ts';
import type { FitPod } from '../../../operator/burst/fit/model.ts';
import { allocatableOf } from '../../../operator/burst/fit/node.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { ClusterState } from '../../../operator/burst/fit/state.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { planGrowth } from '../../kit/burst/plan-at-once.ts';

const asking = (name: string, cpu: string): FitPod =>
  fitPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'n', labels: { name } },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
  });

it('planNodes does not promise a pod the part of an ordered node that a DaemonSet will take', () => {
  const template = {
    id: 'web',
    labels: {},
    taints: [],
    allocatable: allocatableOf({ cpu: '1', memory: '1Gi', pods: '10' }),
    attachLimits: new Map(),
  };
  const grown = (daemons: FitPod[]) =>
    planGrowth({
      state: new ClusterState(),
      demands: [partOf<ReplicaDemand>({ who: 'n/p', keys: ['p', 'q'], replica: asking('p', '500m'), since: '' })],
      pools: [{ name: 'web', count: 1, minimum: 0, maximum: 5, present: 0, offer: { template, price: 1 } }],
      emptying: [],
      most: 100,
      refused: () => undefined,
      mayShrink: () => true,
      hasWork: true,
      daemons,
      now: 0,
    }).sizes.map(({ count }) => count);
  expect(grown([])).toEqual([]);
  expect(grown([asking('agent', '100m')])).toEqual([2]);
});
