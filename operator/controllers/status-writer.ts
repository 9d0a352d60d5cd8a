import { isDeepStrictEqual } from 'node:util';
import { rfc3339 } from '../api/conditions.ts';
import { FIELD_MANAGER } from '../api/group.ts';
import type { KubeObject, LastOperation } from '../api/meta.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/resources.ts';
import type { ChangeEvent } from '../kube/store.ts';

/**
 * Writes the status of an object as a whole, and only when it says something new.
 * @returns whether it was written.
 */
export async function writeStatus<T extends KubeObject>(
  client: KubeClient,
  cache: Informer<T>,
  object: T,
  status: object,
  signal?: AbortSignal,
): Promise<boolean> {
  const newest = cache.get(keyOf(object)) ?? object;
  const wanted = JSON.parse(JSON.stringify(status)) as Record<string, unknown>;
  // An empty list is stored, an absent one is not: both say the same, so neither is a reason to write.
  if (isDeepStrictEqual(withoutEmpty(newest.status ?? {}), withoutEmpty(wanted))) return false;
  const { apiVersion, kind } = object;
  const { name, namespace, uid } = object.metadata;
  const written = await client.apply<T>(
    // The uid keeps a late write from landing on a new object of the same name.
    { apiVersion, kind, metadata: { name, namespace, uid }, status: wanted } as unknown as T,
    { subresource: 'status', fieldManager: FIELD_MANAGER, leaveOutUndeclared: true, signal },
  );
  cache.absorb(written);
  return true;
}

/** Whether a change is one that a controller makes itself by writing the status: never a reason to work on the object again. */
export function onlyStatusChanged<T extends KubeObject>(event: ChangeEvent<T>): boolean {
  return event.type === 'updated' && isDeepStrictEqual(withoutStatus(event.old), withoutStatus(event.object));
}

/** Whether a change is one that holds an object or lets it go: never a reason to work on what uses the object. */
export function onlyFinalizersChanged<T extends KubeObject>(event: ChangeEvent<T>): boolean {
  return event.type === 'updated' && isDeepStrictEqual(withoutFinalizers(event.old), withoutFinalizers(event.object));
}

function withoutFinalizers(object: KubeObject): object {
  const { resourceVersion: _, finalizers: __, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Whether a change is news for whoever uses the object: what is told of it, and that it is held, follows from its users. */
export const concernsUsers = <T extends KubeObject>(event: ChangeEvent<T>): boolean =>
  !onlyStatusChanged(event) && !onlyFinalizersChanged(event);

function withoutStatus(object: KubeObject): object {
  const { status: _, metadata, ...rest } = object;
  const { resourceVersion: __, ...meta } = metadata;
  return { ...rest, metadata: meta };
}

const withoutEmpty = (status: object): object =>
  Object.fromEntries(Object.entries(status).filter(([, value]) => !(Array.isArray(value) && value.length === 0)));

/** The operation with its time moved only when it says something new. */
export function operation(
  before: LastOperation | undefined,
  next: Omit<LastOperation, 'lastUpdateTime'>,
  now: Date,
): LastOperation {
  const { lastUpdateTime: _, ...rest } = before ?? { lastUpdateTime: '' };
  return isDeepStrictEqual(rest, next) ? before! : { ...next, lastUpdateTime: rfc3339(now) };
}
