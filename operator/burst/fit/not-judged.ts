import { INLINE_DISKS } from '../../kube/pods.ts';
import type { Pod } from '../../kube/resources.ts';

/**
 * Pod features that are not modelled, with the text for pods that use them. Such pods buy nothing: a node that they
 * then cannot use costs money each hour. Listed in docs/concepts/fitting.md.
 */
export const NOT_JUDGED = {
  ResourceClaims: 'it asks for devices by ResourceClaims (dynamic resource allocation)',
  OtherScheduler: 'it names a scheduler other than default-scheduler, whose rules are not known',
  TaintComparison: 'it has a toleration with operator Gt or Lt',
  PodGroup: 'it belongs to a group of pods that are scheduled together',
  DeclaredFeatures:
    'it needs a feature that nodes must declare (spec.hostUsers on the network of the host, restart rules)',
  InlineDisk: 'it mounts a disk of a cloud, iSCSI or Ceph by itself, without a claim',
  VolumesUnknown: 'it uses claims, and the volumes of its cluster are not watched',
  StaticVolumes:
    'it has a claim for volumes that somebody makes by hand (no provisioner), and they are matched at scheduling',
  StorageCapacity: 'the driver of a claim publishes how much storage each node reaches',
  InTreeVolume: 'a claim is bound to a volume of a driver that was part of Kubernetes',
  NamespacesUnknown: 'it selects pods by labels of their namespaces, and namespaces of its cluster are not watched',
  BadQuantity: 'it asks for an amount that cannot be read',
} as const;

/** Key of NOT_JUDGED. */
export type NotJudgedReason = keyof typeof NOT_JUDGED;

interface Container {
  restartPolicyRules?: { action?: string }[];
}

/** Features of a pod spec that are not modelled. */
export function notJudgedOf(spec: Pod['spec']): NotJudgedReason[] {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])] as Container[];
  const found: Partial<Record<NotJudgedReason, boolean>> = {
    ResourceClaims: (spec.resourceClaims ?? []).length > 0,
    OtherScheduler: (spec.schedulerName ?? 'default-scheduler') !== 'default-scheduler',
    TaintComparison: (spec.tolerations ?? []).some(({ operator }: { operator?: string }) =>
      ['Gt', 'Lt'].includes(operator ?? ''),
    ),
    PodGroup: spec.schedulingGroup !== undefined || spec.workloadRef !== undefined,
    DeclaredFeatures:
      (spec.hostNetwork === true && spec.hostUsers === false) ||
      containers.some(({ restartPolicyRules = [] }) =>
        restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
      ),
    InlineDisk: (spec.volumes ?? []).some((volume: object) => INLINE_DISKS.some((disk) => disk in volume)),
  };
  return (Object.keys(found) as NotJudgedReason[]).filter((reason) => found[reason]);
}
