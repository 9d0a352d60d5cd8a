import type { KubeObject } from '../api/meta.ts';
import { CONTROL_PLANE_PRIORITY } from '../api/names.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import type { Log } from '../kube/log.ts';
import { PRIORITYCLASSES } from '../kube/resources.ts';

/** Above machines and other pods (0), far below Kubernetes' system classes (2000000000). */
const PRIORITY = 1_000_000;

const priorityClass = (): KubeObject => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name: CONTROL_PLANE_PRIORITY },
  value: PRIORITY,
  globalDefault: false,
  description:
    'Pods of the control planes that Coppice hosts: in a full seed they displace machines, never the other way round.',
});

/**
 * Creates the PriorityClass of control planes in a seed. A class of the same name that an administrator created with
 * another value stays unchanged.
 * @returns whether the seed has the class. A seed whose kubeconfig lacks the right to create it hosts control planes
 * without it
 */
export async function ensureControlPlanePriority(client: KubeClient, log: Log, signal: AbortSignal): Promise<boolean> {
  try {
    if (await client.getOrUndefined(PRIORITYCLASSES, CONTROL_PLANE_PRIORITY, undefined, { signal })) return true;
    await client.create(priorityClass(), { signal });
    return true;
  } catch (error) {
    if (!(error instanceof KubeApiError) || signal.aborted) throw error;
    if (error.reason === 'AlreadyExists') return true;
    if (error.status !== 403) throw error;
    log.warn({ error: error.message }, `the seed's kubeconfig may not make PriorityClass ${CONTROL_PLANE_PRIORITY}`);
    return false;
  }
}
