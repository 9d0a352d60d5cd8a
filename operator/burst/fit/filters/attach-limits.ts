import type { PersistentVolume } from '../../../kube/resources.ts';
import type { FitPod } from '../model.ts';
import type { NodeState } from '../state.ts';
import type { VolumeFacts } from '../volume-facts.ts';
import { classOf } from './claim-class.ts';

/** In-tree volume sources and the CSI drivers that replaced them. */
const IN_TREE: Record<string, string> = {
  awsElasticBlockStore: 'ebs.csi.aws.com',
  azureDisk: 'disk.csi.azure.com',
  cinder: 'cinder.csi.openstack.org',
  gcePersistentDisk: 'pd.csi.storage.gke.io',
  portworxVolume: 'pxd.portworx.com',
};

/** Whether an in-tree driver made the volume: each driver has its own rules for zones. */
export const isInTree = (volume: PersistentVolume): boolean =>
  Object.keys(IN_TREE).some((source) => volume.spec[source] !== undefined);

interface CSISource {
  driver: string;
  volumeHandle: string;
}

/** Attached volumes of a pod by unique name, with their driver. */
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
      // The volume does not exist yet: its class names the driver.
      const driver = classes.get(classOf(claim))?.provisioner;
      if (driver) found.set(`${driver} for ${pod.namespace}/${name}`, driver);
    }
  }
  return found;
}

/**
 * NodeVolumeLimits: whether the pod's volumes exceed the node's attach limit, together with volumes of its pods (each
 * once) and volumes that are still attached.
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
