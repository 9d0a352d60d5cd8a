import type { SeedAccess } from '../../../clusters/seed-access.ts';
import { waitFor } from '../../../kube/informer.ts';
import { hasEnded } from '../../../kube/pods.ts';
import { PODS, type Pod } from '../../../kube/resources.ts';

/** Nothing of what ends here is needed again, so nobody gets longer than this to say goodbye. */
const GRACE_SECONDS = 1;

/**
 * Ends all pods of a shoot's namespace. Before their owners: the garbage collector would give each its full grace, and a kubelet that has begun
 * to wait does not hurry up. Those that are known come first, each by its name: before it lists a collection, an API server waits up to a tenth
 * of a second until its cache is as new as etcd.
 */
export async function endPods(
  { client, pods }: Pick<SeedAccess, 'client' | 'pods'>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const known = pods.list().filter(({ metadata }) => metadata.namespace === namespace);
  await Promise.all(known.map((pod) => end(client, pod, GRACE_SECONDS, signal)));
  await client.deleteCollection(PODS, { namespace, gracePeriodSeconds: GRACE_SECONDS, signal });
}

/**
 * Waits until a namespace has no pods. One that was told to end, and of which its kubelet says that all processes have ended, is taken away: the
 * kubelet itself looks at it again only when it next lists all containers, up to a second later. Rejects with the pods that are left after
 * `timeoutMs`.
 */
export async function podsGone(
  seed: Pick<SeedAccess, 'name' | 'client' | 'pods'>,
  namespace: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const left = () => seed.pods.list().filter(({ metadata }) => metadata.namespace === namespace);
  const taken = new Set<string | undefined>();
  const stop = seed.pods.onChange(({ type, object: pod }) => {
    const { namespace: where, uid } = pod.metadata;
    if (type === 'deleted' || where !== namespace || taken.has(uid) || !mayBeTaken(pod)) return;
    taken.add(uid);
    // A seed may refuse it. Its kubelet takes the pod away itself then.
    end(seed.client, pod, 0, signal).catch(() => {});
  });
  try {
    await waitFor([seed.pods], () => left().length === 0, {
      timeoutMs,
      signal,
      what: () => {
        const names = left().map(({ metadata }) => metadata.name);
        return `pods ${names.join(', ')} in namespace ${namespace} of seed ${seed.name} to end`;
      },
    });
  } finally {
    stop();
  }
}

/** A kubelet says that a pod has ended when none of its containers runs. */
const mayBeTaken = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined && hasEnded(pod);

const end = (
  client: SeedAccess['client'],
  { metadata }: Pod,
  gracePeriodSeconds: number,
  signal: AbortSignal,
): Promise<boolean> =>
  client.delete(PODS, metadata.name, metadata.namespace, {
    gracePeriodSeconds,
    preconditions: { ...(metadata.uid && { uid: metadata.uid }) },
    signal,
  });
