import { hasEnded, isMovable, isOfNode } from '../kube/pods.ts';
import type { Pod } from '../kube/resources.ts';
import type { FitPod } from './fit/model.ts';
import { fitPod } from './fit/pod.ts';
import { likenessOf } from './likeness.ts';

/** Room that somebody waits for: so many alike replicas. */
export interface Demand {
  /** Kind and `namespace/name` of whoever made the pods, or of the one pod. */
  readonly who: string;
  /** Requests of one replica, and where it may run. */
  readonly replica: FitPod;
  /** One key a replica, that no other has: the UID of its pod. */
  readonly keys: readonly string[];
  /** RFC 3339: since when the one waits that has waited longest. */
  readonly since: string;
  /** `InterruptedNodes`: they run still, on nodes that a cloud takes away. */
  readonly source: 'PendingPods' | 'InterruptedNodes';
  /** It is there only for the other pods of its cluster: without any it waits for none. */
  readonly isSystem: boolean;
  /** A digest of what decides where its pods fit, the same after a restart. Absent: nobody keeps what was bought for it. */
  readonly likeness?: string;
}

/** Why a pod that waits buys nothing. docs/concepts/sizes.md shows this list. */
export const NOT_DEMAND = {
  Gated: 'a scheduling gate blocks it',
  SchedulerError: 'its scheduler failed, for which a node is no cure',
  Nominated: 'a node is nominated for it, where others make room',
  BoundToNode: "it runs on one node only: it is a DaemonSet's or a static pod",
  LowPriority: 'its priority is below -10, the least that buys nodes',
} as const;

/** A key of the list. */
export type NotDemand = keyof typeof NOT_DEMAND;

/** Pods that wait for a reason that no node cures. */
export interface Ignored {
  readonly reason: NotDemand;
  readonly pods: number;
  /** One of them, `namespace/name`. */
  readonly example: string;
}

/** As Cluster Autoscaler (expendable-pods-priority-cutoff): what may be interrupted at any time is not worth a node. */
const LEAST_PRIORITY = -10;

export interface DemandOptions {
  /** Whether the node that a pod is nominated for is there and will take it; a nomination outlives its node (Kubernetes keeps it). */
  readonly isNominationLive: (pod: Pod) => boolean;
}

/** What pods of a cluster wait for, by those who made them. Pure. Pods that no scheduler has tried yet are left out: there is news of them soon. */
export function pendingDemand(
  pods: readonly Pod[],
  { isNominationLive }: DemandOptions,
): { demands: Demand[]; ignored: Ignored[] } {
  const found = new Groups();
  const ignored = new Map<NotDemand, { pods: number; example: string }>();
  for (const pod of pods) {
    const waits = waiting(pod);
    if (!waits) continue;
    const reason = whyNot(pod, waits.reason);
    if (!reason) {
      found.add(pod, waits.since);
      continue;
    }
    const known = ignored.get(reason);
    ignored.set(reason, { pods: (known?.pods ?? 0) + 1, example: known?.example ?? nameOf(pod) });
  }
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

/** What pods need elsewhere that run on nodes which a cloud takes away. Pure. @param since RFC 3339 */
export function interruptedDemand(pods: readonly Pod[], since: string): Demand[] {
  const found = new Groups();
  for (const pod of pods) if (isMovable(pod) && !pod.metadata.deletionTimestamp) found.add(pod, since);
  return found.demands('InterruptedNodes');
}

interface Alike extends Pick<Demand, 'who' | 'isSystem'> {
  keys: string[];
  since: string;
  likeness: string;
}

/** Alike pods of one owner. */
class Groups {
  readonly #byReplica = new Map<FitPod, Alike[]>();

  add(pod: Pod, since: string): void {
    const replica = fitPod(pod);
    const who = ownerOf(pod);
    const alike = this.#byReplica.get(replica) ?? [];
    const group = alike.find((one) => one.who === who);
    if (!group) {
      const made = { who, keys: [keyOfPod(pod)], since, isSystem: isSystem(pod), likeness: likenessOf(pod) };
      this.#byReplica.set(replica, [...alike, made]);
    } else {
      group.keys.push(keyOfPod(pod));
      if (since < group.since) group.since = since;
    }
  }

  demands(source: Demand['source']): Demand[] {
    return [...this.#byReplica].flatMap(([replica, owners]) =>
      owners.map((owner): Demand => ({ ...owner, replica, source })),
    );
  }
}

/** Since when a scheduler says that it cannot place a pod, and by which reason; undefined: none says so. */
function waiting({ metadata, spec, status }: Pod): { reason: string; since: string } | undefined {
  if (spec.nodeName || metadata.deletionTimestamp || hasEnded({ status })) return undefined;
  const said = status?.conditions?.find(({ type }: { type: string }) => type === 'PodScheduled');
  if (said?.status !== 'False') return undefined;
  return {
    reason: said.reason ?? '',
    since: said.lastTransitionTime ?? metadata.creationTimestamp ?? '',
  };
}

/** What every cluster runs for its other pods. Without these it would keep the last node, and buy the first. */
const SYSTEM_APPS = ['kube-dns', 'konnectivity-agent', 'coppice-local-path', 'coppice-metrics-server'];

/** Whether a pod is there only for the other pods of its cluster. */
export const isSystem = ({ metadata: { namespace, labels } }: Pod): boolean =>
  namespace === 'kube-system' && SYSTEM_APPS.includes(labels?.['k8s-app'] ?? '');

const nameOf = ({ metadata: { namespace, name } }: Pod): string => `${namespace}/${name}`;
const keyOfPod = (pod: Pod): string => pod.metadata.uid ?? nameOf(pod);

function ownerOf(pod: Pod): string {
  const { namespace, name, ownerReferences } = pod.metadata;
  const owner = (ownerReferences ?? []).find(({ controller }) => controller);
  return owner ? `${owner.kind} ${namespace}/${owner.name}` : `Pod ${namespace}/${name}`;
}
