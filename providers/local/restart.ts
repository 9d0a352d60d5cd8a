import { dependencyNotReady } from '../../operator/api/errors.ts';
import type { Pod } from '../../operator/kube/resources.ts';

/**
 * Another name for the image that the one container of a pod runs. A kubelet starts a container again, over the volumes of its pod, when its
 * image has another name (kubelet's HashContainer takes name and image alone). Pure.
 * @throws CoppiceError where the seed does not say what the container runs
 */
export function restartedImage({ metadata, spec, status }: Pod): string {
  const [container] = spec.containers;
  const image = container?.image ?? '';
  const [tagged, digest] = image.split('@') as [string, string | undefined];
  if (digest) return tagged;
  const running = status?.containerStatuses?.find(({ name }) => name === container?.name)?.imageID;
  const found = /@(sha256:[0-9a-f]{64})$/.exec(running ?? '')?.[1];
  if (!found) throw dependencyNotReady(`the seed does not say which image machine ${metadata.name} runs`);
  return `${tagged}@${found}`;
}
