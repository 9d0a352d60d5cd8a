import type { Pod } from '../../kube/resources.ts';
import { isBound, reachedFrom } from '../fit/filters/volumes.ts';
import { fitPod } from '../fit/pod.ts';
import type { ClusterState } from '../fit/state.ts';

/**
 * Why a pod's volumes cannot follow it to another node, the end of a sentence; undefined: they can if reachable and
 * attachable, which packing checks. In doubt the pod stays: it could wait for its data for ever. Pure.
 * @param node the pod's node
 */
export function whyVolumesStay(pod: Pod, node: string, state: ClusterState): string | undefined {
  const { claims, namespace } = fitPod(pod);
  const { volumes: facts } = state.facts;
  for (const { name } of claims) {
    if (!facts) return `uses PersistentVolumeClaim ${name}, and the volumes of the cluster are not known`;
    const claim = facts.claims.get(`${namespace}/${name}`);
    const volume = claim && isBound(claim) ? facts.volumes.get(claim.spec.volumeName ?? '') : undefined;
    if (!claim || !volume) return `uses PersistentVolumeClaim ${name}, whose volume is not known`;
    // A hostPath names no node: the scheduler would place the pod away from its data.
    if (volume.spec.local || volume.spec.hostPath)
      return `has data on the disk of this node (PersistentVolumeClaim ${name})`;
    const reached = reachedFrom(volume);
    if (reached && !state.nodes().some((other) => other.node.name !== node && reached(other.node)))
      return `has data that no other node reaches (PersistentVolumeClaim ${name})`;
    // The scheduler ignores ReadWriteOnce sharing: two pods would go to two nodes, and one would never start.
    if (!isForManyNodes(claim.spec.accessModes) && state.usersOf(namespace, name) > 1)
      return `shares PersistentVolumeClaim ${name} with other pods, which must be on one node`;
  }
  return undefined;
}

const isForManyNodes = (modes: readonly string[] = []): boolean =>
  modes.includes('ReadWriteMany') || (modes.length > 0 && modes.every((mode) => mode === 'ReadOnlyMany'));
