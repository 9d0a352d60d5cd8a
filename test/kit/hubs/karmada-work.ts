import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';

const POLICIES = {
  group: 'policy.karmada.io',
  version: 'v1alpha1',
  plural: 'propagationpolicies',
  kind: 'PropagationPolicy',
  namespaced: true,
};

/** Divided by what is free. */
export const BY_WEIGHT = {
  replicaSchedulingType: 'Divided',
  replicaDivisionPreference: 'Weighted',
  weightPreference: { dynamicWeight: 'AvailableReplicas' },
};

/** As many in each cluster. */
export const DUPLICATED = { replicaSchedulingType: 'Duplicated' };

const tier = (name: string) => ({ affinityName: name, labelSelector: { matchLabels: { tier: name } } });
/** On clusters of tier own, and of tier burst where those have no room. */
export const OVERFLOWING = {
  clusterAffinities: [{ ...tier('own'), overflowAffinities: [tier('burst')] }],
  replicaScheduling: BY_WEIGHT,
};

/** On clusters of tier own alone. */
export const ON_OWN = { clusterAffinity: { labelSelector: { matchLabels: { tier: 'own' } } } };
/** On two clusters at least. */
export const SPREAD = { spreadConstraints: [{ spreadByField: 'cluster', minGroups: 2, maxGroups: 2 }] };
/** All of it on clusters of tier own; or else all of it on those of tier burst. */
export const IN_TURN = { clusterAffinities: [tier('own'), tier('burst')] };

/** Deployment shop/<name> in the hub, and a policy that propagates it. */
export async function propagate(
  client: KubeClient,
  {
    name,
    replicas,
    cpu,
    gpu,
    nodeSelector,
    image = 'pause',
    priorityClass,
  }: {
    name: string;
    replicas: number;
    cpu: string;
    gpu?: string;
    nodeSelector?: Record<string, string>;
    /** Of members whose kubelet is a real one. */
    image?: string;
    /** Of the binding, by which Karmada schedules it. */
    priorityClass?: string;
  },
  placement: object,
): Promise<void> {
  const gpus = gpu && { 'nvidia.com/gpu': gpu };
  const resources = { requests: { cpu, memory: '64Mi', ...gpus }, ...(gpus && { limits: gpus }) };
  await client.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'shop', labels: { app: name } },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { ...(nodeSelector && { nodeSelector }), containers: [{ name: 'web', image, resources }] },
      },
    },
  });
  const schedulePriority = priorityClass && {
    priorityClassSource: 'KubePriorityClass',
    priorityClassName: priorityClass,
  };
  const resourceSelectors = [{ apiVersion: 'apps/v1', kind: 'Deployment', name }];
  await client.apply(
    {
      apiVersion: 'policy.karmada.io/v1alpha1',
      kind: 'PropagationPolicy',
      metadata: { name, namespace: 'shop' },
      spec: { resourceSelectors, placement, ...(schedulePriority && { schedulePriority }) },
    },
    { resource: POLICIES },
  );
}

/** What the scheduler has come to. */
export interface Scheduled {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** Its binding, in namespace shop. */
export const bindingOf = async (client: KubeClient, name: string) =>
  (await client.getOrUndefined(RESOURCEBINDINGS, `${name}-deployment`, 'shop')) as
    | (KubeObject & {
        spec: {
          clusters?: { name: string; replicas: number }[];
          rescheduleTriggeredAt?: string;
          schedulePriority?: object;
        };
        status?: { conditions?: Scheduled[]; schedulerObservedGeneration?: number };
      })
    | undefined;

/** Replicas of Deployment shop/<name>, by cluster. */
export const placed = async (client: KubeClient, name: string): Promise<Record<string, number>> =>
  Object.fromEntries(((await bindingOf(client, name))?.spec.clusters ?? []).map((one) => [one.name, one.replicas]));

/** What the scheduler says of it. */
export const scheduled = async (client: KubeClient, name: string): Promise<Scheduled[]> =>
  (await bindingOf(client, name))?.status?.conditions?.filter(({ type }) => type === 'Scheduled') ?? [];

/**
 * Makes a binding one that is as it was when it was last placed, which Karmada looks at again for nothing but what it observed then. What
 * Karmada notes in a binding, now before its refusal and now after, would have it looked at by chance.
 */
export async function settle(client: KubeClient, name: string): Promise<void> {
  const schedulerObservedGeneration = (await bindingOf(client, name))?.metadata.generation;
  const status = { status: { schedulerObservedGeneration } };
  await client.mergePatch(RESOURCEBINDINGS, `${name}-deployment`, 'shop', status, { subresource: 'status' });
}
