import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../../operator/api/errors.ts';
import { classify } from '../../../../providers/gcp/errors.ts';

const cases: [text: string, code: ErrorCode | undefined][] = [
  // Quota
  [
    "error creating NodePool: googleapi: Error 403: \n\t(1) insufficient regional quota to satisfy request: resource \"CPUS\": request requires '72.0' and is short '48.0'., forbidden",
    'ERR_INFRA_QUOTA_EXCEEDED',
  ],
  ["googleapi: Error 403: Quota 'NETWORKS' exceeded.  Limit: 5.0 globally., quotaExceeded", 'ERR_INFRA_QUOTA_EXCEEDED'],
  [
    'googleapi: Error 403: You cannot create more than 3 clusters in location us-central1; to create more than 3, you must request an increase., forbidden',
    'ERR_INFRA_QUOTA_EXCEEDED',
  ],
  ['Error waiting for instance to create: QUOTA_EXCEEDED - Instance could not start', 'ERR_INFRA_QUOTA_EXCEEDED'],
  [
    '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"reason":"RESOURCE_QUOTA_EXCEEDED"}]}}',
    'ERR_INFRA_QUOTA_EXCEEDED',
  ],
  // Rate
  [
    "googleapi: Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com'., rateLimitExceeded",
    'ERR_INFRA_RATE_LIMITS_EXCEEDED',
  ],
  [
    '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"reason":"RATE_LIMIT_EXCEEDED"}]}}',
    'ERR_INFRA_RATE_LIMITS_EXCEEDED',
  ],
  ['rpc error: code = ResourceExhausted desc = slow down', 'ERR_INFRA_RATE_LIMITS_EXCEEDED'],
  ['HTTP 429', 'ERR_INFRA_RATE_LIMITS_EXCEEDED'],
  // Capacity
  [
    "Error waiting for creating GKE NodePool: Not all instances running in IGM after 14s. Current errors: [GCE_STOCKOUT]: Instance 'gke-a' creation failed: The zone does not have enough resources available",
    'ERR_INFRA_RESOURCES_DEPLETED',
  ],
  [
    "code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: the zone 'europe-west3-a' does not have enough resources",
    'ERR_INFRA_RESOURCES_DEPLETED',
  ],
  // Who asks
  [
    'oauth2: cannot fetch token: 400 Bad Request Response: {"error":"invalid_grant","error_description":"Invalid JWT Signature."}',
    'ERR_INFRA_UNAUTHENTICATED',
  ],
  ['{"error":"invalid_client","error_description":"The OAuth client was not found."}', 'ERR_INFRA_UNAUTHENTICATED'],
  ['googleapi: Error 401: Request had invalid authentication credentials., authError', 'ERR_INFRA_UNAUTHENTICATED'],
  ['{"error":{"code":401,"status":"UNAUTHENTICATED"}}', 'ERR_INFRA_UNAUTHENTICATED'],
  // What they may
  [
    "googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/p/global/networks/n', forbidden",
    'ERR_INFRA_UNAUTHORIZED',
  ],
  ['rpc error: code = PermissionDenied desc = the caller may not', 'ERR_INFRA_UNAUTHORIZED'],
  [
    "SERVICE_ACCOUNT_ACCESS_DENIED: The user does not have access to service account 'nodes@p'.",
    'ERR_INFRA_UNAUTHORIZED',
  ],
  // The project
  [
    'googleapi: Error 403: Kubernetes Engine API has not been used in project 1 before or it is disabled. Details: [{"reason": "SERVICE_DISABLED"}], forbidden',
    'ERR_INFRA_DEPENDENCIES',
  ],
  ['googleapi: Error 403: Access Not Configured., accessNotConfigured', 'ERR_INFRA_DEPENDENCIES'],
  ['{"error":{"status":"PERMISSION_DENIED","details":[{"reason":"BILLING_DISABLED"}]}}', 'ERR_INFRA_DEPENDENCIES'],
  ['CLOUD_KMS_KEY_ERROR: Cluster cannot use the key', 'ERR_INFRA_DEPENDENCIES'],
  // What stands in the way
  [
    "googleapi: Error 400: The network resource 'projects/p/global/networks/n' is already being used by 'projects/p/global/firewalls/f', resourceInUseByAnotherResource",
    'ERR_INFRA_DEPENDENCIES',
  ],
  [
    "googleapi: Error 409: The resource 'projects/p/global/networks/n' already exists, alreadyExists",
    'ERR_INFRA_DEPENDENCIES',
  ],
  ['googleapi: Error 404: Not found: projects/p/locations/r/clusters/c., notFound', 'ERR_INFRA_DEPENDENCIES'],
  ["The 'parameters.managedZone' resource named 'z' does not exist., notFound", 'ERR_INFRA_DEPENDENCIES'],
  [
    "googleapi: Error 400: The resource record set 'entity.change.additions[0]' is invalid because the DNS name may have either one CNAME resource record set or resource record sets of other types, but not both., cnameResourceRecordSetConflict",
    'ERR_INFRA_DEPENDENCIES',
  ],
  // What passes
  [
    "googleapi: Error 409: The resource 'entity.change.additions[2]' named 'api.example.com. (TXT)' already exists, alreadyExists",
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
  ],
  [
    "googleapi: Error 404: The 'entity.change.deletions[0]' resource named 'api.example.com. (A)' does not exist., notFound",
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
  ],
  [
    "googleapi: Error 400: The resource 'projects/p/regions/r/subnetworks/s' is not ready, resourceNotReady",
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
  ],
  [
    'googleapi: Error 400: Cluster is running incompatible operation operation-1.\nDetails:\n[\n]\n, failedPrecondition',
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
  ],
  ['googleapi: Error 503: The service is currently unavailable., backendError', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  ['rpc error: code = Aborted desc = concurrent change', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  ['Error 502: bad gateway', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  // What was asked for
  [
    'googleapi: Error 400: Services CIDR range is smaller than minimum (14 < 16)., badRequest',
    'ERR_CONFIGURATION_PROBLEM',
  ],
  ["googleapi: Error 400: Invalid value for field 'resource.name': 'X'., invalid", 'ERR_CONFIGURATION_PROBLEM'],
  [
    "[IP_SPACE_EXHAUSTED]: Instance 'gke-a' creation failed: IP space of 'subnet' is exhausted",
    'ERR_CONFIGURATION_PROBLEM',
  ],
  [
    'googleapi: Error 412: Constraint constraints/compute.requireShieldedVm violated for project p',
    'ERR_CONFIGURATION_PROBLEM',
  ],
  // Names and sentences are no codes
  ['waiting for projects/forbidden/locations/invalid/clusters/conflict', undefined],
  ['Unavailable things are required, sometimes invalid ones', undefined],
  ['read tcp 10.0.0.1:443: connection reset by peer', undefined],
  ['', undefined],
];

describe('classify of Google errors returns the code of', () => {
  it.each(cases)('%s', (text, code) => {
    expect(classify(text)).toBe(code);
  });
});
