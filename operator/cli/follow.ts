import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '../api/meta.ts';
import { KubeApiError, type KubeClient } from '../kube/client.ts';
import type { Resource } from '../kube/resources.ts';

export interface Seen<T extends KubeObject> {
  /** Undefined: there is no such object now. */
  object: T | undefined;
  /** Why nothing can be seen at the moment; `object` is then the last that was. */
  trouble?: string;
}

const RETRY_MS = 1000;
const WATCH_SECONDS = 240;

/**
 * Calls `onSight` with one object as it is now and at each change, through restarts of the API server, until the signal
 * is aborted; throws its reason then. Throws what the API server refuses for good (credentials, unknown kind).
 */
export async function follow<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  target: { name: string; namespace?: string | undefined },
  onSight: (seen: Seen<T>) => void,
  signal: AbortSignal,
): Promise<never> {
  const selection = { namespace: target.namespace, fieldSelector: `metadata.name=${target.name}` };
  let last: T | undefined;
  for (;;) {
    try {
      const list = await client.list<T>(resource, { ...selection, signal });
      last = list.items[0];
      onSight({ object: last });
      await client.watch<T>(
        resource,
        { ...selection, resourceVersion: list.metadata.resourceVersion, timeoutSeconds: WATCH_SECONDS, signal },
        ({ type, object }) => {
          if (type === 'BOOKMARK') return;
          last = type === 'DELETED' ? undefined : object;
          onSight({ object: last });
        },
      );
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof KubeApiError && [401, 403, 404].includes(error.status)) throw error;
      if (!(error instanceof KubeApiError && error.isGone)) {
        onSight({ object: last, trouble: error instanceof Error ? error.message : String(error) });
      }
    }
    signal.throwIfAborted();
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
  }
}
