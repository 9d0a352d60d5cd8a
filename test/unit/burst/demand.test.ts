import { describe, expect, it, test } from 'vitest';
import { type Ignored, NOT_DEMAND, pendingDemand } from '../../../operator/burst/demand.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { node, pod } from '../../kit/burst.ts';

type NotDemand = Ignored['reason'];

const nodes = [node('n1')];
const demandOf = (...pods: Pod[]) =>
  pendingDemand(pods, {
    isNominationLive: ({ status }) => nodes.some(({ metadata }) => metadata.name === status?.nominatedNodeName),
  });
const scheduled = (reason: string) => ({ status: { conditions: [{ type: 'PodScheduled', status: 'False', reason }] } });
const owned = (kind: string) => ({
  metadata: { ownerReferences: [{ apiVersion: 'v1', kind, name: 'o', uid: 'o', controller: true }] },
});

describe('pods that wait for a node', () => {
  it('are one demand when they are alike and of one owner', () => {
    const { demands, ignored } = demandOf(pod('1'), pod('1'), pod('2'), pod('1', 'n1'));
    expect(demands.map(({ who, keys, replica, source }) => [who, keys.length, replica.requests.cpu, source])).toEqual([
      ['ReplicaSet shop/web', 2, 1000, 'PendingPods'],
      ['ReplicaSet shop/web', 1, 2000, 'PendingPods'],
    ]);
    expect(ignored).toEqual([]);
  });

  it('carry the waiting time of the first of them', () => {
    const since = (lastTransitionTime: string) =>
      pod('1', undefined, {
        status: {
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime }],
        },
      });
    const [demand] = demandOf(since('2026-11-23T00:00:09Z'), since('2026-11-23T00:00:03Z')).demands;
    expect(demand?.since).toBe('2026-11-23T00:00:03Z');
  });

  const nothing: [string, NotDemand | undefined, Pod][] = [
    ['a gate holds it', 'Gated', pod('1', undefined, scheduled('SchedulingGated'))],
    ['its scheduler failed', 'SchedulerError', pod('1', undefined, scheduled('SchedulerError'))],
    ['a DaemonSet made it', 'BoundToNode', pod('1', undefined, owned('DaemonSet'))],
    ['a node made it', 'BoundToNode', pod('1', undefined, owned('Node'))],
    ['its priority is low', 'LowPriority', pod('1', undefined, { spec: { priority: -11 } })],
    [
      'others make room for it',
      'Nominated',
      pod('1', undefined, { status: { ...scheduled('Unschedulable').status, nominatedNodeName: 'n1' } }),
    ],
    ['it runs', undefined, pod('1', 'n1')],
    ['no scheduler has tried it', undefined, pod('1', undefined, { status: { conditions: [] } })],
    [
      'it is being deleted',
      undefined,
      pod('1', undefined, { metadata: { deletionTimestamp: '2026-11-23T00:00:00Z' } }),
    ],
    ['it has ended', undefined, pod('1', undefined, { status: { phase: 'Failed' } })],
  ];
  test.each(nothing)('%s: they buy nothing', (_what, reason, one) => {
    const { demands, ignored } = demandOf(one);
    expect(demands).toEqual([]);
    expect(ignored.map((known) => known.reason)).toEqual(reason ? [reason] : []);
  });

  it('beyond the limit are counted, with an example', () => {
    const gated = [
      pod('1', undefined, scheduled('SchedulingGated')),
      pod('1', undefined, scheduled('SchedulingGated')),
    ];
    const { ignored } = demandOf(...gated);
    expect(ignored).toEqual([{ reason: 'Gated', pods: 2, example: `shop/${gated[0]!.metadata.name}` }]);
    expect(NOT_DEMAND.Gated).toBeTruthy();
  });

  it('buy with the lowest priority, and when nominated for a node that is gone', () => {
    const gone = pod('1', undefined, { status: { ...scheduled('Unschedulable').status, nominatedNodeName: 'n9' } });
    expect(
      demandOf(pod('1', undefined, { spec: { priority: -10 } }), gone).demands.flatMap(({ keys }) => keys),
    ).toHaveLength(2);
  });
});
