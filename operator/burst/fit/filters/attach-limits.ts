import type { PersistentVolume } from '../../../kube/resources.ts';
import type { FitPod } from '../model.ts';
import type { NodeState } from '../state.ts';
import type { VolumeFacts } from '../volume-facts.ts';
import { classOf } from './claim-class.ts';

/** Sources of volumes that were part of Kubernetes, and the drivers that took their place. */
const IN_TREE: Record<string, string> = {
  awsElasticBlockStore: 'ebs.csi.aws.com',
  azureDisk: 'disk.csi.azure.com',
  cinder: 'cinder.csi.openstack.org',
  gcePersistentDisk: 'pd.csi.storage.gke.io',
  portworxVolume: 'pxd.portworx.com',
};

/** Whether a driver that was part of Kubernetes made the volume: its zones are then translated by rules of each. */
export const isInTree = (volume: PersistentVolume): boolean =>
  Object.keys(IN_TREE).some((source) => volume.spec[source] !== undefined);

interface CSISource {
  driver: string;
  volumeHandle: string;
}

/** Volumes that a pod has attached, by a name that no two share → driver. */
function volumesOf(pod: FitPod, { claims, volumes, classes }: VolumeFacts): Map<string, string> {
  const found = new Map<string, string>();
  for (const { name } of pod.claims) {
    const claim = claims.get(`${pod.namespace}/${name}`);
    if (!claim) continue;
    const volume = claim.spec.volumeName ? volumes.get(claim.spec.volumeName) : undefined;
    const inTree = volume && Object.keys(IN_TREE).find((source) => volume.spec[source] !== undefined);
    const csi = volume?.spec.csi as CSISource | undefined;
    if (csi) found.set(`${csi.driver}/${csi.volumeHandle}`, csi.driver);
    else if (inTree) found.set(`${IN_TREE[inTree]}/${volume.metadata.name}`, IN_TREE[inTree]!);
    else if (!volume) {
      // Not made yet: the class says who will make it.
      const driver = classes.get(classOf(claim))?.provisioner;
      if (driver) found.set(`${driver} for ${pod.namespace}/${name}`, driver);
    }
  }
  return found;
}

/**
 * NodeVolumeLimits: whether the volumes of a pod are more than its node may have attached, with those of pods there, each once, and those
 * that are attached still.
 */
export function exceedsAttachLimit(pod: FitPod, { node, pods }: NodeState, facts: VolumeFacts): boolean {
  if (node.attachLimits.size === 0) return false;
  const wanted = volumesOf(pod, facts);
  if (wanted.size === 0) return false;
  const attached = new Map<string, string>();
  for (const other of pods.keys())
    if (other.claims.length > 0) for (const [volume, driver] of volumesOf(other, facts)) attached.set(volume, driver);
  for (const volume of attached.keys()) wanted.delete(volume);
  for (const [name, driver] of facts.attached.get(node.name) ?? []) {
    const csi = facts.volumes.get(name)?.spec.csi as CSISource | undefined;
    if (csi) attached.set(`${driver}/${csi.volumeHandle}`, driver);
  }
  for (const driver of new Set(wanted.values())) {
    const limit = node.attachLimits.get(driver);
    if (limit !== undefined && countOf(attached, driver) + countOf(wanted, driver) > limit) return true;
  }
  return false;
}

const countOf = (volumes: ReadonlyMap<string, string>, driver: string): number =>
  [...volumes.values()].filter((one) => one === driver).length;
