import type { Condition } from './meta.ts';

/** Condition of a cluster that exists as objects only, without a control plane: its kubeconfig leads nowhere. */
export const NO_CONTROL_PLANE = 'NoControlPlane';

/**
 * Condition of a cluster with hibernation enabled, True once it sleeps; also the reason of other conditions caused by
 * the sleep.
 */
export const HIBERNATED = 'Hibernated';
/** Condition of a seed and of a cluster: whether its network plugin enforces NetworkPolicies. */
export const NETWORK_POLICIES_ENFORCED = 'NetworkPoliciesEnforced';
/** Condition of a cluster with addons: whether they serve. Ready does not wait for them. */
export const ADDONS_READY = 'AddonsReady';

/** Condition of a cluster while its encryption key for Secrets is rotated: the step; False when rotation is blocked. */
export const ENCRYPTION_KEY_ROTATING = 'EncryptionKeyRotating';

/** Condition of a cluster that lost its keys, False: which keys the operator does not replace, and what to do. */
export const KEYS_KEPT = 'KeysKept';

/** Reason of conditions while a cluster wakes. */
export const WAKING = 'Waking';

/** The condition of a type, or undefined. */
export const findCondition = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find((condition) => condition.type === type);

/** Whether the condition of a type exists and is True. */
export const isTrue = (conditions: readonly Condition[] | undefined, type: string): boolean =>
  findCondition(conditions, type)?.status === 'True';

/**
 * The list with `condition` set. lastTransitionTime changes only with the status, so that writing the same condition
 * again is no change. `now` is the time of the transition.
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

/** A metav1.Time: whole seconds, UTC. */
export const rfc3339 = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;
