import { errorText } from '../api/errors.ts';
import { KubeApiError } from '../kube/errors.ts';

/**
 * A new API server sleeps for a second before it checks the two PriorityClasses. Only pods need them, and there are
 * none yet.
 */
const PRIORITY_CLASSES = 'poststarthook/scheduling/bootstrap-system-priority-classes';
/** It also sleeps for a second before these, and creates a hundred roles one by one. */
const ROLES = 'poststarthook/rbac/bootstrap-roles';
/**
 * It creates two dozen objects of priority and fairness; until then all users except masters share one priority level.
 */
const FAIRNESS = 'poststarthook/priority-and-fairness-config-producer';

/**
 * Checks that a new API server may fail for its admin, whose role the operator creates, and for the operator, which
 * needs none.
 */
export const NOT_AT_FIRST: readonly string[] = [PRIORITY_CLASSES, ROLES, FAIRNESS];
/** Checks that it may fail for Kubernetes components, whose rights are in its roles. */
export const NOT_FOR_COMPONENTS: readonly string[] = [PRIORITY_CLASSES];
/** The last namespace that it creates: once it exists, all of them do. */
const LAST_NAMESPACE = '/api/v1/namespaces/default';

/** The part of a client that `isUsable` needs; KubeClient has it. */
interface UsableClient {
  ready(options: { apartFrom: readonly string[] }): Promise<boolean>;
  request(method: string, path: string, options?: Record<string, unknown>): Promise<unknown>;
}

/** Whether a cluster is usable, and if not, why. */
type Usability = { usable: true } | { usable: false; reason: string };

/**
 * Whether the client can work with the cluster now: the API server reports readiness, its namespaces exist, and the
 * client may create others. Checked by a dry run only: rejections by a tenant's webhooks and policies are the tenant's
 * choice. Never throws.
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
    // Admission follows authorization: a request rejected by admission was authorized.
    return refusedByAdmission(error) ? { usable: true } : { usable: false, reason: errorText(error) };
  }
}

/** Whether the cluster's admission rejected the request, or a required webhook did not answer. */
export const refusedByAdmission = (error: unknown): boolean =>
  error instanceof KubeApiError &&
  /\b(admission webhook|calling webhook|ValidatingAdmissionPolicy|MutatingAdmissionPolicy)\b/.test(error.message);
