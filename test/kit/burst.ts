import type { ReplicaDemand } from '../../operator/burst/demand.ts';
import { allocatableOf, fitNode } from '../../operator/burst/fit/node.ts';
import { fitPod } from '../../operator/burst/fit/pod.ts';
import { type ClusterFacts, ClusterState } from '../../operator/burst/fit/state.ts';
import type { PoolView } from '../../operator/burst/nodes/model.ts';
import type { NodesView } from '../../operator/burst/nodes/plan.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../operator/kube/resources.ts';

/** Milliseconds since the epoch. */
export const NOW = Date.parse('2026-11-23T00:00:00Z');
export const MINUTE = 60_000;

let serial = 0;

/** What a pod has that uses a claim. */
export const claims = (claimName: string) => ({
  spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] },
});

/** A claim and the volume that it is bound to. @param spec of the volume */
export function boundClaim(
  name: string,
  spec: object = {},
  accessModes: readonly string[] = ['ReadWriteOnce'],
): { claim: PersistentVolumeClaim; volume: PersistentVolume } {
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
  return {
    claim: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'shop', annotations },
      spec: { volumeName: `pv-${name}`, accessModes: [...accessModes] },
    },
    volume: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `pv-${name}` }, spec: { ...spec } },
  };
}

/** Node affinity of a volume. */
export const reachedWhere = (key: string, ...values: string[]) => ({
  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values }] }] } },
});

/** A pod of a ReplicaSet that asks for so much. @param where its node; absent: it waits */
export function pod(
  cpu: string,
  where?: string,
  more: { metadata?: object; spec?: object; status?: object } = {},
): Pod {
  const name = `web-${++serial}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      creationTimestamp: '2026-11-23T00:00:00Z',
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'rs', controller: true }],
      ...more.metadata,
    },
    spec: {
      containers: [{ name: 'c', resources: { requests: { cpu } } }],
      tolerations: TOLERATIONS,
      ...(where && { nodeName: where }),
      ...more.spec,
    },
    status: where
      ? { phase: 'Running' }
      : {
          phase: 'Pending',
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              reason: 'Unschedulable',
              lastTransitionTime: '2026-11-22T23:59:50Z',
            },
          ],
          ...more.status,
        },
  };
}

/** What the node controller of Kubernetes adds while a node is cordoned, and takes away afterwards. */
const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' as const };

/** Spec of a node as a cluster shows it: cordoned nodes have Kubernetes' own taint. */
export const withCordon = (spec: Node['spec']): Node['spec'] => {
  const others = (spec.taints ?? []).filter(({ key }) => key !== CORDON.key);
  const { taints: _, ...rest } = spec;
  const taints = spec.unschedulable ? [...others, CORDON] : others;
  return { ...rest, ...(taints.length > 0 && { taints }) };
};

/** What admission gives each pod (DefaultTolerationSeconds). */
const TOLERATIONS = ['not-ready', 'unreachable'].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));

/** A node of 4 CPUs that is Ready. */
export const node = (
  name: string,
  pool = 'a',
  more: { metadata?: object; spec?: object; status?: object } = {},
  cpu = '4',
): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name,
    uid: `uid-${name}`,
    creationTimestamp: '2026-11-22T00:00:00Z',
    labels: {
      'kubernetes.io/hostname': name,
      'node.kubernetes.io/instance-type': 'medium',
      'multi-cluster.demo.io/pool': pool,
    },
    ...more.metadata,
  },
  spec: withCordon({ ...more.spec }),
  status: {
    allocatable: { cpu, memory: '8Gi', pods: '110' },
    conditions: [{ type: 'Ready', status: 'True' }],
    ...more.status,
  },
});

export const poolView = (name: string, more: Partial<PoolView> & { cpu?: string; price?: number } = {}): PoolView => {
  const { cpu = '4', price = 1, ...view } = more;
  return {
    name,
    count: 0,
    minimum: 0,
    maximum: 10,
    present: 0,
    offer: {
      template: {
        id: name,
        labels: { pool: name },
        taints: [],
        allocatable: allocatableOf({ cpu, memory: '32Gi', pods: '110' }),
        attachLimits: new Map(),
      },
      price,
    },
    ...view,
  };
};

export const demand = (count: number, cpu: string, more: Partial<ReplicaDemand> = {}): ReplicaDemand => {
  const made = Array.from({ length: count }, () => pod(cpu));
  return {
    who: 'ReplicaSet shop/web',
    replica: fitPod(made[0]!),
    keys: made.map(({ metadata }) => metadata.uid!),
    since: '2026-11-22T23:59:50Z',
    source: 'PendingPods',
    isSystem: false,
    ...more,
  };
};

/** Nodes, and the pods that run there. */
export function stateOf(nodes: readonly Node[], pods: readonly Pod[] = [], facts: ClusterFacts = {}): ClusterState {
  const state = new ClusterState(facts);
  for (const one of nodes) state.addNode(fitNode(one));
  for (const one of pods) if (one.spec.nodeName) state.place(fitPod(one), one.spec.nodeName);
  return state;
}

export const nodesView = (more: Partial<NodesView> = {}): NodesView => ({
  state: stateOf([]),
  demands: [],
  pools: [],
  nodes: [],
  most: 1000,
  refused: () => undefined,
  notReady: [],
  hasWork: true,
  daemons: [],
  mayShrink: () => true,
  unneededSince: new Map(),
  waitMs: () => 10 * MINUTE,
  mayTakeNodes: true,
  now: NOW,
  ...more,
});
