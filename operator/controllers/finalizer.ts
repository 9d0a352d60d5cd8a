import { FINALIZER } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf, type Resource } from '../kube/resources.ts';

export const isHeld = ({ metadata }: KubeObject): boolean => metadata.finalizers?.includes(FINALIZER) ?? false;

/** Cache of one kind. */
type Cache<T extends KubeObject> = Pick<Informer<T>, 'get' | 'absorb'>;

/**
 * Adds our finalizer (`held`) or removes it; no write when done already. Labels are written with it. Preserves
 * concurrent changes of other finalizers: losing one would release what somebody needs, restoring one would hold it for
 * ever.
 *
 * @throws KubeApiError when the finalizers have changed since the cached state
 */
export async function hold<T extends KubeObject>(
  { garden }: { garden: Pick<KubeClient, 'mergePatch' | 'jsonPatch'> },
  resource: Resource,
  cache: Cache<T>,
  object: T,
  held: boolean,
  { labels, signal }: { labels?: Record<string, string>; signal: AbortSignal },
): Promise<void> {
  const cached = cache.get(keyOf(object));
  const { metadata } = cached?.metadata.uid === object.metadata.uid ? cached! : object;
  const { deletionTimestamp, finalizers = [], name, namespace, resourceVersion, uid } = metadata;
  const at = finalizers.indexOf(FINALIZER);
  const isMarked = Object.entries(labels ?? {}).every(([label, value]) => metadata.labels?.[label] === value);
  if (at >= 0 === held && (isMarked || !held)) return;
  // The API server refuses new finalizers on a terminating object.
  if (held && deletionTimestamp) return;
  if (held) {
    const patch = { metadata: { finalizers: [...new Set([...finalizers, FINALIZER])], labels, resourceVersion } };
    cache.absorb(await garden.mergePatch<T>(resource, name, namespace, patch, { signal }));
    return;
  }
  // A test on the finalizer's index instead of the resource version: status writes until the end must not conflict.
  const path = `/metadata/finalizers/${at}`;
  const operations = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: FINALIZER },
    { op: 'remove', path },
  ] as const;
  try {
    cache.absorb(await garden.jsonPatch<T>(resource, name, namespace, operations, { signal }));
  } catch (error) {
    // The cache did not show the deletion yet.
    if (!isNotFound(error)) throw error;
  }
}
