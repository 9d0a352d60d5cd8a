import type { PersistentVolumeClaim } from '../../../kube/resources.ts';

/** StorageClass of a claim; the older annotation takes precedence. */
export const classOf = ({ metadata, spec }: PersistentVolumeClaim): string =>
  metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec.storageClassName ?? '';
