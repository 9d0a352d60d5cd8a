import type { ErrorCode } from '../../operator/api/errors.ts';

/**
 * Meaning of Google's codes, most specific first: a text often contains several (an exhausted quota comes as
 * `forbidden`), and the first matching row decides. A code is listed once for all of Google's spellings:
 * `resourceNotReady` (reasons of JSON APIs), `RESOURCE_NOT_READY` (operations, google.rpc.ErrorInfo) and
 * `ResourceNotReady` (gRPC) are equal.
 *
 * Sources, looked up 2026-11:
 * - compute: cloud.google.com/compute/docs/reference/rest/v1/errors, .../compute/docs/resource-error, and the constants
 * of
 *   kubernetes/autoscaler cluster-autoscaler/cloudprovider/gce/autoscaling_gce_client.go
 * - service: googleapis/googleapis google/api/error_reason.proto
 * - rpc: googleapis/googleapis google/rpc/code.proto
 * - global: "Google APIs - Global domain errors", developers.google.com/youtube/v3/docs/core_errors
 * - dns: docs.cloud.google.com/dns/docs/error-messages; a conflicting CNAME has status 400
 * (kubernetes-sigs/external-dns issue 3885)
 * - oauth: RFC 6749 section 5.2; developers.google.com/identity/protocols/oauth2/service-account
 * - gke: StatusCondition.Code of google.container.v1; hashicorp/terraform-provider-google issues 3650 and 10366
 *   (failedPrecondition while another operation runs)
 * - gardener: gardener-extension-provider-gcp pkg/apis/gcp/helper/error_codes.go, for codes not described elsewhere
 */
