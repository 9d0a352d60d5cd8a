import { describe, expect, it } from 'vitest';
import { volumeFacts } from '../../../operator/burst/fit/volume-facts.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { planNodes } from '../../kit/burst/plan-at-once.ts';
import {
  boundClaim,
  claims,
  MINUTE,
  NOW,
  node,
  nodesView,
  pod,
  poolView,
  reachedWhere,
  stateOf,
} from '../../kit/burst.ts';

const ZONE = 'topology.kubernetes.io/zone';
const HOST = 'kubernetes.io/hostname';
const CSI = { csi: { driver: 'disk.example.com', volumeHandle: 'd1' } };

type Claimed = ReturnType<typeof boundClaim>;

/** Nodes of 4 CPUs of which two would do, by zones; n1 has a pod with a claim, n2 one without. */
function planned(known: readonly Claimed[] | undefined, zones: string[] = ['a', 'a'], more: readonly Pod[] = []) {
  const nodes = zones.map((zone, index) => {
    const name = `n${index + 1}`;
    return node(name, 'a', { metadata: { name, labels: { [HOST]: name, [ZONE]: zone } } });
  });
  const data = pod('1', 'n1', { ...claims('data'), metadata: { name: 'db-0', namespace: 'shop' } });
  const pods = [data, pod('1', 'n2'), pod('1', 'n2'), ...more];
  const volumes =
    known && volumeFacts({ claims: known.map(({ claim }) => claim), volumes: known.map(({ volume }) => volume) });
  const { begin, pinned, keep } = planNodes(
    nodesView({
      state: stateOf(nodes, pods, { volumes }),
      pools: [poolView('a', { count: nodes.length, minimum: 1, present: nodes.length })],
      nodes: nodes.map(({ metadata: { name } }) => ({
        name,
        pool: 'a',
        price: 1,
        pods: pods.filter(({ spec }) => spec.nodeName === name),
        ...(name !== 'n1' && { stays: 'it is asked about n1' }),
        isEmptying: false,
      })),
      unneededSince: new Map([['n1', NOW - 60 * MINUTE]]),
    }),
  ).shrinkage;
  expect(keep).toEqual([]);
  return { goes: begin.map((one) => one.node), why: pinned.map(({ why }) => why) };
}
const GOES = { goes: ['n1'], why: [] };
const stays = (why?: string) => ({ goes: [], why: why === undefined ? [] : [`pod shop/db-0 ${why}`] });

describe('a node with a pod that has a claim', () => {
  it.each<[string, object]>([
    ['on the network', CSI],
    ['on the network, in a zone that has another node', { ...CSI, ...reachedWhere(ZONE, 'a') }],
    ['that a server exports', { nfs: { server: 'files', path: '/' } }],
  ])('goes when its volume is %s: the pod takes it along', (_what, spec) => {
    expect(planned([boundClaim('data', spec)])).toEqual(GOES);
  });

  it.each<[string, object]>([
    ['local', { local: { path: '/disks/1' }, ...reachedWhere(HOST, 'n1') }],
    ['local, though somebody says that other nodes reach it', { local: { path: '/disks/1' } }],
    ['a folder of a node, which names none', { hostPath: { path: '/data' } }],
  ])('stays when its volume is %s, and says so', (_what, spec) => {
    expect(planned([boundClaim('data', spec)])).toEqual(
      stays('has data on the disk of this node (PersistentVolumeClaim data)'),
    );
  });

  it('stays when no other node reaches the volume', () => {
    const says = stays('has data that no other node reaches (PersistentVolumeClaim data)');
    expect(planned([boundClaim('data', { ...CSI, ...reachedWhere(HOST, 'n1') })])).toEqual(says);
    expect(planned([boundClaim('data', { ...CSI, ...reachedWhere(ZONE, 'a') })], ['a', 'b'])).toEqual(says);
  });

  it('stays when the other nodes that reach the volume are full', () => {
    const inZone = [boundClaim('data', { ...CSI, ...reachedWhere(ZONE, 'a') })];
    const zones = ['a', 'b', 'a'];
    expect(planned(inZone, zones)).toEqual(GOES);
    expect(planned(inZone, zones, [pod('4', 'n3')]).goes).toEqual([]);
  });

  it('stays when its use, or its volume, is unknown', () => {
    expect(planned(undefined)).toEqual(
      stays('uses PersistentVolumeClaim data, and the volumes of the cluster are not known'),
    );
    const unknown = stays('uses PersistentVolumeClaim data, whose volume is not known');
    expect(planned([])).toEqual(unknown);
    const { claim, volume } = boundClaim('data', CSI);
    expect(planned([{ claim, volume: { ...volume, metadata: { name: 'other' } } }])).toEqual(unknown);
    const unbound = { ...claim, metadata: { ...claim.metadata, annotations: {} } };
    expect(planned([{ claim: unbound, volume }])).toEqual(unknown);
  });

  it('stays when pods share a ReadWriteOnce volume, and goes for a ReadWriteMany volume', () => {
    const other = [pod('1', 'n1', claims('data'))];
    expect(planned([boundClaim('data', CSI)], ['a', 'a'], other)).toEqual(
      stays('shares PersistentVolumeClaim data with other pods, which must be on one node'),
    );
    expect(planned([boundClaim('data', CSI, ['ReadWriteOnce', 'ReadOnlyMany'])], ['a', 'a'], other).goes).toEqual([]);
    for (const modes of [['ReadWriteMany'], ['ReadOnlyMany']])
      expect(planned([boundClaim('data', CSI, modes)], ['a', 'a'], other)).toEqual(GOES);
  });

  it('goes with a ReadWriteOncePod volume, since the single pod moves', () => {
    expect(planned([boundClaim('data', CSI, ['ReadWriteOncePod'])])).toEqual(GOES);
  });
});
