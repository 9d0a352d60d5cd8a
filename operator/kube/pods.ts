import type { Pod } from './resources.ts';

/** Volume types that a pod may mount without a claim and that attach to one node at a time. */
export const INLINE_DISKS = [
  'awsElasticBlockStore',
  'azureDisk',
  'cinder',
  'gcePersistentDisk',
  'iscsi',
  'portworxVolume',
  'rbd',
] as const;

/** Whether a pod has ended and only its object remains. */
export const hasEnded = ({ status }: Pick<Pod, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Whether the pod is bound to its node: a mirror or DaemonSet pod, which cannot move. */
export const isOfNode = ({ metadata: { annotations, ownerReferences } }: Pod): boolean =>
  annotations?.['kubernetes.io/config.mirror'] !== undefined ||
  (ownerReferences ?? []).some(({ kind, controller }) => kind === 'Node' || (kind === 'DaemonSet' && controller));

/** Whether a pod must leave before its node goes: finished, mirror and DaemonSet pods go with the node. */
export const isMovable = (pod: Pod): boolean => !hasEnded(pod) && !isOfNode(pod);
