import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { judgePod } from '../../../../operator/burst/fit/judge.ts';
import { fitNode } from '../../../../operator/burst/fit/node.ts';
import { NOT_JUDGED, type NotJudgedReason } from '../../../../operator/burst/fit/not-judged.ts';
import { pack } from '../../../../operator/burst/fit/pack.ts';
import { fitPod } from '../../../../operator/burst/fit/pod.ts';
import { type ClusterFacts, ClusterState } from '../../../../operator/burst/fit/state.ts';
import { volumeFacts } from '../../../../operator/burst/fit/volume-facts.ts';
import { keptPod } from '../../../../operator/clusters/kept-pod.ts';
import { buildPod } from '../../../kit/builders/objects.ts';

const claim = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] };
const asked = (spec: object, annotations = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c', namespace: 'n', annotations },
  spec: { storageClassName: 's', ...spec },
});
const late = (provisioner: string) => [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 's' },
    provisioner,
    volumeBindingMode: 'WaitForFirstConsumer',
  },
];

/** One pod for each reason, and what is known of its cluster. */
const EXAMPLES: Record<NotJudgedReason, { spec: object; facts?: ClusterFacts }> = {
  ResourceClaims: { spec: { resourceClaims: [{ name: 'gpu' }] } },
  OtherScheduler: { spec: { schedulerName: 'volcano' } },
  TaintComparison: { spec: { tolerations: [{ key: 'a', operator: 'Gt', value: '1' }] } },
  PodGroup: { spec: { schedulingGroup: { podGroupName: 'g' } } },
  DeclaredFeatures: { spec: { hostNetwork: true, hostUsers: false } },
  InlineDisk: { spec: { volumes: [{ name: 'd', gcePersistentDisk: { pdName: 'd' } }] } },
  VolumesUnknown: { spec: claim },
  StaticVolumes: {
    spec: claim,
    facts: { volumes: volumeFacts({ claims: [asked({})], classes: late('kubernetes.io/no-provisioner') }) },
  },
  StorageCapacity: {
    spec: claim,
    facts: {
      volumes: volumeFacts({
        claims: [asked({})],
        classes: late('d'),
        drivers: [
          {
            apiVersion: 'storage.k8s.io/v1',
            kind: 'CSIDriver',
            metadata: { name: 'd' },
            spec: { storageCapacity: true },
          },
        ],
      }),
    },
  },
  InTreeVolume: {
    spec: claim,
    facts: {
      volumes: volumeFacts({
        claims: [asked({ volumeName: 'pv' }, { 'pv.kubernetes.io/bind-completed': 'yes' })],
        volumes: [
          {
            apiVersion: 'v1',
            kind: 'PersistentVolume',
            metadata: { name: 'pv' },
            spec: { gcePersistentDisk: { pdName: 'd' } },
          },
        ],
      }),
    },
  },
  NamespacesUnknown: {
    spec: {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'a', namespaceSelector: {}, labelSelector: {} },
          ],
        },
      },
    },
  },
  BadQuantity: { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '9'.repeat(30) } } }] } },
};

describe('a pod rule that fit does not judge', () => {
  it.each(Object.keys(NOT_JUDGED) as NotJudgedReason[])('buys nothing and gives reason %s, as documented', (reason) => {
    const { spec, facts } = EXAMPLES[reason];
    const pod = buildPod({
      metadata: { name: 'p', namespace: 'n' },
      spec: { containers: [], ...spec },
    });
    const state = new ClusterState(facts);
    const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
    state.addNode(
      fitNode({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, spec: {}, status: { allocatable } }),
    );
    const kept = fitPod(keptPod(pod));
    expect(judgePod(kept, 'a', state)).toEqual({ verdict: 'NotJudged', reasons: [reason] });
    expect(pack([{ key: 'p', pod: kept }], state).notJudged).toEqual(new Map([['p', [reason]]]));
    expect(readFileSync('docs/concepts/fitting.md', 'utf8')).toContain(`| \`${reason}\` |`);
  });
});
