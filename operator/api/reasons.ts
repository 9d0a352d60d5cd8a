import type { Condition } from './meta.ts';
import type { Explanation } from './reasons/explanation.ts';
import { ADMISSIONCHECK, CERTIFICATESIGNINGREQUEST, CLUSTERPROFILE, MANAGEDCLUSTER } from './reasons/foreign.ts';
import { BURSTPOLICY, HUB, MEMBERSHIP } from './reasons/hubs.ts';
import { CLOUDPROFILE, CREDENTIALSBINDING, QUOTA, SEED, WORKLOADIDENTITY } from './reasons/platform.ts';
import { SHOOT } from './reasons/shoot.ts';
import { WORKERCLUSTER } from './reasons/workercluster.ts';

export type { Explanation } from './reasons/explanation.ts';

/**
 * Every reason of a condition that the operator writes, by kind and by type of the condition, and what it asks of people. What another system
 * says (the reason of a pod, of a cloud or of a hub) goes into the message.
 */
export const REASONS = {
  WorkerCluster: WORKERCLUSTER,
  Shoot: SHOOT,
  Seed: SEED,
  CloudProfile: CLOUDPROFILE,
  CredentialsBinding: CREDENTIALSBINDING,
  WorkloadIdentity: WORKLOADIDENTITY,
  Quota: QUOTA,
  Hub: HUB,
  Membership: MEMBERSHIP,
  BurstPolicy: BURSTPOLICY,
  CertificateSigningRequest: CERTIFICATESIGNINGREQUEST,
  ClusterProfile: CLUSTERPROFILE,
  AdmissionCheck: ADMISSIONCHECK,
  ManagedCluster: MANAGEDCLUSTER,
} as const satisfies Record<string, Record<string, Record<string, Explanation>>>;

type Reasons = typeof REASONS;
/** Kinds that have conditions of the operator. */
export type ConditionKind = keyof Reasons;
/** Types of conditions that objects of a kind have. */
export type ConditionType<K extends ConditionKind = ConditionKind> = K extends ConditionKind
  ? keyof Reasons[K] & string
  : never;
/** Reasons of one type of condition. */
export type Reason<K extends ConditionKind, T extends string> = K extends ConditionKind
  ? T extends keyof Reasons[K]
    ? keyof Reasons[K][T] & string
    : never
  : never;

/** A condition of one type, without the time since when it is so. */
export type SaidOf<T extends string, R extends string> = Omit<Condition, 'lastTransitionTime' | 'type' | 'reason'> & {
  readonly type: T;
  readonly reason: R;
};
/** A condition of one type, as it is said of an object of a kind. */
export type SaidAs<K extends ConditionKind, T extends ConditionType<K>> = T extends string
  ? SaidOf<T, Reason<K, T>>
  : never;
/** A condition as it is said of an object of a kind; when it began is for whoever writes it. */
export type Said<K extends ConditionKind> = K extends ConditionKind
  ? { [T in ConditionType<K>]: SaidOf<T, Reason<K, T>> }[ConditionType<K>]
  : never;

/** What a reason of a condition means and asks; undefined: an operator of another version wrote it. */
export const explanationOf = (kind: string, { type, reason = '' }: Pick<Condition, 'type' | 'reason'>) =>
  (REASONS as Record<string, Record<string, Record<string, Explanation>>>)[kind]?.[type]?.[reason];
