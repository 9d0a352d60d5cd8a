/** Meaning and advice of an error code. */
interface ErrorCodeInfo {
  /** Whether a retry can succeed without a change by a person. For the delays see controllers/backoff.ts. */
  retryable: boolean;
  /** Typical text of the message. */
  see: string;
  means: string;
  why: string;
  advice: string;
}

/** Gardener's error codes (`core.gardener.cloud/v1beta1`), each with whether to retry and what to do. */
export const ERROR_CODES = {
  ERR_INFRA_UNAUTHENTICATED: {
    retryable: false,
    see: '401, AuthFailure or invalid_grant of the cloud',
    means: 'The cloud does not know who asks.',
    why: 'A key was revoked, has expired, or was copied wrong.',
    advice: 'The cloud rejects the credentials: renew them in the Secret that credentialsRef names.',
  },
  ERR_INFRA_UNAUTHORIZED: {
    retryable: false,
    see: '403, AccessDenied or PERMISSION_DENIED of the cloud',
    means: 'The cloud knows who asks, and says no to this action.',
    why: 'A role or policy of the account does not allow it.',
    advice: 'The cloud accepts the credentials but denies this action: grant them the missing permission.',
  },
  ERR_INFRA_QUOTA_EXCEEDED: {
    retryable: false,
    see: 'QuotaExceeded or LimitExceeded of the cloud',
    means: 'The account may not have more of this resource.',
    why: 'The cloud limits each account by region and kind of machine.',
    advice:
      'A quota of the account is used up: raise it, free resources, or request fewer or smaller nodes; the operator retries within 30 minutes.',
  },
  ERR_INFRA_RATE_LIMITS_EXCEEDED: {
    retryable: false,
    see: '429, Throttling or RequestLimitExceeded of the cloud',
    means: 'The cloud answers fewer requests than were asked.',
    why: 'Many programs share the account, or many clusters change at once.',
    advice:
      'The cloud throttles the account, and the operator retries; if this lasts, request a higher rate limit from the cloud.',
  },
  ERR_INFRA_DEPENDENCIES: {
    retryable: false,
    see: 'DependencyViolation or a missing network of the cloud',
    means: 'A resource that the operation needs, or that must go first, is in the way.',
    why: 'Somebody added to, or removed from, the network or group of the cluster.',
    advice: 'A resource in the account is in use or missing: remove or repair it; the operator retries.',
  },
  ERR_RETRYABLE_INFRA_DEPENDENCIES: {
    retryable: true,
    see: 'no answer, a closed connection, or not ready yet',
    means: 'Something underneath is not there yet, or does not answer now.',
    why: 'An API server starts, a network is broken, or a cloud is slow.',
    advice: 'The infrastructure is not ready yet; the operator retries.',
  },
  ERR_INFRA_RESOURCES_DEPLETED: {
    retryable: true,
    see: 'InsufficientInstanceCapacity, ZONE_RESOURCE_POOL_EXHAUSTED or SkuNotAvailable',
    means: 'The cloud has none of these machines to sell now.',
    why: 'Other customers have them all, in this zone or region.',
    advice:
      'The cloud has no such machines left in this zone or region: choose another zone, region or machine type, or wait.',
  },
  ERR_CLEANUP_CLUSTER_RESOURCES: {
    retryable: true,
    see: 'objects of the cluster that do not go',
    means: 'The deletion waits for objects in the cluster.',
    why: 'A finalizer, a webhook or a PodDisruptionBudget keeps them.',
    advice: 'Objects in the cluster cannot be deleted: check their finalizers, webhooks and PodDisruptionBudgets.',
  },
  ERR_CONFIGURATION_PROBLEM: {
    retryable: false,
    see: 'the field, and what is wrong with it',
    means: 'No retry can help: what is asked for does not exist or is not allowed.',
    why: 'The spec contradicts the profile, the provider, or itself.',
    advice: 'The spec asks for something that is not possible: correct it.',
  },
  ERR_RETRYABLE_CONFIGURATION_PROBLEM: {
    retryable: true,
    see: 'the object that is missing or not usable',
    means: 'The spec can work as soon as another object is there.',
    why: 'The Secret, CloudProfile, Hub or Seed was not created yet.',
    advice: 'Something that the configuration refers to does not exist yet: create it; the operator retries.',
  },
  ERR_PROBLEMATIC_WEBHOOK: {
    retryable: false,
    see: 'failed calling webhook, or denied the request',
    means: 'The API server of a cluster refuses what the operator needs.',
    why: 'A webhook there does not answer, or covers system namespaces.',
    advice: 'A webhook in the cluster blocks requests that the cluster needs: repair or remove it.',
  },
} as const satisfies Record<string, ErrorCodeInfo>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** Whether an error with these codes should be retried: false when any code is not retryable, true without codes. */
export const isRetryable = (codes: readonly string[] | undefined): boolean =>
  (codes ?? []).every((code) => (ERROR_CODES as Record<string, ErrorCodeInfo>)[code]?.retryable ?? true);

/** A pool whose machine type is sold out in a place. */
export interface Shortage {
  /** Name of the pool as passed to the provider. */
  readonly pool: string;
  /** Zones that are sold out. Absent: all zones of the pool, as far as the cloud reports. */
  readonly zones?: readonly string[];
}

/** An error that a person can act on. The message says what happened to which object; `advice` says what to do. */
export class CoppiceError extends Error {
  override readonly name = 'CoppiceError';
  readonly code: ErrorCode;
  readonly advice: string;
  readonly retryable: boolean;
  /** For ERR_INFRA_RESOURCES_DEPLETED: the sold-out pools that the cloud reported. */
  readonly shortages: readonly Shortage[];

  constructor(
    code: ErrorCode,
    message: string,
    options: { advice?: string; cause?: unknown; shortages?: readonly Shortage[] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.advice = options.advice ?? ERROR_CODES[code].advice;
    this.retryable = ERROR_CODES[code].retryable;
    this.shortages = options.shortages ?? [];
  }
}

/** An error that only a change of the spec can fix. */
export const configurationProblem = (message: string, advice?: string): CoppiceError =>
  new CoppiceError('ERR_CONFIGURATION_PROBLEM', message, { advice });

/** An error for an object that the spec refers to and that does not exist yet. */
export const notYetConfigured = (message: string, advice?: string): CoppiceError =>
  new CoppiceError('ERR_RETRYABLE_CONFIGURATION_PROBLEM', message, { advice });

/** An error for a dependency that is not ready yet. */
export const dependencyNotReady = (message: string, cause?: unknown): CoppiceError =>
  new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', message, { cause });

/** One line for a status: what happened and, if known, what to do. */
export const errorText = (error: unknown): string => {
  if (error instanceof CoppiceError) return `${error.message}. ${error.advice}`;
  return error instanceof Error ? error.message : String(error);
};
