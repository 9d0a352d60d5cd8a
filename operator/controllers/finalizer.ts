import { FINALIZER } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf, type Resource } from '../kube/resources.ts';

export const isHeld = ({ metadata }: KubeObject): boolean => metadata.finalizers?.includes(FINALIZER) ?? false;

/**
 * Puts our finalizer on an object (`held`), or takes it off; no write when it is so already. Labels come with the finalizer.
 *
 * @throws KubeApiError a conflict when somebody has written meanwhile: a finalizer that they put on would be lost, and one that they took
 *   off would be back, for ever
 */
export async function hold<T extends KubeObject>(
  { garden }: { garden: Pick<KubeClient, 'mergePatch'> },
  resource: Resource,
  cache: Pick<Informer<T>, 'get' | 'absorb'>,
  object: T,
  held: boolean,
  { labels, signal }: { labels?: Record<string, string>; signal: AbortSignal },
): Promise<void> {
  const cached = cache.get(keyOf(object));
  const { metadata } = cached?.metadata.uid === object.metadata.uid ? cached! : object;
  const isMarked = Object.entries(labels ?? {}).every(([name, value]) => metadata.labels?.[name] === value);
  if (isHeld({ ...object, metadata }) === held && (isMarked || !held)) return;
  // To what is on its way out no finalizer can be added.
  if (held && metadata.deletionTimestamp) return;
  const { finalizers = [], name, namespace, resourceVersion } = metadata;
  const others = finalizers.filter((finalizer) => finalizer !== FINALIZER);
  const changes = { finalizers: held ? [...others, FINALIZER] : others, ...(held && labels && { labels }) };
  try {
    const patch = { metadata: { ...changes, resourceVersion } };
    cache.absorb(await garden.mergePatch<T>(resource, name, namespace, patch, { signal }));
  } catch (error) {
    // The cache had not heard yet that it has gone.
    if (held || !isNotFound(error)) throw error;
  }
}
