import type { CSINode } from '../../../operator/burst/fit/node.ts';
import type { CSIDriver, StorageClass, VolumeAttachment } from '../../../operator/burst/fit/volume-facts.ts';
import type {
  KubeObject,
  KubeTaint,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
} from '../../../operator/kube/resources.ts';

type Labels = Record<string, string>;

/** What differs from an ordinary node: 4 cores, 8Gi, 110 pods. */
export interface CaseNode {
  labels?: Labels;
  taints?: KubeTaint[];
  unschedulable?: boolean;
  allocatable?: Labels;
  /** Most volumes, by CSI driver; absent: there is no CSINode. */
  limits?: Record<string, number>;
}

/** What differs from a pod that asks for nothing, in namespace team-a. */
export interface CasePod {
  /** The node that it runs on. */
  on?: string;
  namespace?: string;
  labels?: Labels;
  terminating?: boolean;
  spec?: Record<string, any>;
  status?: object;
}

/** What differs from a claim that is bound, in namespace team-a. */
export interface CaseClaim {
  namespace?: string;
  annotations?: Labels;
  terminating?: boolean;
  /** Owned by the pod in question. */
  ofPod?: boolean;
  spec: Record<string, any>;
  phase?: string;
}

export interface CaseVolume {
  labels?: Labels;
  spec?: Record<string, any>;
}

/** A pod, and nodes of which the first is open to it; the others are full, but count for spread and affinity. */
export interface FitCase {
  name: string;
  /** In this order: n0, n1, ... */
  nodes: CaseNode[];
  pods?: CasePod[];
  claims?: Record<string, CaseClaim>;
  volumes?: Record<string, CaseVolume>;
  classes?: Record<string, Omit<StorageClass, keyof KubeObject>>;
  drivers?: Record<string, CSIDriver['spec']>;
  /** Volumes that are attached: name → index of the node. */
  attached?: Record<string, number>;
  pod: CasePod;
}

/** A case with what kube-scheduler said: null when it took the open node, else its message. */
export interface JudgedCase extends FitCase {
  verdict: string | null;
}

/** Namespaces of all cases. */
export const NAMESPACES_OF_CASES: Record<string, Labels> = {
  'team-a': { team: 'a', env: 'prod' },
  'team-b': { team: 'b', env: 'prod' },
  'team-c': { team: 'c' },
};

/** The open node. */
export const OPEN = 'n0';
/** The pod in question. */
export const SUBJECT = 'subject';
export const BOUND = 'pv.kubernetes.io/bind-completed';
const DRIVER = 'csi.example.com';

/** All objects of a case, as the API server would have them. */
export interface CaseObjects {
  nodes: Node[];
  pods: Pod[];
  subject: Pod;
  claims: PersistentVolumeClaim[];
  volumes: PersistentVolume[];
  classes: StorageClass[];
  drivers: CSIDriver[];
  csiNodes: (CSINode & KubeObject)[];
  attachments: VolumeAttachment[];
}

const labelled = (labels: Labels | undefined) => (labels ? { labels } : {});

export function objectsOf(of: FitCase): CaseObjects {
  const there = (index: number) => (of.pods ?? []).filter(({ on }) => on === `n${index}`).length;
  return {
    nodes: of.nodes.map(({ labels, taints, unschedulable, allocatable }, index) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `n${index}`, labels: { 'kubernetes.io/hostname': `n${index}`, ...labels } },
      spec: { ...(taints && { taints }), ...(unschedulable && { unschedulable }) },
      status: {
        allocatable: {
          cpu: '4',
          memory: '8Gi',
          'ephemeral-storage': '20Gi',
          pods: '110',
          ...allocatable,
          ...(index > 0 && { pods: `${there(index)}` }),
        },
      },
    })),
    pods: (of.pods ?? []).map((pod, index) => podOf(pod, `p${index}`)),
    subject: podOf(of.pod, SUBJECT),
    claims: Object.entries(of.claims ?? {}).map(([name, claim]) => claimOf(name, claim)),
    volumes: Object.entries(of.volumes ?? {}).map(([name, { labels, spec }]) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name, ...labelled(labels) },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        ...(!Object.keys(spec ?? {}).some((key) => ['gcePersistentDisk', 'hostPath'].includes(key)) && {
          csi: { driver: DRIVER, volumeHandle: name },
        }),
        ...spec,
      },
    })),
    classes: Object.entries(of.classes ?? {}).map(([name, rest]) => ({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: DRIVER,
      ...rest,
    })),
    drivers: Object.entries(of.drivers ?? {}).map(([name, spec]) => ({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name },
      spec,
    })),
    csiNodes: of.nodes.flatMap(({ limits }, index) =>
      limits
        ? [
            {
              apiVersion: 'storage.k8s.io/v1',
              kind: 'CSINode',
              metadata: { name: `n${index}` },
              spec: {
                drivers: Object.entries(limits).map(([name, count]) => ({
                  name,
                  nodeID: `n${index}`,
                  topologyKeys: null,
                  allocatable: { count },
                })),
              },
            },
          ]
        : [],
    ),
    attachments: Object.entries(of.attached ?? {}).map(([volume, index]) => ({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: `${volume}-n${index}` },
      spec: { attacher: DRIVER, nodeName: `n${index}`, source: { persistentVolumeName: volume } },
    })),
  };
}

const podOf = ({ on, namespace = 'team-a', labels, terminating, spec, status }: CasePod, name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace,
    uid: name,
    ...labelled(labels),
    ...(terminating && { deletionTimestamp: '2026-11-23T00:00:00Z' }),
  },
  spec: {
    ...(on && { nodeName: on }),
    ...spec,
    containers: (spec?.containers ?? [{}]).map((one: object, index: number) => ({
      name: `c${index}`,
      image: 'i',
      ...one,
    })),
    ...(spec?.initContainers && {
      initContainers: spec.initContainers.map((one: object, index: number) => ({
        name: `i${index}`,
        image: 'i',
        ...one,
      })),
    }),
  },
  ...(status && { status }),
});

const claimOf = (name: string, claim: CaseClaim): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name,
    namespace: claim.namespace ?? 'team-a',
    ...(claim.annotations && { annotations: claim.annotations }),
    ...(claim.terminating && { deletionTimestamp: '2026-11-23T00:00:00Z' }),
    ...(claim.ofPod && {
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: SUBJECT, uid: SUBJECT, controller: true }],
    }),
  },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...claim.spec },
  ...(claim.phase && { status: { phase: claim.phase } }),
});