const KNOWN: readonly (readonly [code: ErrorCode, source: string, tokens: readonly string[]])[] = [
  [
    'ERR_INFRA_RESOURCES_DEPLETED',
    'compute',
    ['ZONE_RESOURCE_POOL_EXHAUSTED', 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS', 'RESOURCE_POOL_EXHAUSTED'],
  ],
  ['ERR_INFRA_RESOURCES_DEPLETED', 'gke', ['GCE_STOCKOUT']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'gke', ['GCE_QUOTA_EXCEEDED']],
  ['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'service', ['RATE_LIMIT_EXCEEDED']],
  ['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'global', ['rateLimitExceeded', 'userRateLimitExceeded']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'compute', ['QUOTA_EXCEEDED']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'service', ['RESOURCE_QUOTA_EXCEEDED']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'global', ['dailyLimitExceeded']],
  ['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'rpc', ['RESOURCE_EXHAUSTED']],
  ['ERR_CONFIGURATION_PROBLEM', 'compute', ['IP_SPACE_EXHAUSTED', 'IP_SPACE_EXHAUSTED_WITH_DETAILS']],
  // Accounts, keys and clients that are invalid, disabled or deleted: retries may never succeed.
  [
    'ERR_INFRA_UNAUTHENTICATED',
    'oauth',
    ['invalid_grant', 'invalid_client', 'deleted_client', 'disabled_client', 'unauthorized_client'],
  ],
  ['ERR_INFRA_UNAUTHENTICATED', 'service', ['ACCESS_TOKEN_EXPIRED', 'ACCOUNT_STATE_INVALID', 'CREDENTIALS_MISSING']],
  ['ERR_INFRA_UNAUTHENTICATED', 'global', ['authError', 'unauthorized', 'expired']],
  ['ERR_INFRA_UNAUTHENTICATED', 'rpc', ['UNAUTHENTICATED']],
  // Faults of the project, not the caller: also reported as PERMISSION_DENIED, but no permission would help.
  [
    'ERR_INFRA_DEPENDENCIES',
    'service',
    ['SERVICE_DISABLED', 'BILLING_DISABLED', 'CONSUMER_SUSPENDED', 'CONSUMER_INVALID', 'API_DISABLED'],
  ],
  ['ERR_INFRA_DEPENDENCIES', 'gke', ['GKE_SERVICE_ACCOUNT_DELETED', 'CLOUD_KMS_KEY_ERROR']],
  ['ERR_INFRA_DEPENDENCIES', 'global', ['accessNotConfigured']],
  ['ERR_CONFIGURATION_PROBLEM', 'service', ['LOCATION_TAX_POLICY_VIOLATED']],
  ['ERR_INFRA_UNAUTHORIZED', 'service', ['USER_PROJECT_DENIED', 'SECURITY_POLICY_VIOLATED', 'IAM_PERMISSION_DENIED']],
  ['ERR_INFRA_UNAUTHORIZED', 'gardener', ['SERVICE_ACCOUNT_ACCESS_DENIED']],
  ['ERR_INFRA_UNAUTHORIZED', 'compute', ['PERMISSIONS_ERROR']],
  ['ERR_INFRA_UNAUTHORIZED', 'global', ['insufficientPermissions', 'forbidden']],
  ['ERR_INFRA_UNAUTHORIZED', 'rpc', ['PERMISSION_DENIED']],
  ['ERR_INFRA_DEPENDENCIES', 'compute', ['RESOURCE_IN_USE_BY_ANOTHER_RESOURCE', 'RESOURCE_ALREADY_EXISTS']],
  ['ERR_INFRA_DEPENDENCIES', 'global', ['duplicate', 'conflict']],
  ['ERR_INFRA_DEPENDENCIES', 'dns', ['cnameResourceRecordSetConflict']],
  ['ERR_INFRA_DEPENDENCIES', 'rpc', ['ALREADY_EXISTS']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'compute', ['RESOURCE_NOT_READY', 'SERVICE_UNAVAILABLE_FOR_LOCATION']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'gke', ['FAILED_PRECONDITION']],
  ['ERR_CONFIGURATION_PROBLEM', 'compute', ['INVALID_FIELD_VALUE', 'FIELD_SIZE_TOO_LARGE', 'MISSING_REQUIRED_FIELD']],
  ['ERR_CONFIGURATION_PROBLEM', 'global', ['badRequest', 'invalid', 'invalidParameter', 'required']],
  ['ERR_CONFIGURATION_PROBLEM', 'rpc', ['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'UNIMPLEMENTED']],
  ['ERR_INFRA_DEPENDENCIES', 'compute', ['RESOURCE_NOT_FOUND', 'PROJECT_NOT_FOUND', 'NETWORK_NOT_FOUND']],
  ['ERR_INFRA_DEPENDENCIES', 'rpc', ['NOT_FOUND']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'global', ['backendError', 'internalError', 'serviceUnavailable']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'rpc', ['UNAVAILABLE', 'INTERNAL', 'ABORTED', 'DEADLINE_EXCEEDED', 'CANCELLED']],
];

/**
 * Phrases where Google gives no specific code. GKE answers `forbidden` to an exceeded quota and to rate limits: seen in
 * GoogleCloudPlatform/cloud-ops-sandbox issue 44 and terraform-google-modules/terraform-google-kubernetes-engine pull
 * 1745. Organization policy constraints are matched as in Gardener. Cloud DNS names the part of a change that conflicts
 * with a concurrent one (googleapis/google-cloud-java issue 808, kubernetes-sigs/external-dns issue 3307).
 */
const PHRASES: readonly (readonly [code: ErrorCode, phrase: RegExp])[] = [
  ['ERR_INFRA_QUOTA_EXCEEDED', /insufficient (?:regional|project|zonal) quota|cannot create more than \d+ clusters/i],
  [
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    /'entity\.change\.(?:additions|deletions)\[[^\n]*?(?:already exists|does not exist)/,
  ],
  ['ERR_CONFIGURATION_PROBLEM', /\bconstraints\/[a-z]+\.\w+/],
];

/** By HTTP status, without other information. 5xx: retryable. */
const STATUSES: Readonly<Record<string, ErrorCode>> = {
  400: 'ERR_CONFIGURATION_PROBLEM',
  401: 'ERR_INFRA_UNAUTHENTICATED',
  403: 'ERR_INFRA_UNAUTHORIZED',
  404: 'ERR_INFRA_DEPENDENCIES',
  409: 'ERR_INFRA_DEPENDENCIES',
  429: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
};

const normal = (token: string): string => token.replaceAll('_', '').toLowerCase();

const RANKS: ReadonlyMap<string, number> = new Map(
  KNOWN.flatMap(([, , tokens], rank) => tokens.map((token) => [normal(token), rank] as const)),
);

/**
 * Words that cannot belong to names or prose (Google's resource names have neither capitals nor underscores): all
 * capitals, an inner capital, or an underscore; then words in a code's position: `code = Aborted`, `"reason":
 * "conflict"`, and a JSON API's reason at the end of a line, `googleapi: Error 409: ..., conflict`.
 */
const TOKENS = [
  /\b[A-Z][A-Z0-9_]{3,}\b/g,
  /\b[a-zA-Z][a-z0-9]+[A-Z][A-Za-z0-9]*\b/g,
  /\b[a-z]+_[a-z_]+\b/g,
  /(?:\bcode = |"(?:reason|code|status|error)":\s*")(\w+)/g,
  /,\s*([a-z][a-zA-Z]+)[.\s]*$/gm,
];

/**
 * The Gardener code of a message from Google, its Terraform provider or Pulumi: an error or the body of an answer.
 * undefined: nothing in it is known.
 */
export function classify(text: string): ErrorCode | undefined {
  for (const [code, phrase] of PHRASES) if (phrase.test(text)) return code;
  const ranks = TOKENS.flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap((match) => RANKS.get(normal(match[1] ?? match[0])) ?? []),
  );
  if (ranks.length > 0) return KNOWN[Math.min(...ranks)]![0];
  const status = /\b(?:Error |HTTP |status(?: code)?:? )([45]\d\d)\b/i.exec(text)?.[1];
  if (status === undefined) return undefined;
  return STATUSES[status] ?? (status.startsWith('5') ? 'ERR_RETRYABLE_INFRA_DEPENDENCIES' : undefined);
}
