import type { PersistentVolumeClaim } from '../../../kube/resources.ts';

/** The class of a claim; the annotation is older and wins. */
export const classOf = ({ metadata, spec }: PersistentVolumeClaim): string =>
  metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec.storageClassName ?? '';
