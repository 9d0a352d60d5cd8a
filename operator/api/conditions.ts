import type { Condition } from './meta.ts';

/** Condition of a cluster that exists as objects only, without a control plane: nothing answers behind its kubeconfig. */
export const NO_CONTROL_PLANE = 'NoControlPlane';

/** Condition of a cluster that is to sleep, True once it does; and the reason of what else is so because of it. */
export const HIBERNATED = 'Hibernated';
/** Condition of a seed and of a cluster: whether its network enforces NetworkPolicies. */
export const NETWORK_POLICIES_ENFORCED = 'NetworkPoliciesEnforced';
/** Condition of a cluster for which addons are asked: whether they serve. Ready does not wait for them. */
export const ADDONS_READY = 'AddonsReady';

/** Condition of a cluster while another key for its Secrets comes in: which step it is at; False where it cannot come. */
export const ENCRYPTION_KEY_ROTATING = 'EncryptionKeyRotating';

/** Condition of a cluster whose keys were lost, False: what the operator does not make anew, and what to do. */
export const KEYS_KEPT = 'KeysKept';

/** Reason of conditions while a cluster that slept is started. */
export const WAKING = 'Waking';

/** The condition of that type, if it was ever set. */
export const findCondition = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find((condition) => condition.type === type);

/** Whether the condition of that type is there and True. */
export const isTrue = (conditions: readonly Condition[] | undefined, type: string): boolean =>
  findCondition(conditions, type)?.status === 'True';

/**
 * The list with `condition` in it. lastTransitionTime moves only when status changes, so that writing the same statement
 * again is no change at all. `now` is the time of the transition, if it is one.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  condition: Omit<Condition, 'lastTransitionTime'>,
  now: Date,
): Condition[] {
  const before = findCondition(conditions, condition.type);
  const lastTransitionTime = before && before.status === condition.status ? before.lastTransitionTime : rfc3339(now);
  const next: Condition = { ...condition, lastTransitionTime };
  if (!before) return [...(conditions ?? []), next];
  return (conditions ?? []).map((old) => (old.type === condition.type ? next : old));
}

/** A metav1.Time: whole seconds, UTC, as the API server itself writes them. */
export const rfc3339 = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;
