import type { LabelSelector } from '../../api/label-selector.ts';
import { hasEnded } from '../../kube/pods.ts';
import { conditionIsTrue, type KubeObject, type Pod } from '../../kube/resources.ts';
import { labelSelector } from '../fit/selectors.ts';

interface Budget {
  readonly name: string;
  readonly selects: (pod: Pod) => boolean;
  readonly allows: (pod: Pod) => boolean;
}

/** Why an eviction of a pod would be refused now, the end of a sentence about it; undefined: no budget stands against it. */
export type WhyBlocked = (pod: Pod) => string | undefined;

/**
 * What the Eviction API would answer, by PodDisruptionBudgets: it is asked before anything is evicted, as Karpenter and Cluster Autoscaler
 * do, since pods would be evicted in vain from a node that another pod keeps. Pure.
 */
export function blockedBy(budgets: readonly KubeObject[]): WhyBlocked {
  const all = budgets.map(budgetOf);
  return (pod) => {
    // The API server asks no budget about these.
    if (hasEnded(pod) || pod.status?.phase === 'Pending' || pod.metadata.deletionTimestamp) return undefined;
    const [budget, another] = all.filter(({ selects }) => selects(pod));
    if (another)
      return `must not be disrupted: PodDisruptionBudgets ${budget!.name} and ${another.name} both select it, and Kubernetes evicts no such pod`;
    return budget && !budget.allows(pod)
      ? `must not be disrupted now: PodDisruptionBudget ${budget.name} says so`
      : undefined;
  };
}

interface Spec {
  selector?: LabelSelector;
  unhealthyPodEvictionPolicy?: string;
}

interface Status {
  disruptionsAllowed?: number;
  currentHealthy?: number;
  desiredHealthy?: number;
  observedGeneration?: number;
}

function budgetOf({ metadata, ...budget }: KubeObject): Budget {
  const { selector, unhealthyPodEvictionPolicy } = (budget.spec ?? {}) as Spec;
  const status = (budget.status ?? {}) as Status;
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0 } = status;
  const matches = labelSelector(selector);
  const isHealthy = desiredHealthy > 0 && currentHealthy >= desiredHealthy;
  return {
    name: `${metadata.namespace}/${metadata.name}`,
    // One without a selector selects nothing.
    selects: (pod) =>
      selector !== undefined && pod.metadata.namespace === metadata.namespace && matches(pod.metadata.labels ?? {}),
    allows: (pod) =>
      (status.observedGeneration ?? 0) >= (metadata.generation ?? 0) && disruptionsAllowed >= 1
        ? true
        : !conditionIsTrue(pod, 'Ready') && (unhealthyPodEvictionPolicy === 'AlwaysAllow' || isHealthy),
  };
}
