import { dependencyNotReady } from '../../operator/api/errors.ts';
import type { Pod, ReplicaSet } from '../../operator/kube/resources.ts';

/**
 * Alternative name of a machine's container image: the pool's, or the seed's (`sha256:...` if loaded,
 * `repository@sha256:...` if pulled). kubelet restarts a container, keeping the pod's volumes, when its image name
 * changes (kubelet's HashContainer uses name and image only). Pure.
 * @throws CoppiceError when the seed does not report the running image
 */
export function restartedImage({ metadata, spec, status }: Pod, set: ReplicaSet): string {
  const [container] = spec.containers;
  const ofPool: string = set.spec.template.spec.containers[0].image;
  if (container?.image !== ofPool) return ofPool;
  const running = status?.containerStatuses?.find(({ name }) => name === container.name)?.imageID;
  const found = /^(?:[^/]+:\/\/)?((?:[^@]+@)?sha256:[0-9a-f]{64})$/.exec(running ?? '')?.[1];
  if (!found) throw dependencyNotReady(`the seed does not say which image machine ${metadata.name} runs`);
  return found;
}
