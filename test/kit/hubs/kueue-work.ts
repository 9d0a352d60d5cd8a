import { CLUSTERQUEUES, LOCALQUEUES, WORKLOADS } from '../../../operator/hubs/kueue-kinds.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { JOBS, type KubeObject, type Resource } from '../../../operator/kube/resources.ts';
import { localQueue } from './kueue.ts';

const QUEUE_LABEL = 'kueue.x-k8s.io/queue-name';
const PRIORITY_LABEL = 'kueue.x-k8s.io/priority-class';

export interface KueueWorkload extends KubeObject {
  spec?: { priority?: number };
  status?: {
    conditions?: { type: string; status: string; reason: string; message: string }[];
    clusterName?: string;
    nominatedClusterNames?: string[];
    admissionChecks?: { name: string; state: string; message: string; retryCount?: number }[];
  };
}

/**
 * ClusterQueue `all` of this size, and LocalQueue `jobs` in namespace shop.
 * @param checks AdmissionChecks that its jobs pass
 */
export async function makeQueues(
  client: KubeClient,
  quota: { cpu: string; memory: string },
  checks: readonly string[] = [],
): Promise<void> {
  await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const resources = Object.entries(quota).map(([name, nominalQuota]) => ({ name, nominalQuota }));
  const admissionChecks = checks.map((name) => ({ name }));
  const queue = {
    apiVersion: 'kueue.x-k8s.io/v1beta2',
    kind: 'ClusterQueue',
    metadata: { name: 'all' },
    spec: {
      namespaceSelector: {},
      resourceGroups: [{ coveredResources: Object.keys(quota), flavors: [{ name: 'default', resources }] }],
      ...(checks.length > 0 && { admissionChecksStrategy: { admissionChecks } }),
    },
  };
  await client.apply(queue, { resource: CLUSTERQUEUES });
  // Not as the operator would: in life it is somebody else's.
  await client.create(localQueue('shop'), { resource: LOCALQUEUES });
}

/** Job shop/<name> in LocalQueue `jobs`. @param priorityClass name of a WorkloadPriorityClass; absent: none */
export const job = (name: string, cpu: string, parallelism = 1, priorityClass?: string): KubeObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: {
    name,
    namespace: 'shop',
    labels: { [QUEUE_LABEL]: 'jobs', ...(priorityClass && { [PRIORITY_LABEL]: priorityClass }) },
  },
  spec: {
    parallelism,
    completions: parallelism,
    template: {
      metadata: { labels: { app: name } },
      spec: {
        restartPolicy: 'Never',
        containers: [{ name: 'main', image: 'job', resources: { requests: { cpu, memory: '64Mi' } } }],
      },
    },
  },
});

/** WorkloadPriorityClass of this name and value. */
export const makePriorityClass = (client: KubeClient, name: string, value: number) =>
  client.create(
    { apiVersion: 'kueue.x-k8s.io/v1beta2', kind: 'WorkloadPriorityClass', metadata: { name }, value } as KubeObject,
    {
      resource: {
        group: 'kueue.x-k8s.io',
        version: 'v1beta2',
        plural: 'workloadpriorityclasses',
        kind: 'WorkloadPriorityClass',
        namespaced: false,
      },
    },
  );

/** What Kueue has made of Job shop/<name>. */
export async function workloadOf(client: KubeClient, name: string): Promise<KueueWorkload | undefined> {
  const { items } = await client.list<KueueWorkload>(WORKLOADS, { namespace: 'shop' });
  return items.find(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.name === name));
}

export const jobIn = (client: KubeClient, name: string): Promise<KubeObject | undefined> =>
  client.getOrUndefined(JOBS, name, 'shop');

/** Names of what is in namespace shop. */
export const namesIn = async (client: KubeClient, resource: Resource): Promise<string[]> =>
  (await client.list(resource, { namespace: 'shop' })).items.map(({ metadata }) => metadata.name).sort();
