import type { PendingPod, PricedTemplate } from '../../operator/burst/fit/model.ts';
import { allocatableOf } from '../../operator/burst/fit/node.ts';
import { pack } from '../../operator/burst/fit/pack.ts';
import { fitPod } from '../../operator/burst/fit/pod.ts';
import { keptPod } from '../../operator/clusters/kept-pod.ts';
import type { Node, Pod } from '../../operator/kube/resources.ts';
import { clusterState } from '../kit/burst/plan-at-once.ts';

const NODES = 10_000;
const PODS_EACH = 8;
const PENDING = 5000;
const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';

const away = (app: string, topologyKey: string) => ({
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: { matchLabels: { app } } }],
    },
  },
});
const spread = (app: string, topologyKey: string) => ({
  topologySpreadConstraints: [
    { topologyKey, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app } } },
  ],
});
/** A fifth of the pods each, as Karpenter's benchmark has them. */
const KINDS = [
  () => ({}),
  (app: string) => spread(app, ZONE),
  (app: string) => spread(app, HOSTNAME),
  (app: string) => away(app, HOSTNAME),
  () => ({ nodeSelector: { [ZONE]: 'a' } }),
];

function podOf(app: number, spec: object): Pod {
  const requests = { cpu: '500m', memory: '1Gi' };
  return keptPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: `team-${app % 40}`, labels: { app: `a${app}` } },
    spec: { containers: [{ name: 'c', resources: { requests } }], ...spec },
  });
}

const nodes = (): Node[] =>
  Array.from({ length: NODES }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `n${index}`, labels: { [HOSTNAME]: `n${index}`, [ZONE]: 'abc'[index % 3]! } },
    spec: {},
    status: { allocatable: { cpu: '4', memory: '16Gi', pods: '110' } },
  }));

const offers = (): PricedTemplate[] =>
  ['a', 'b', 'c'].flatMap((zone) =>
    [2, 4, 8, 16, 32].map((cores) => ({
      template: {
        id: `${zone}-${cores}`,
        labels: { [ZONE]: zone },
        taints: [],
        allocatable: allocatableOf({ cpu: `${cores}`, memory: `${cores * 4}Gi`, pods: '110' }),
        attachLimits: new Map(),
      },
      price: cores,
      countsAgainst: [zone],
    })),
  );

function milliseconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Times of packing the pending pods of a large cluster that is full, by title, in milliseconds of CPU. */
export function measurePacking(): Record<string, number> {
  const running = Array.from({ length: NODES * PODS_EACH }, (_, index) => {
    const pod = podOf(index % 500, KINDS[index % 2]!(`a${index % 500}`));
    return { ...pod, spec: { ...pod.spec, nodeName: `n${Math.floor(index / PODS_EACH)}` } };
  });
  const objects = { nodes: nodes(), pods: running, namespaces: new Map() };
  let state = clusterState(objects);
  const packing = (workloads: number) => {
    const pending = Array.from({ length: PENDING }, (_, index): PendingPod => {
      const app = 1000 + (index % workloads);
      return { key: `w${index}`, pod: fitPod(podOf(app, KINDS[app % KINDS.length]!(`a${app}`))) };
    });
    return milliseconds(() => state.whatIf(() => pack(pending, state, { offers: offers() })));
  };
  return {
    'the state of 10,000 nodes with 80,000 pods, made anew (clusterState)': milliseconds(() => {
      state = clusterState(objects);
    }),
    '5,000 pods of 100 workloads onto these, which are full, and new ones (pack)': packing(100),
    '5,000 pods of as many workloads': packing(PENDING),
  };
}
