import { KubeApiError, KubeUnreachableError } from '../errors.ts';
import type { Pod } from '../resources.ts';
import type { ApiRequests } from './api-requests.ts';
import type { DeleteOptions } from './write-options.ts';

/**
 * `gone`: the pod no longer exists. `blocked`: a PodDisruptionBudget refuses at present. `refused`: another reason
 * (several budgets select the pod, a webhook refuses or is dead); `message` is for people.
 */
export type Eviction =
  | { outcome: 'evicted' | 'gone' }
  | {
      outcome: 'blocked' | 'refused';
      message: string;
      /** The API server did not answer: the next request may fail alike. Absent: it answered. */
      isUnanswered?: true;
    };

/** The pod to evict; a UID protects another pod of the same name. */
export type Evictable = Pod | { metadata: { name: string; namespace?: string; uid?: string } };

export type EvictOptions = Omit<DeleteOptions, 'propagationPolicy'>;

/** The message ends in an object's status; a tenant's webhook may send any text. */
const LONGEST_MESSAGE = 1000;

/** See KubeClient.evict. */
export async function evict(
  requests: Pick<ApiRequests, 'request'>,
  pod: Evictable,
  options: EvictOptions,
): Promise<Eviction> {
  const { name, namespace, uid } = pod.metadata;
  const { signal, dryRun, preconditions = uid ? { uid } : undefined, gracePeriodSeconds } = options;
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { gracePeriodSeconds, preconditions },
  };
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace ?? '')}/pods/${encodeURIComponent(name)}/eviction`;
  try {
    await requests.request('POST', path, { query: dryRun ? { dryRun: 'All' } : {}, body, signal, retries: 0 });
    return { outcome: 'evicted' };
  } catch (error) {
    if (error instanceof KubeUnreachableError && !signal?.aborted)
      return { outcome: 'refused', message: error.message.slice(0, LONGEST_MESSAGE), isUnanswered: true };
    if (!(error instanceof KubeApiError)) throw error;
    // The conflict is the UID precondition: another pod took this name.
    if (error.isNotFound || error.isConflict) return { outcome: 'gone' };
    if (error.isTooManyRequests) {
      const causes = error.details?.causes?.map((cause) => cause.message).filter(Boolean) ?? [];
      return { outcome: 'blocked', message: causes.join('; ').slice(0, LONGEST_MESSAGE) || error.message };
    }
    // The refusal is about this pod; others can be evicted. Kubernetes answers 500 when two budgets select one pod
    // (kubernetes#75957).
    return { outcome: 'refused', message: error.message.slice(0, LONGEST_MESSAGE) };
  }
}
