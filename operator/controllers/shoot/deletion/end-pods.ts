import type { SeedAccess } from '../../../clusters/seed-access.ts';
import { waitFor } from '../../../kube/informer.ts';
import { hasEnded } from '../../../kube/pods.ts';
import { PODS, type Pod } from '../../../kube/resources.ts';

/** Short grace period: nothing of a deleted cluster is needed again. */
const GRACE_SECONDS = 1;

/**
 * Deletes all pods of a shoot's namespace before their owners: the garbage collector would give each its full grace
 * period, which cannot be shortened later. Known pods are deleted by name first, because listing a collection waits up
 * to 0.1 s for the API server's cache.
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
 * Waits until a namespace has no pods. Terminating pods without running processes are deleted immediately: their
 * kubelet would do so only at its next relist, up to a second later. Rejects with the remaining pods after `timeoutMs`.
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
    // The seed may refuse that; then kubelet deletes the pod.
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

/** Whether kubelet reports that no container of a terminating pod runs. */
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
