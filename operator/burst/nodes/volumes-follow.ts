import type { Pod } from '../../kube/resources.ts';
import { isBound, reachedFrom } from '../fit/filters/volumes.ts';
import { fitPod } from '../fit/pod.ts';
import type { ClusterState } from '../fit/state.ts';

/**
 * Why the volumes of a pod do not follow it to any other node, the end of a sentence; undefined: they do where they can be reached and
 * attached, which packing finds out. What is not known stays: who moves all the same waits for ever for its data. Pure.
 * @param node its node
 */
export function whyVolumesStay(pod: Pod, node: string, state: ClusterState): string | undefined {
  const { claims, namespace } = fitPod(pod);
  const { volumes: facts } = state.facts;
  for (const { name } of claims) {
    if (!facts) return `uses PersistentVolumeClaim ${name}, and the volumes of the cluster are not known`;
    const claim = facts.claims.get(`${namespace}/${name}`);
    const volume = claim && isBound(claim) ? facts.volumes.get(claim.spec.volumeName ?? '') : undefined;
    if (!claim || !volume) return `uses PersistentVolumeClaim ${name}, whose volume is not known`;
    // A hostPath names no node: the scheduler would let the pod go anywhere, to where its data is not.
    if (volume.spec.local || volume.spec.hostPath)
      return `has data on the disk of this node (PersistentVolumeClaim ${name})`;
    const reached = reachedFrom(volume);
    if (reached && !state.nodes().some((other) => other.node.name !== node && reached(other.node)))
      return `has data that no other node reaches (PersistentVolumeClaim ${name})`;
    // The scheduler does not look at that: two pods would go to two nodes, and one of them would never start.
    if (!isForManyNodes(claim.spec.accessModes) && state.usersOf(namespace, name) > 1)
      return `shares PersistentVolumeClaim ${name} with other pods, which must be on one node`;
  }
  return undefined;
}

const isForManyNodes = (modes: readonly string[] = []): boolean =>
  modes.includes('ReadWriteMany') || (modes.length > 0 && modes.every((mode) => mode === 'ReadOnlyMany'));
