import { dependencyNotReady } from '../../operator/api/errors.ts';
import type { Pod, ReplicaSet } from '../../operator/kube/resources.ts';

/**
 * Another name for the image that the one container of a machine runs: that of its pool, or the seed's own (`sha256:...` where it was loaded,
 * `repository@sha256:...` where it was pulled). A kubelet starts a container again, over the volumes of its pod, when its image has another name
 * (kubelet's HashContainer takes name and image alone). Pure.
 * @throws CoppiceError where the seed does not say what the container runs
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
