import { describe, expect, it } from 'vitest';
import { isSystem } from '../../../operator/burst/demand.ts';
import { fitNode } from '../../../operator/burst/fit/node.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { ClusterState } from '../../../operator/burst/fit/state.ts';
import { type StorageClass, type VolumeFacts, volumeFacts } from '../../../operator/burst/fit/volume-facts.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../../operator/kube/resources.ts';
import { machineStorageClass, provisionerManifests } from '../../../operator/shoot/machine-volumes.ts';
import { local } from '../../../providers/local/index.ts';
import { planGrowth, planNodes } from '../../kit/burst/plan-at-once.ts';
import { demand, MINUTE, NOW, node, nodesView, pod, poolView } from '../../kit/burst.ts';

const classes = machineStorageClass([]) as StorageClass[];
const storageClassName = classes[0]!.metadata.name;
const HAS_DATA = { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } };

const claim = (more: { metadata?: object; spec?: object } = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'shop', ...more.metadata },
  spec: { storageClassName, accessModes: ['ReadWriteOnce'], ...more.spec },
});

/** A volume as local-path-provisioner makes it on that machine, and its claim. */
function volumeOn(host: string): VolumeFacts {
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [host] }];
  const volume: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pvc-1', annotations: { 'local.path.provisioner/selected-node': host } },
    spec: {
      storageClassName,
      local: { path: `${local.machineVolumes!.folder}/pvc-1_shop_data` },
      claimRef: { namespace: 'shop', name: 'data', uid: 'c' },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  };
  const bound = { 'pv.kubernetes.io/bind-completed': 'yes' };
  return volumeFacts({
    claims: [claim({ metadata: { annotations: bound }, spec: { volumeName: 'pvc-1' } })],
    volumes: [volume],
    classes,
  });
}

function stateOf(names: readonly string[], pods: readonly Pod[], volumes: VolumeFacts): ClusterState {
  const state = new ClusterState({ volumes });
  for (const name of names) state.addNode(fitNode(node(name)));
  for (const one of pods) state.place(fitPod(one), one.spec.nodeName!);
  return state;
}

/** Nodes that go, of a cluster that needs few of them for long already. */
function begun(names: readonly string[], pods: readonly Pod[], volumes: VolumeFacts): string[] {
  const view = nodesView({
    state: stateOf(names, pods, volumes),
    pools: [poolView('a', { count: names.length, present: names.length })],
    nodes: names.map((name) => ({
      name,
      pool: 'a',
      price: 1,
      pods: pods.filter(({ spec }) => spec.nodeName === name),
      isEmptying: false,
    })),
    unneededSince: new Map(names.map((name) => [name, NOW - 60 * MINUTE])),
  });
  return planNodes(view).shrinkage.begin.map((one) => one.node);
}

describe("a pod with data on a machine's disk", () => {
  it('keeps its node, and not another that pods without data could leave', () => {
    const pods = [pod('1', 'n1', HAS_DATA), pod('1', 'n2'), pod('1', 'n2')];
    expect(begun(['n1', 'n2'], pods, volumeOn('n1'))).toEqual(['n2']);
    expect(begun(['n1', 'n2'], [pod('1', 'n1'), ...pods.slice(1)], volumeOn('n1'))).toEqual(['n1']);
  });

  const bought = (volumes: VolumeFacts) => {
    const replica = fitPod(pod('2', undefined, HAS_DATA));
    const view = nodesView({
      state: stateOf([], [], volumes),
      demands: [demand(1, '2', { replica })],
      pools: [poolView('a')],
    });
    return planGrowth({ ...view, emptying: [] }).sizes.map(({ pool, count }) => `${pool} ${count}`);
  };

  it('buys no node after its own is gone, since no new node would have the data', () => {
    expect(bought(volumeOn('gone'))).toEqual([]);
  });

  it('buys a node while its volume does not exist yet, since the volume follows the node', () => {
    expect(bought(volumeFacts({ claims: [claim()], classes }))).toEqual(['a 1']);
  });
});

it('of the volume provisioner keeps no node, and buys none', () => {
  const { metadata, spec } = provisionerManifests(local.machineVolumes!);
  const made = { ...pod('5m'), metadata: { ...spec.template.metadata, name: 'one', namespace: metadata.namespace! } };
  expect(isSystem(made)).toBe(true);
});
