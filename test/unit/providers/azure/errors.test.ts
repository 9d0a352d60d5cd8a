import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../../operator/api/errors.ts';
import { classify } from '../../../../providers/azure/errors.ts';

const cases: [text: string, code: ErrorCode | undefined][] = [
  // Who asks
  [
    '{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided."}',
    'ERR_INFRA_UNAUTHENTICATED',
  ],
  [
    'ClientSecretCredential authentication failed. AADSTS7000222: The provided client secret keys for app are expired.',
    'ERR_INFRA_UNAUTHENTICATED',
  ],
  ['{"error":"invalid_request","error_description":"AADSTS90002: Tenant not found."}', 'ERR_INFRA_UNAUTHENTICATED'],
  ['{"error":{"code":"InvalidAuthenticationToken","message":"expired"}}', 'ERR_INFRA_UNAUTHENTICATED'],
  ['HTTP 401', 'ERR_INFRA_UNAUTHENTICATED'],
  [
    '{"error":"temporarily_unavailable","error_description":"AADSTS90033: a transient error"}',
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
  ],
  // What they may
  [
    'Code="AuthorizationFailed" Message="The client \'x\' does not have authorization to perform action \'Microsoft.Resources/subscriptions/resourcegroups/write\'"',
    'ERR_INFRA_UNAUTHORIZED',
  ],
  ['Status=403 Code="LinkedAuthorizationFailed"', 'ERR_INFRA_UNAUTHORIZED'],
  [
    '{\'error\':{\'code\':\'SubscriptionNotFound\'}} "code":"SubscriptionNotFound","message":"The subscription \'s\' could not be found."',
    'ERR_INFRA_UNAUTHORIZED',
  ],
  ['RESPONSE 403: 403 Forbidden', 'ERR_INFRA_UNAUTHORIZED'],
  // Quota
  [
    'Status=400 Code="ErrCode_InsufficientVCPUQuota" Message="Insufficient vcpu quota requested 2, remaining 0."',
    'ERR_INFRA_QUOTA_EXCEEDED',
  ],
  [
    'Code="OperationNotAllowed" Message="Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota."',
    'ERR_INFRA_QUOTA_EXCEEDED',
  ],
  [
    'ManagedClusterCountExceedsQuotaLimit: Operation results in exceeding quota limits for managed clusters.',
    'ERR_INFRA_QUOTA_EXCEEDED',
  ],
  ['Code="QuotaExceeded" Message="Maximum allowed: 10, Current in use: 10"', 'ERR_INFRA_QUOTA_EXCEEDED'],
  ['code: "PublicIPCountLimitReached"', 'ERR_INFRA_QUOTA_EXCEEDED'],
  // Rate
  ['{"error":{"code":"TooManyRequests","message":"slow down"}}', 'ERR_INFRA_RATE_LIMITS_EXCEEDED'],
  ['{"code":"Throttled","message":"The PutManagedClusterHandler is throttled"}', 'ERR_INFRA_RATE_LIMITS_EXCEEDED'],
  ['Code="SubscriptionRequestsThrottled"', 'ERR_INFRA_RATE_LIMITS_EXCEEDED'],
  ['StatusCode: 429', 'ERR_INFRA_RATE_LIMITS_EXCEEDED'],
  // Capacity
  ['Code="BadRequest" Message="..." Details=[{"code":"SkuNotAvailable"}]', 'ERR_INFRA_RESOURCES_DEPLETED'],
  [
    'Code="ReconcileVMSSAgentPoolFailed" Message="VMSSAgentPoolReconciler retry failed: Category: ClientError; SubCode: ZonalAllocationFailed"',
    'ERR_INFRA_RESOURCES_DEPLETED',
  ],
  ['Code="AllocationFailed" Message="We do not have sufficient capacity"', 'ERR_INFRA_RESOURCES_DEPLETED'],
  ['Code: AksCapacityHeavyUsage', 'ERR_INFRA_RESOURCES_DEPLETED'],
  // What stands in the way
  [
    'Code="MissingSubscriptionRegistration" Message="The subscription is not registered to use namespace \'Microsoft.ContainerService\'"',
    'ERR_INFRA_DEPENDENCIES',
  ],
  ['Code="InUseSubnetCannotBeDeleted"', 'ERR_INFRA_DEPENDENCIES'],
  ['Code="Conflict" Message="it is busy"', 'ERR_INFRA_DEPENDENCIES'],
  ['ERROR CODE: ResourceGroupNotFound', 'ERR_INFRA_DEPENDENCIES'],
  // What passes
  [
    'ERROR: (OperationNotAllowed) Operation is not allowed: Another agentpool operation (a - Creating) is in progress. See https://aka.ms/aks-pending-operation',
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
  ],
  ['Code="AnotherOperationInProgress"', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  ['Code="ResourceGroupBeingDeleted"', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  ['AKSOperationPreempted: by another operation', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  ['{"error":{"code":"InternalServerError"}}', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  ['HTTP 503', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  // What was asked for
  ['Code="OperationNotAllowed" Message="Disk encryption is not allowed for this VM size"', 'ERR_CONFIGURATION_PROBLEM'],
  ['Code="InvalidParameter" Message="The value of parameter agentPool.count is invalid"', 'ERR_CONFIGURATION_PROBLEM'],
  ['Code="RequestDisallowedByPolicy"', 'ERR_CONFIGURATION_PROBLEM'],
  ['Code="BadRequest" Message="no"', 'ERR_CONFIGURATION_PROBLEM'],
  ['Code="UnsatisfiablePDB" Message="1 error occurred"', 'ERR_CLEANUP_CLUSTER_RESOURCES'],
  // Names and sentences are no codes
  ['waiting for resourceGroups/conflict/providers/Microsoft.Network/virtualNetworks/notfound', undefined],
  ['A conflict was not found; the token was throttled', undefined],
  ['read tcp 10.0.0.1:443: connection reset by peer', undefined],
  ['', undefined],
];

describe('classify of Azure errors returns the code of', () => {
  it.each(cases)('%s', (text, code) => {
    expect(classify(text)).toBe(code);
  });
});
