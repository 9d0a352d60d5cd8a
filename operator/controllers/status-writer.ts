import { isDeepStrictEqual } from 'node:util';
import { rfc3339 } from '../api/conditions.ts';
import { FIELD_MANAGER } from '../api/group.ts';
import type { KubeObject, LastOperation } from '../api/meta.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/resources.ts';
import type { ChangeEvent } from '../kube/store.ts';

/**
 * Writes an object's whole status if it changed.
 * @returns whether it was written
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
  // Empty lists and absent ones are equal: no reason to write.
  if (isDeepStrictEqual(withoutEmpty(newest.status ?? {}), withoutEmpty(wanted))) return false;
  const { apiVersion, kind } = object;
  const { name, namespace, uid } = object.metadata;
  const written = await client.apply<T>(
    // The UID protects a new object of the same name from a late write.
    { apiVersion, kind, metadata: { name, namespace, uid }, status: wanted } as unknown as T,
    { subresource: 'status', fieldManager: FIELD_MANAGER, leaveOutUndeclared: true, signal },
  );
  cache.absorb(written);
  return true;
}

/** Whether only the status changed, which controllers write themselves: no reason to reconcile. */
export function onlyStatusChanged<T extends KubeObject>(event: ChangeEvent<T>): boolean {
  return event.type === 'updated' && isDeepStrictEqual(withoutStatus(event.old), withoutStatus(event.object));
}

/** Whether only finalizers changed: no reason to reconcile users of the object. */
export function onlyFinalizersChanged<T extends KubeObject>(event: ChangeEvent<T>): boolean {
  return event.type === 'updated' && isDeepStrictEqual(withoutFinalizers(event.old), withoutFinalizers(event.object));
}

function withoutFinalizers(object: KubeObject): object {
  const { resourceVersion: _, finalizers: __, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Whether a change matters to users of the object: its status and finalizers follow from them. */
export const concernsUsers = <T extends KubeObject>(event: ChangeEvent<T>): boolean =>
  !onlyStatusChanged(event) && !onlyFinalizersChanged(event);

function withoutStatus(object: KubeObject): object {
  const { status: _, metadata, ...rest } = object;
  const { resourceVersion: __, ...meta } = metadata;
  return { ...rest, metadata: meta };
}

const withoutEmpty = (status: object): object =>
  Object.fromEntries(Object.entries(status).filter(([, value]) => !(Array.isArray(value) && value.length === 0)));

/** The operation, with a new time only when it changed. */
export function movedOperation(
  before: LastOperation | undefined,
  next: Omit<LastOperation, 'lastUpdateTime'>,
  now: Date,
): LastOperation {
  const { lastUpdateTime: _, ...rest } = before ?? { lastUpdateTime: '' };
  return isDeepStrictEqual(rest, next) ? before! : { ...next, lastUpdateTime: rfc3339(now) };
}
