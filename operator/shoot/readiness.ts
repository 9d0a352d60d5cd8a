import { errorText } from '../api/errors.ts';
import { KubeApiError } from '../kube/errors.ts';

/** A new API server sleeps for a second before it looks at the two of them. Nothing but pods needs one, and there are none yet. */
const PRIORITY_CLASSES = 'poststarthook/scheduling/bootstrap-system-priority-classes';
/** It makes them one by one, a hundred. */
const ROLES = 'poststarthook/rbac/bootstrap-roles';

/** What a new API server need not have for its admin. */
const NOT_FOR_ADMIN = [PRIORITY_CLASSES];
/** What it need not have for the operator, which is a member of system:masters and so asks for no role. */
export const NOT_FOR_OPERATOR: readonly string[] = [PRIORITY_CLASSES, ROLES];

/** The part of a client that `usable` needs; KubeClient has it. */
export interface UsableClient {
  ready(options: { apartFrom: readonly string[] }): Promise<boolean>;
  request(method: string, path: string, options?: Record<string, unknown>): Promise<unknown>;
}

/** Whether a cluster can be used, and if not, why not yet. */
export type Usability = { usable: true } | { usable: false; reason: string };

/**
 * Whether the holder of the client's credentials can work with the cluster now: the API server says that it is ready, and that the
 * holder may make namespaces. Only asked, never tried: what a tenant's webhooks and policies refuse is the tenant's own wish. Never throws.
 */
export async function usable(client: UsableClient): Promise<Usability> {
  try {
    if (!(await client.ready({ apartFrom: NOT_FOR_ADMIN })))
      return { usable: false, reason: 'the API server does not say yet that it is ready' };
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
