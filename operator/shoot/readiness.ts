import { errorText } from '../api/errors.ts';
import { KubeApiError } from '../kube/errors.ts';

/** A new API server sleeps for a second before it looks at the two of them. Nothing but pods needs one, and there are none yet. */
const PRIORITY_CLASSES = 'poststarthook/scheduling/bootstrap-system-priority-classes';
/** It sleeps for a second before them as well, and makes them one by one, a hundred. */
const ROLES = 'poststarthook/rbac/bootstrap-roles';
/** It makes two dozen objects by which it divides itself among many who ask at once; until then all who are no masters share one part. */
const FAIRNESS = 'poststarthook/priority-and-fairness-config-producer';

/** What a new API server need not have for its admin, whose one role the operator makes, nor for the operator, who asks for none. */
export const NOT_AT_FIRST: readonly string[] = [PRIORITY_CLASSES, ROLES, FAIRNESS];
/** What it need not have for components of Kubernetes, which have their rights by its roles. */
export const NOT_FOR_COMPONENTS: readonly string[] = [PRIORITY_CLASSES];
/** The last of the namespaces that it makes: once it is there, all of them are. */
const LAST_NAMESPACE = '/api/v1/namespaces/default';

/** The part of a client that `isUsable` needs; KubeClient has it. */
export interface UsableClient {
  ready(options: { apartFrom: readonly string[] }): Promise<boolean>;
  request(method: string, path: string, options?: Record<string, unknown>): Promise<unknown>;
}

/** Whether a cluster can be used, and if not, why not yet. */
type Usability = { usable: true } | { usable: false; reason: string };

/**
 * Whether the holder of the client's credentials can work with the cluster now: the API server says that it is ready, has made its
 * namespaces, and lets the holder make others. Only asked, never tried: what a tenant's webhooks and policies refuse is the tenant's own
 * wish. Never throws.
 */
export async function isUsable(client: UsableClient): Promise<Usability> {
  try {
    if (!(await client.ready({ apartFrom: NOT_AT_FIRST })))
      return { usable: false, reason: 'the API server does not say yet that it is ready' };
    await client.request('GET', LAST_NAMESPACE);
    const review = await client.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb: 'create', resource: 'namespaces' } },
      },
    });
    const allowed = (review as { status?: { allowed?: boolean } } | undefined)?.status?.allowed;
    return allowed ? { usable: true } : { usable: false, reason: 'the admin may not make namespaces yet' };
  } catch (error) {
    // Admission comes after authorization: whoever gets that far is let in.
    return refusedByAdmission(error) ? { usable: true } : { usable: false, reason: errorText(error) };
  }
}

/** Whether a webhook or a policy of the cluster refused the request, or a webhook that must be asked did not answer. */
export const refusedByAdmission = (error: unknown): boolean =>
  error instanceof KubeApiError &&
  /\b(admission webhook|calling webhook|ValidatingAdmissionPolicy|MutatingAdmissionPolicy)\b/.test(error.message);
