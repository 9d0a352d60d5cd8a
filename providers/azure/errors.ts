import type { ErrorCode } from '../../operator/api/errors.ts';

/**
 * Meaning of the codes of Azure Resource Manager, AKS and Entra ID, most specific first: a text often contains several
 * (the cause is nested in `BadRequest` or `DeploymentFailed`), and the first matching row decides.
 *
 * Sources, looked up 2026-11:
 * - arm: MicrosoftDocs/azure-docs articles/azure-resource-manager/troubleshooting/common-deployment-errors.md
 * - aks: MicrosoftDocs/SupportArticles-docs support/azure/azure-kubernetes/error-codes
 * - limits: MicrosoftDocs/azure-aks-docs articles/aks/quotas-skus-regions.md
 * - karpenter: Azure/karpenter-provider-azure pkg/providers/instance/offerings
 * - oauth: RFC 6749 section 5.2, as MicrosoftDocs/entra-docs docs/identity-platform/reference-error-codes.md explains
 * it
 * - gardener: gardener-extension-provider-azure pkg/apis/azure/helper/error_codes.go, for codes not described elsewhere
 */
const KNOWN: readonly (readonly [code: ErrorCode, source: string, tokens: readonly string[]])[] = [
  ['ERR_INFRA_UNAUTHENTICATED', 'oauth', ['invalid_client', 'unauthorized_client', 'invalid_grant']],
  [
    'ERR_INFRA_UNAUTHENTICATED',
    'arm',
    ['InvalidAuthenticationToken', 'InvalidAuthenticationTokenTenant', 'ExpiredAuthenticationToken'],
  ],
  ['ERR_INFRA_UNAUTHENTICATED', 'arm', ['AuthenticationFailed']],
  ['ERR_INFRA_UNAUTHENTICATED', 'aks', ['InvalidClientSecret', 'ServicePrincipalValidationClientError']],
  ['ERR_INFRA_UNAUTHENTICATED', 'gardener', ['InvalidSubscriptionId']],
  ['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'arm', ['SubscriptionRequestsThrottled', 'TooManyRequests']],
  ['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'aks', ['TooManyRequestsReceived', 'Throttled']],
  ['ERR_INFRA_RESOURCES_DEPLETED', 'arm', ['AllocationFailed', 'SkuNotAvailable']],
  ['ERR_INFRA_RESOURCES_DEPLETED', 'aks', ['ZonalAllocationFailed', 'OverconstrainedAllocationRequest']],
  ['ERR_INFRA_RESOURCES_DEPLETED', 'aks', ['AksCapacityHeavyUsage']],
  ['ERR_INFRA_RESOURCES_DEPLETED', 'karpenter', ['OverconstrainedZonalAllocationRequest']],
  [
    'ERR_INFRA_QUOTA_EXCEEDED',
    'arm',
    ['ResourceQuotaExceeded', 'DeploymentQuotaExceeded', 'PublicIPCountLimitReached', 'RegionDoesNotAllowProvisioning'],
  ],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'aks', ['QuotaExceeded', 'InsufficientVCPUQuota']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'limits', ['ManagedClusterCountExceedsQuotaLimit']],
  ['ERR_INFRA_UNAUTHORIZED', 'arm', ['AuthorizationFailed', 'LinkedAuthorizationFailed', 'SubscriptionNotFound']],
  [
    'ERR_INFRA_DEPENDENCIES',
    'arm',
    ['MissingSubscriptionRegistration', 'SubscriptionNotRegistered', 'MissingRegistrationForLocation'],
  ],
  ['ERR_INFRA_DEPENDENCIES', 'arm', ['NoRegisteredProviderFound', 'InvalidSubscriptionRegistrationState']],
  ['ERR_INFRA_DEPENDENCIES', 'arm', ['InUseSubnetCannotBeDeleted']],
  ['ERR_INFRA_DEPENDENCIES', 'aks', ['InUseRouteTableCannotBeDeleted', 'SubnetIsDelegated']],
  ['ERR_INFRA_DEPENDENCIES', 'gardener', ['ReadOnlyDisabledSubscription', 'InternalBillingError', 'VnetInUse']],
  [
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    'arm',
    ['AnotherOperationInProgress', 'DeploymentActiveAndUneditable', 'ResourceGroupBeingDeleted'],
  ],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'aks', ['AKSOperationPreempted', 'AKSOperationPreemptedByDelete']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'aks', ['VirtualNetworkNotInSucceededState']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'gardener', ['RetryableError']],
  ['ERR_CLEANUP_CLUSTER_RESOURCES', 'aks', ['UnsatisfiablePDB']],
  [
    'ERR_CONFIGURATION_PROBLEM',
    'arm',
    ['RequestDisallowedByPolicy', 'PropertyChangeNotAllowed', 'SubnetIsFull', 'InvalidResourceReference'],
  ],
  ['ERR_CONFIGURATION_PROBLEM', 'arm', ['InvalidParameter', 'InvalidRequestContent', 'InvalidRequestFormat']],
  ['ERR_CONFIGURATION_PROBLEM', 'aks', ['AvailabilityZoneNotSupported', 'NodePoolMcVersionIncompatible']],
  ['ERR_CONFIGURATION_PROBLEM', 'aks', ['ServiceCidrOverlapExistingSubnetsCidr', 'DnsServiceIpOutOfServiceCidr']],
  ['ERR_CONFIGURATION_PROBLEM', 'gardener', ['NetcfgInvalidSubnet']],
  ['ERR_CONFIGURATION_PROBLEM', 'arm', ['OperationNotAllowed']],
  ['ERR_INFRA_DEPENDENCIES', 'arm', ['ResourceGroupNotFound', 'ResourceNotFound', 'ParentResourceNotFound']],
  ['ERR_INFRA_DEPENDENCIES', 'arm', ['NotFound', 'Conflict']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'arm', ['InternalServerError']],
  ['ERR_CONFIGURATION_PROBLEM', 'arm', ['BadRequest']],
];

