import { hasEnded, isMovable, isOfNode } from '../kube/pods.ts';
import type { Pod } from '../kube/resources.ts';
import { atOnce, eachInSteps, type Steps } from '../kube/steps.ts';
import type { FitPod } from './fit/model.ts';
import { fitPod } from './fit/pod.ts';
import { likenessOf } from './likeness.ts';

/** Demand for room: a number of equal replicas. */
export interface ReplicaDemand {
  /** Kind and `namespace/name` of the pods' owner, or of the single pod. */
  readonly who: string;
  /** Requests and constraints of one replica. */
  readonly replica: FitPod;
  /** One unique key per replica: the UID of its pod. */
  readonly keys: readonly string[];
  /** RFC 3339: when the longest waiting pod began to wait. */
  readonly since: string;
  /** `InterruptedNodes`: the pods still run, on nodes that a cloud takes away. */
  readonly source: 'PendingPods' | 'InterruptedNodes';
  /** The pods only serve the other pods of the cluster: without those they need no node. */
  readonly isSystem: boolean;
  /** Digest of what decides where the pods fit, stable across restarts. Absent: purchases for it are not tracked. */
  readonly likeness?: string;
}

/** Reasons why a waiting pod buys nothing. Listed in docs/concepts/sizes.md. */
export const NOT_DEMAND = {
  Gated: 'a scheduling gate blocks it',
  SchedulerError: 'its scheduler failed, for which a node is no cure',
  Nominated: 'a node is nominated for it, where others make room',
  BoundToNode: "it runs on one node only: it is a DaemonSet's or a static pod",
  LowPriority: 'its priority is below -10, the least that buys nodes',
} as const;

/** Key of NOT_DEMAND. */
type NotDemand = keyof typeof NOT_DEMAND;

/** Pods whose reason to wait no node can remove. */
export interface Ignored {
  readonly reason: NotDemand;
  readonly pods: number;
  /** One of the pods, `namespace/name`. */
  readonly example: string;
}

/** Pods of lower priority buy no node; same as Cluster Autoscaler's expendable-pods-priority-cutoff. */
const LEAST_PRIORITY = -10;

interface DemandOptions {
  /**
   * Whether the node that a pod is nominated for exists and will take it: Kubernetes keeps nominations of deleted
   * nodes.
   */
  readonly isNominationLive: (pod: Pod) => boolean;
}

/** Demand of a cluster's pending pods, and pods that buy nothing. */
interface PendingDemand {
  readonly demands: ReplicaDemand[];
  readonly ignored: Ignored[];
}

/** Demand of a cluster's pending pods, by owner. Leaves out pods that no scheduler has tried yet. Pure. */
export const pendingDemand = (pods: readonly Pod[], options: DemandOptions): PendingDemand =>
  atOnce(pendingDemandInSteps(pods, options));

/** Same as pendingDemand, with pauses. */
export function* pendingDemandInSteps(pods: readonly Pod[], { isNominationLive }: DemandOptions): Steps<PendingDemand> {
  const found = new Groups();
  const ignored = new Map<NotDemand, { pods: number; example: string }>();
  yield* eachInSteps(pods, (pod) => {
    const waits = waiting(pod);
    if (!waits) return;
    const reason = whyNot(pod, waits.reason);
    if (!reason) {
      found.add(pod, waits.since);
      return;
    }
    const known = ignored.get(reason);
    ignored.set(reason, { pods: (known?.pods ?? 0) + 1, example: known?.example ?? nameOf(pod) });
  });
  return {
    demands: found.demands('PendingPods'),
    ignored: [...ignored].map(([reason, what]) => ({ reason, ...what })),
  };

  function whyNot(pod: Pod, why: string): NotDemand | undefined {
    if (why === 'SchedulingGated' || (pod.spec.schedulingGates ?? []).length > 0) return 'Gated';
    if (why !== 'Unschedulable') return 'SchedulerError';
    if (isOfNode(pod)) return 'BoundToNode';
    if ((pod.spec.priority ?? 0) < LEAST_PRIORITY) return 'LowPriority';
    return pod.status?.nominatedNodeName && isNominationLive(pod) ? 'Nominated' : undefined;
  }
}

/** Demand of pods on nodes that a cloud takes away, with pauses. Pure. @param since RFC 3339 */
export function* interruptedDemand(pods: readonly Pod[], since: string): Steps<ReplicaDemand[]> {
  const found = new Groups();
  yield* eachInSteps(pods, (pod) => {
    if (isMovable(pod) && !pod.metadata.deletionTimestamp) found.add(pod, since);
  });
  return found.demands('InterruptedNodes');
}

interface Alike extends Pick<ReplicaDemand, 'who' | 'isSystem'> {
  keys: string[];
  since: string;
  likeness: string;
}

/** Equal pods by owner. */
class Groups {
  /** By replica, then by owner: a tenant may have as many owners as pods. */
  readonly #byReplica = new Map<FitPod, Map<string, Alike>>();

  add(pod: Pod, since: string): void {
    const replica = fitPod(pod);
    const who = ownerOf(pod);
    const owners = this.#byReplica.get(replica) ?? new Map<string, Alike>();
    const group = owners.get(who);
    if (!group) {
      const made = { who, keys: [keyOfPod(pod)], since, isSystem: isSystem(pod), likeness: likenessOf(pod) };
      this.#byReplica.set(replica, owners.set(who, made));
    } else {
      group.keys.push(keyOfPod(pod));
      if (since < group.since) group.since = since;
    }
  }

  demands(source: ReplicaDemand['source']): ReplicaDemand[] {
    return [...this.#byReplica].flatMap(([replica, owners]) =>
      [...owners.values()].map((owner): ReplicaDemand => ({ ...owner, replica, source })),
    );
  }
}

/** Since when and why a scheduler cannot place a pod; undefined: no scheduler says so. */
function waiting({ metadata, spec, status }: Pod): { reason: string; since: string } | undefined {
  if (spec.nodeName || metadata.deletionTimestamp || hasEnded({ status })) return undefined;
  const said = status?.conditions?.find(({ type }: { type: string }) => type === 'PodScheduled');
  if (said?.status !== 'False') return undefined;
  return {
    reason: said.reason ?? '',
    since: said.lastTransitionTime ?? metadata.creationTimestamp ?? '',
  };
}

/** Pods that every cluster runs to serve other pods. Counting them would keep the last node and buy the first. */
const SYSTEM_APPS = ['kube-dns', 'konnectivity-agent', 'coppice-local-path', 'coppice-metrics-server'];

/** Whether a pod only serves the other pods of its cluster. */
export const isSystem = ({ metadata: { namespace, labels } }: Pod): boolean =>
  namespace === 'kube-system' && SYSTEM_APPS.includes(labels?.['k8s-app'] ?? '');

const nameOf = ({ metadata: { namespace, name } }: Pod): string => `${namespace}/${name}`;
const keyOfPod = (pod: Pod): string => pod.metadata.uid ?? nameOf(pod);

function ownerOf(pod: Pod): string {
  const { namespace, name, ownerReferences } = pod.metadata;
  const owner = (ownerReferences ?? []).find(({ controller }) => controller);
  return owner ? `${owner.kind} ${namespace}/${owner.name}` : `Pod ${namespace}/${name}`;
}
