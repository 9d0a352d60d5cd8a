import { FINALIZER } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf, type Resource } from '../kube/resources.ts';

export const isHeld = ({ metadata }: KubeObject): boolean => metadata.finalizers?.includes(FINALIZER) ?? false;

/** What is known of objects of one kind. */
type Cache<T extends KubeObject> = Pick<Informer<T>, 'get' | 'absorb'>;

/**
 * Puts our finalizer on an object (`held`), or takes it off; no write when it is so already. Labels come with the finalizer. Finalizers of
 * others stay as they are by then: one that was lost would let go what somebody still needs, and one that was put back would hold it for ever.
 *
 * @throws KubeApiError when they have changed since they were last seen
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
  // To what is on its way out no finalizer can be added.
  if (held && deletionTimestamp) return;
  if (held) {
    const patch = { metadata: { finalizers: [...new Set([...finalizers, FINALIZER])], labels, resourceVersion } };
    cache.absorb(await garden.mergePatch<T>(resource, name, namespace, patch, { signal }));
    return;
  }
  // By its place and not with the version of the object: status is written until the end, and is nothing to begin anew for.
  const path = `/metadata/finalizers/${at}`;
  const operations = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: FINALIZER },
    { op: 'remove', path },
  ] as const;
  try {
    cache.absorb(await garden.jsonPatch<T>(resource, name, namespace, operations, { signal }));
  } catch (error) {
    // The cache had not heard yet that it has gone.
    if (!isNotFound(error)) throw error;
  }
}
