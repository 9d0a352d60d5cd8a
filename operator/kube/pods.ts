import type { Pod } from './resources.ts';

/** Disks that a pod may mount without a claim, of which a scheduler knows that they are attached to one node at a time. */
export const INLINE_DISKS = [
  'awsElasticBlockStore',
  'azureDisk',
  'cinder',
  'gcePersistentDisk',
  'iscsi',
  'portworxVolume',
  'rbd',
] as const;

/** Whether a pod has ended and only its object is left. */
export const hasEnded = ({ status }: Pick<Pod, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Whether it belongs to its node, and nobody could move it. */
export const isOfNode = ({ metadata: { annotations, ownerReferences } }: Pod): boolean =>
  annotations?.['kubernetes.io/config.mirror'] !== undefined ||
  (ownerReferences ?? []).some(({ kind, controller }) => kind === 'Node' || (kind === 'DaemonSet' && controller));

/** Whether a pod must leave before its node goes: finished, mirror and DaemonSet pods go with it. */
export const isMovable = (pod: Pod): boolean => !hasEnded(pod) && !isOfNode(pod);
