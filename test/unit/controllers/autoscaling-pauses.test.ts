import { expect, it } from 'vitest';
import { pendingDemand, pendingDemandInSteps } from '../../../operator/burst/demand.ts';
import { clusterStateInSteps } from '../../../operator/burst/fit/cluster.ts';
import { ClusterMemory } from '../../../operator/controllers/autoscaling/memory.ts';
import { byNode } from '../../../operator/controllers/autoscaling/nodes-seen.ts';
import { observeNodes } from '../../../operator/controllers/autoscaling/observe.ts';
import type { NodesSight } from '../../../operator/controllers/autoscaling/world.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import type { Steps } from '../../../operator/kube/steps.ts';
import { profile } from '../../kit/autoscaled-cluster.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { NOW, node, pod } from '../../kit/burst.ts';

const NODES = Array.from({ length: 1_000 }, (_, index) => node(`n${index}`));
const UNSCHEDULABLE = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];

/** Pods that all differ: nothing is compiled for two of them at once. */
const running = () =>
  Array.from({ length: 10_000 }, (_, index) =>
    pod('1m', `n${index % NODES.length}`, { spec: { nodeSelector: { disk: `d${index}` } } }),
  );
/** Pods of no owner, which a scheduler cannot place. */
const pending = (spec: (index: number) => object) =>
  Array.from({ length: 10_000 }, (_, index): Pod => {
    const one = pod('1m', undefined, { spec: spec(index) });
    const metadata = { name: `p${index}`, uid: `p${index}`, namespace: 'shop' };
    return { ...one, metadata, status: { ...one.status, conditions: UNSCHEDULABLE } };
  });

/** Runs the work. Returns its result with the number of pauses. */
function paused<T>(work: Steps<T>): { readonly value: T; readonly pauses: number } {
  let pauses = 0;
  for (;;) {
    const next = work.next();
    if (next.done) return { value: next.value, pauses };
    pauses++;
  }
}

/** A cluster of these pods whose pool Coppice sizes. */
function sightOf(pods: readonly Pod[]): NodesSight {
  const pools = [{ name: 'a', minimum: 0, maximum: 5_000, autoscale: 'Coppice' as const }];
  return partOf<NodesSight>({
    now: () => new Date(NOW),
    cluster: buildWorkerCluster({ spec: { pools } }),
    profile: profile(),
    decided: new Map(),
    nodes: new Map(NODES.map((one) => [one.metadata.name, one])),
    podIDs: new Set<string>(),
    podsOn: byNode(pods),
    daemons: [],
    waiting: () => pendingDemandInSteps(pods, { isNominationLive: () => false }),
    offer: () => ({}),
    room: (nodes) => clusterStateInSteps({ nodes, pods }),
    parts: [],
    isRemoving: false,
    isManaged: false,
    changesAt: () => [],
    quotas: [],
    claimants: () => [],
    held: undefined,
  });
}

it('an observation of 1,000 nodes with 20,000 pods pauses after each 500 pods that wait or run', () => {
  const pods = [...running(), ...pending((index) => ({ nodeSelector: { disk: `e${index}` } }))];
  const { value, pauses } = paused(observeNodes(sightOf(pods), new ClusterMemory('u')));
  // Each pod is looked at for demand and for room.
  expect(pauses).toBeGreaterThanOrEqual(80);
  expect(value.view.demands).toHaveLength(10_000);
  expect(value.view.state.node('n0')?.podCount).toBe(10);
});

it('demand of 10,000 equal pods of as many owners is grouped with pauses', () => {
  const pods = pending(() => ({}));
  const { value, pauses } = paused(pendingDemandInSteps(pods, { isNominationLive: () => false }));
  expect(pauses).toBe(20);
  expect(value.demands).toHaveLength(10_000);
  expect(value).toEqual(pendingDemand(pods, { isNominationLive: () => false }));
});
