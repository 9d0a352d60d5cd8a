import type { SeedAccess } from '../../../clusters/seed-access.ts';
import { waitFor } from '../../../kube/informer.ts';
import { hasEnded } from '../../../kube/pods.ts';
import { PODS, type Pod } from '../../../kube/resources.ts';

/** Nothing of what ends here is needed again, so nobody gets longer than this to say goodbye. */
const GRACE_SECONDS = 1;

/**
 * Ends all pods of a shoot's namespace. Before their owners: the garbage collector would give each its full grace, and a kubelet that has begun
 * to wait does not hurry up.
 */
export const endPods = (client: SeedAccess['client'], namespace: string, signal: AbortSignal): Promise<void> =>
  client.deleteCollection(PODS, { namespace, gracePeriodSeconds: GRACE_SECONDS, signal });

/**
 * Waits until a namespace has no pods. One that was told to end, and of which its kubelet says that all processes have ended, is taken away: the
 * kubelet itself looks at it again only when it next lists all containers, up to a second later. Rejects with the pods that are left when none
 * ends for `timeoutMs`.
 */
export async function podsGone(
  seed: Pick<SeedAccess, 'name' | 'client' | 'pods'>,
  namespace: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const taken = new Set<string | undefined>();
  const left = () => seed.pods.list().filter(({ metadata }) => metadata.namespace === namespace);
  const ended = () => left().filter((pod) => mayBeTaken(pod) && !taken.has(pod.metadata.uid));
  for (;;) {
    const pods = await waitFor([seed.pods], () => ended().length > 0 || left().length === 0, {
      timeoutMs,
      signal,
      what: () =>
        `pods ${left()
          .map(({ metadata }) => metadata.name)
          .join(', ')} in namespace ${namespace} of seed ${seed.name} to end`,
    }).then(ended);
    if (pods.length === 0 && left().length === 0) return;
    for (const { metadata } of pods) taken.add(metadata.uid);
    await Promise.all(pods.map((pod) => take(seed.client, pod, signal)));
  }
}

/** A kubelet says that a pod has ended when none of its containers runs. */
const mayBeTaken = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined && hasEnded(pod);

const take = (client: SeedAccess['client'], { metadata }: Pod, signal: AbortSignal): Promise<boolean> =>
  client.delete(PODS, metadata.name, metadata.namespace, {
    gracePeriodSeconds: 0,
    preconditions: { ...(metadata.uid && { uid: metadata.uid }) },
    signal,
  });
