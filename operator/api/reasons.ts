import type { Condition } from './meta.ts';
import type { Explanation } from './reasons/explanation.ts';
import { ADMISSIONCHECK, CERTIFICATESIGNINGREQUEST, CLUSTERPROFILE, MANAGEDCLUSTER } from './reasons/foreign.ts';
import { BURSTPOLICY, HUB, MEMBERSHIP } from './reasons/hubs.ts';
import { CLOUDPROFILE, CREDENTIALSBINDING, QUOTA, SEED, WORKLOADIDENTITY } from './reasons/platform.ts';
import { SHOOT } from './reasons/shoot.ts';
import { WORKERCLUSTER } from './reasons/workercluster.ts';

export type { Explanation } from './reasons/explanation.ts';

/**
 * Every reason of a condition that the operator writes, by kind and condition type, with meaning and advice. Reasons of
 * other systems (a pod, a cloud, a hub) go into the message.
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
/** Kinds with conditions of the operator. */
export type ConditionKind = keyof Reasons;
/** Condition types of a kind. */
export type ConditionType<K extends ConditionKind = ConditionKind> = K extends ConditionKind
  ? keyof Reasons[K] & string
  : never;
/** Reasons of a condition type. */
export type Reason<K extends ConditionKind, T extends string> = K extends ConditionKind
  ? T extends keyof Reasons[K]
    ? keyof Reasons[K][T] & string
    : never
  : never;

/** A condition of one type, without its transition time. */
export type SaidOf<T extends string, R extends string> = Omit<Condition, 'lastTransitionTime' | 'type' | 'reason'> & {
  readonly type: T;
  readonly reason: R;
};
/** A condition of one type of a kind. */
export type SaidAs<K extends ConditionKind, T extends ConditionType<K>> = T extends string
  ? SaidOf<T, Reason<K, T>>
  : never;
/** Any condition of a kind, without its transition time. */
export type Said<K extends ConditionKind> = K extends ConditionKind
  ? { [T in ConditionType<K>]: SaidOf<T, Reason<K, T>> }[ConditionType<K>]
  : never;

/** Meaning and advice of a reason; undefined: an operator of another version wrote it. */
export const explanationOf = (kind: string, { type, reason = '' }: Pick<Condition, 'type' | 'reason'>) =>
  (REASONS as Record<string, Record<string, Record<string, Explanation>>>)[kind]?.[type]?.[reason];
