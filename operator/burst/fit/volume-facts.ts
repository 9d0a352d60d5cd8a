import type { KubeObject, PersistentVolume, PersistentVolumeClaim } from '../../kube/resources.ts';

export interface StorageClass extends KubeObject {
  provisioner?: string;
  volumeBindingMode?: string;
  allowedTopologies?: { matchLabelExpressions?: { key: string; values?: string[] }[] }[];
}

export interface CSIDriver extends KubeObject {
  spec: { storageCapacity?: boolean };
}

export interface VolumeAttachment extends KubeObject {
  spec: { attacher: string; nodeName: string; source: { persistentVolumeName?: string } };
}

/** Volumes of a cluster. Claims and volumes need their annotations and labels, which hold binding and zones. */
export interface VolumeFacts {
  /** By namespace/name. */
  claims: ReadonlyMap<string, PersistentVolumeClaim>;
  volumes: ReadonlyMap<string, PersistentVolume>;
  classes: ReadonlyMap<string, StorageClass>;
  /** Drivers that publish CSIStorageCapacities. */
  driversWithCapacity: ReadonlySet<string>;
  /** By node: attached volumes with their drivers. */
  attached: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/** Combines cached objects of a cluster. */
export function volumeFacts(objects: {
  claims?: readonly PersistentVolumeClaim[];
  volumes?: readonly PersistentVolume[];
  classes?: readonly StorageClass[];
  drivers?: readonly CSIDriver[];
  attachments?: readonly VolumeAttachment[];
}): VolumeFacts {
  const { claims = [], volumes = [], classes = [], drivers = [], attachments = [] } = objects;
  const attached = new Map<string, Map<string, string>>();
  for (const { spec } of attachments) {
    const volume = spec.source.persistentVolumeName;
    if (!volume || !spec.attacher) continue;
    const there = attached.get(spec.nodeName) ?? new Map<string, string>();
    attached.set(spec.nodeName, there.set(volume, spec.attacher));
  }
  return {
    claims: new Map(claims.map((claim) => [`${claim.metadata.namespace}/${claim.metadata.name}`, claim])),
    volumes: new Map(volumes.map((volume) => [volume.metadata.name, volume])),
    classes: new Map(classes.map((each) => [each.metadata.name, each])),
    driversWithCapacity: new Set(
      drivers.filter(({ spec }) => spec.storageCapacity).map(({ metadata }) => metadata.name),
    ),
    attached,
  };
}