/**
 * Phrases where the code is ambiguous. `OperationNotAllowed` is a quota (phrases of Azure/azure-sdk-for-go-extensions
 * pkg/errors/consts.go), a concurrent operation (its link is aka.ms/aks-pending-operation), or as its text states.
 * Entra's own codes, AADSTS and a number, all concern the caller; their exact meaning changes, as their reference
 * warns.
 */
const PHRASES: readonly (readonly [code: ErrorCode, phrase: RegExp])[] = [
  ['ERR_INFRA_QUOTA_EXCEEDED', /OperationNotAllowed[\s\S]*\bquota\b/i],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', /OperationNotAllowed[\s\S]*(?:\bin progress\b|aks-pending-operation)/i],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', /\btemporarily_unavailable\b/],
  ['ERR_INFRA_UNAUTHENTICATED', /\bAADSTS\d{4,}\b/],
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

const RANKS: ReadonlyMap<string, number> = new Map(
  KNOWN.flatMap(([, , tokens], rank) => tokens.map((token) => [token.toLowerCase(), rank] as const)),
);

/**
 * Words that cannot belong to prose: with an inner capital or an underscore; then words in a code's position:
 * `Code="Conflict"`, `"code": "Conflict"`, `ERROR CODE: Conflict`, `(Conflict)`.
 */
const TOKENS = [
  /\b[A-Z][A-Za-z]*[a-z][A-Z][A-Za-z]*\b/g,
  /\b[a-z]+_[a-z_]+\b/g,
  // AKS' format of some codes.
  /\bErrCode_([A-Za-z]+)/g,
  /\bcode"?\s*[:=]\s*"?([A-Za-z]+)/gi,
  /\(([A-Z][A-Za-z]+)\)/g,
];

/**
 * The Gardener code of a message from Azure, Entra ID or Pulumi's provider: an error or the body of an answer.
 * undefined: nothing in it is known.
 */
export function classify(text: string): ErrorCode | undefined {
  for (const [code, phrase] of PHRASES) if (phrase.test(text)) return code;
  const ranks = TOKENS.flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap((match) => RANKS.get((match[1] ?? match[0]).toLowerCase()) ?? []),
  );
  if (ranks.length > 0) return KNOWN[Math.min(...ranks)]![0];
  const status = /\b(?:HTTP |RESPONSE |status(?: ?code)?[:=]? ?)([45]\d\d)\b/i.exec(text)?.[1];
  if (status === undefined) return undefined;
  return STATUSES[status] ?? (status.startsWith('5') ? 'ERR_RETRYABLE_INFRA_DEPENDENCIES' : undefined);
}
