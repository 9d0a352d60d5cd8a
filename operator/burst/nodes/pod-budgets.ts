import type { LabelSelector } from '../../api/label-selector.ts';
import { hasEnded } from '../../kube/pods.ts';
import { conditionIsTrue, type KubeObject, type Pod } from '../../kube/resources.ts';
import { labelSelector } from '../fit/selectors.ts';

interface Budget {
  readonly name: string;
  readonly selects: (pod: Pod) => boolean;
  readonly allows: (pod: Pod) => boolean;
}

/** Why an eviction of the pod would be refused now, the end of a sentence; undefined: no budget blocks it. */
export type WhyBlocked = (pod: Pod) => string | undefined;

/**
 * Predicts the Eviction API by PodDisruptionBudgets before any eviction, as Karpenter and Cluster Autoscaler do:
 * evictions are in vain while another pod keeps the node. Pure.
 */
export function blockedBy(budgets: readonly KubeObject[]): WhyBlocked {
  const all = budgets.map(budgetOf);
  return (pod) => {
    // The API server ignores budgets for these pods.
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
    // A budget without selector selects nothing.
    selects: (pod) =>
      selector !== undefined && pod.metadata.namespace === metadata.namespace && matches(pod.metadata.labels ?? {}),
    allows: (pod) =>
      (status.observedGeneration ?? 0) >= (metadata.generation ?? 0) && disruptionsAllowed >= 1
        ? true
        : !conditionIsTrue(pod, 'Ready') && (unhealthyPodEvictionPolicy === 'AlwaysAllow' || isHealthy),
  };
}
