import type { KubeObject } from '../api/meta.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import { silent } from '../kube/log.ts';
import { reflect } from '../kube/reflector.ts';
import type { Resource } from '../kube/resources.ts';

export interface FollowedObject<T extends KubeObject> {
  /** undefined: the object does not exist now. */
  object: T | undefined;
  /** Why the API server cannot be read now. `object` is then the last that was read. */
  trouble?: string;
}

const LONGEST_RETRY_MS = 2000;

/**
 * Calls `onSight` with one object as it is now and at each change, through restarts of the API server, until the signal
 * is aborted, when it resolves. Throws what the API server refuses for good (credentials, unknown kind).
 */
export async function follow<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  { name, namespace }: { name: string; namespace?: string | undefined },
  onSight: (seen: FollowedObject<T>) => void,
  signal: AbortSignal,
): Promise<void> {
  const hopeless = new AbortController();
  let last: T | undefined;
  let refusal: unknown;
  const look = (object: T | undefined) => {
    last = object;
    onSight({ object });
  };
  await reflect<T>(
    client,
    resource,
    { namespace, fieldSelector: `metadata.name=${name}`, log: silent, maxDelayMs: LONGEST_RETRY_MS },
    {
      replace: (objects) => look(objects[0]),
      event: (type, object) => look(type === 'DELETED' ? undefined : object),
      failed: (error) => {
        if (error instanceof KubeApiError && [401, 403, 404].includes(error.status)) {
          refusal = error;
          hopeless.abort();
        } else {
          onSight({ object: last, trouble: error instanceof Error ? error.message : String(error) });
        }
      },
    },
    AbortSignal.any([signal, hopeless.signal]),
  );
  if (refusal !== undefined) throw refusal;
}
