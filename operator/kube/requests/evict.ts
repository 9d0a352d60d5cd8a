import { KubeApiError, KubeUnreachableError } from '../errors.ts';
import type { Pod } from '../resources.ts';
import type { ApiRequests } from './api-requests.ts';
import type { DeleteOptions } from './write-options.ts';

/**
 * `gone`: this pod is not there any more. `blocked`: a PodDisruptionBudget says no now. `refused`: it is not evicted for another reason
 * (several budgets select it, a webhook says no or is dead); `message` is for people.
 */
export type Eviction =
  | { outcome: 'evicted' | 'gone' }
  | {
      outcome: 'blocked' | 'refused';
      message: string;
      /** The API server did not answer: the same may happen to the next request. Absent: it did. */
      isUnanswered?: true;
    };

/** A pod, as far as it must be known to have it evicted; with its UID no other one of its name is. */
export type Evictable = Pod | { metadata: { name: string; namespace?: string; uid?: string } };

export type EvictOptions = Omit<DeleteOptions, 'propagationPolicy'>;

/** It ends in the status of an object; a webhook of a tenant may say what it likes. */
const LONGEST_MESSAGE = 1000;

/** As KubeClient.evict. */
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
    // A conflict is the uid precondition: another pod of this name took the place.
    if (error.isNotFound || error.isConflict) return { outcome: 'gone' };
    if (error.isTooManyRequests) {
      const causes = error.details?.causes?.map((cause) => cause.message).filter(Boolean) ?? [];
      return { outcome: 'blocked', message: causes.join('; ').slice(0, LONGEST_MESSAGE) || error.message };
    }
    // It is about this pod: others can be evicted. Kubernetes answers 500 where two budgets select one pod (kubernetes#75957).
    return { outcome: 'refused', message: error.message.slice(0, LONGEST_MESSAGE) };
  }
}
