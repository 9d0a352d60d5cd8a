import type { KubeObject, Pod } from '../../kube/resources.ts';
import type { FitPod } from '../fit/model.ts';
import { NOT_JUDGED } from '../fit/not-judged.ts';
import { fitPod } from '../fit/pod.ts';
import { blockedBy, type WhyBlocked } from '../nodes/pod-budgets.ts';
import { whyPodStays } from '../nodes/stays.ts';
import type { Movable, WaitingWork } from './model.ts';

/** Work that a hub has placed on a cluster. */
interface MovableWork extends Pick<WaitingWork, 'source' | 'each' | 'inOneCluster' | 'accepts' | 'customKind'> {
  /** Desired number of replicas there. */
  readonly count: number;
  /** The object there that owns its pods. */
  readonly workload: { readonly kind: string; readonly namespace: string; readonly name: string };
  /** Why its hub would not move it, the end of a sentence; absent: it would. */
  readonly stays?: string | undefined;
}

/** Content of a cluster. */
interface Inside {
  /** Pods of people's work, without DaemonSets and Kubernetes' own pods. */
  readonly pods: readonly Pod[];
  /** PodDisruptionBudgets of the cluster. */
  readonly budgets: readonly KubeObject[];
  /** Other content that would be lost with the cluster, as text. */
  readonly others: readonly string[];
}

/**
 * Work of a cluster as it would wait elsewhere, if the hub can move all of it without loss; or the first obstacle.
 * Pure.
 */
export function movableWork(placed: readonly MovableWork[], { pods, budgets, others }: Inside): Movable {
  const [other] = others;
  if (other) return { stays: `${other} would end with the cluster` };
  const whyBlocked = blockedBy(budgets);
  const found = new Map<MovableWork, Map<FitPod, number>>();
  for (const pod of [...pods].filter(({ metadata }) => !metadata.deletionTimestamp).sort(byName)) {
    const whose = placed.find(({ workload }) => makes(workload, pod));
    const why = whose ? whyStays(pod, whyBlocked) : 'was not placed there by the hub, which would not move it';
    if (why) return { stays: `pod ${nameOf(pod)} ${why}` };
    const fit = fitPod(pod);
    const [reason] = fit.notJudged;
    if (reason) return { stays: `whether pod ${nameOf(pod)} has room elsewhere is not known: ${NOT_JUDGED[reason]}` };
    const counts = found.get(whose!) ?? new Map<FitPod, number>();
    found.set(whose!, counts.set(fit, (counts.get(fit) ?? 0) + 1));
  }
  const work: WaitingWork[] = [];
  for (const one of placed) {
    const counts = found.get(one) ?? new Map<FitPod, number>();
    const there = [...counts.values()].reduce((sum, count) => sum + count, 0);
    if (one.stays && there > 0) return { stays: `${one.source} ${one.stays}` };
    // The hub and the cluster disagree on the number: wait until they agree.
    if (!one.stays && there !== one.count)
      return { stays: `of ${one.source} ${one.count} replicas were placed there by the hub, and ${there} pods exist` };
    for (const [pod, count] of counts)
      work.push({
        source: one.source,
        count,
        pod,
        each: one.each,
        since: 0,
        ...(one.inOneCluster && { inOneCluster: one.inOneCluster }),
        ...(one.accepts && { accepts: one.accepts }),
        ...(one.customKind && { customKind: one.customKind }),
      });
  }
  return { work };
}

const nameOf = ({ metadata: { namespace, name } }: KubeObject): string => `${namespace}/${name}`;
const byName = (a: Pod, b: Pod): number => (nameOf(a) < nameOf(b) ? -1 : 1);

/** Whether this object would recreate the pod. A ReplicaSet's name is that of its Deployment with a hash. */
function makes({ kind, namespace, name }: MovableWork['workload'], { metadata }: Pod): boolean {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (!owner || metadata.namespace !== namespace) return false;
  if (owner.kind === kind) return owner.name === name;
  const hash = metadata.labels?.['pod-template-hash'];
  return kind === 'Deployment' && owner.kind === 'ReplicaSet' && owner.name === `${name}-${hash}`;
}

function whyStays(pod: Pod, whyBlocked: WhyBlocked): string | undefined {
  const why = whyPodStays(pod);
  if (why) return why;
  const volumes = (pod.spec.volumes ?? []) as { persistentVolumeClaim?: object; ephemeral?: object }[];
  if (volumes.some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral))
    return 'keeps data on volumes, which cannot follow it to another cluster';
  return whyBlocked(pod);
}
