import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../../operator/api/errors.ts';
import { classify } from '../../../../providers/aws/errors.ts';

const creating = (code: string, service = 'EC2', action = 'CreateVpc') =>
  `creating ${service}: operation error ${service}: ${action}, https response error StatusCode: 400, RequestID: 5b1e-4a, ${code}`;

/** Texts as AWS' provider prints them (seen in issues of hashicorp/terraform-provider-aws and aws/containers-roadmap), and others like them. */
const CASES: Record<string, readonly [code: ErrorCode, text: string][]> = {
  'who asks is not known': [
    [
      'ERR_INFRA_UNAUTHENTICATED',
      creating('api error InvalidClientTokenId: The security token included in the request is invalid.', 'STS'),
    ],
    [
      'ERR_INFRA_UNAUTHENTICATED',
      creating('api error ExpiredToken: The security token included in the request is expired'),
    ],
    [
      'ERR_INFRA_UNAUTHENTICATED',
      creating('api error AuthFailure: AWS was not able to validate the provided access credentials'),
    ],
    [
      'ERR_INFRA_UNAUTHENTICATED',
      'api error SignatureDoesNotMatch: The request signature we calculated does not match',
    ],
    [
      'ERR_INFRA_UNAUTHENTICATED',
      'UnrecognizedClientException: The security token included in the request is invalid.',
    ],
  ],
  'who asks may not': [
    [
      'ERR_INFRA_UNAUTHORIZED',
      creating('api error UnauthorizedOperation: You are not authorized to perform this operation.'),
    ],
    ['ERR_INFRA_UNAUTHORIZED', creating('AccessDeniedException: User: arn:aws:iam::1:user/x is not authorized', 'EKS')],
    ['ERR_INFRA_UNAUTHORIZED', 'Client.UnauthorizedOperation: You are not authorized to perform this operation'],
  ],
  'a quota is used up': [
    ['ERR_INFRA_QUOTA_EXCEEDED', creating('api error VpcLimitExceeded: The maximum number of VPCs has been reached.')],
    [
      'ERR_INFRA_QUOTA_EXCEEDED',
      creating('api error AddressLimitExceeded: The maximum number of addresses has been reached.'),
    ],
    ['ERR_INFRA_QUOTA_EXCEEDED', creating('ResourceLimitExceededException: Cluster limit exceeded', 'EKS')],
    ['ERR_INFRA_QUOTA_EXCEEDED', creating('LimitExceeded: Cannot exceed quota for RolesPerAccount: 1000', 'IAM')],
    ['ERR_INFRA_QUOTA_EXCEEDED', 'ServiceQuotaExceededException: 5'],
    [
      'ERR_INFRA_QUOTA_EXCEEDED',
      'AsgInstanceLaunchFailures: Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU ' +
        'capacity than your current vCPU limit of 32 allows for the instance bucket. Launching EC2 instance failed.',
    ],
  ],
  'too many requests': [
    ['ERR_INFRA_RATE_LIMITS_EXCEEDED', creating('api error RequestLimitExceeded: Request limit exceeded.')],
    ['ERR_INFRA_RATE_LIMITS_EXCEEDED', creating('api error Throttling: Rate exceeded', 'IAM')],
    ['ERR_INFRA_RATE_LIMITS_EXCEEDED', creating('ThrottlingException: Rate exceeded', 'EKS')],
    ['ERR_INFRA_RATE_LIMITS_EXCEEDED', '<Code>Throttling</Code>'],
    [
      'ERR_INFRA_RATE_LIMITS_EXCEEDED',
      '{"__type":"com.amazonaws.tagging#ThrottledException","message":"Rate exceeded"}',
    ],
  ],
  'nothing left of it': [
    [
      'ERR_INFRA_RESOURCES_DEPLETED',
      "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: eks-x: AsgInstanceLaunchFailures: Could not launch " +
        'Spot Instances. InsufficientInstanceCapacity - We currently do not have sufficient capacity. Launching EC2 instance failed.',
    ],
    [
      'ERR_INFRA_RESOURCES_DEPLETED',
      'UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration.',
    ],
    [
      'ERR_INFRA_RESOURCES_DEPLETED',
      'ResourceInUseException: Nodegroup cannot be updated as it is currently not in Active State; ' +
        'InsufficientInstanceCapacity - We currently do not have sufficient p4d.24xlarge capacity',
    ],
  ],
  'something stands in the way': [
    [
      'ERR_INFRA_DEPENDENCIES',
      creating("api error DependencyViolation: The vpc 'vpc-1' has dependencies and cannot be deleted."),
    ],
    ['ERR_INFRA_DEPENDENCIES', creating('ResourceInUseException: Cluster already exists with name: x', 'EKS')],
    ['ERR_INFRA_DEPENDENCIES', creating('EntityAlreadyExists: Role with name x already exists.', 'IAM')],
    ['ERR_INFRA_DEPENDENCIES', 'api error InvalidSubnetID.NotFound: The subnet ID subnet-1 does not exist'],
    [
      'ERR_INFRA_DEPENDENCIES',
      'api error InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use.',
    ],
    [
      'ERR_INFRA_DEPENDENCIES',
      'Termination Reason: Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state',
    ],
    ['ERR_INFRA_DEPENDENCIES', 'NodeCreationFailure: Instances failed to join the kubernetes cluster'],
    ['ERR_INFRA_DEPENDENCIES', 'api error OptInRequired: You are not subscribed to this service.'],
    ['ERR_INFRA_DEPENDENCIES', 'api error Blocked: Your account is currently blocked.'],
  ],
  'not ready yet': [
    ['ERR_RETRYABLE_INFRA_DEPENDENCIES', creating('ServerException: ', 'EKS')],
    ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'ConcurrentModification: Request was submitted while another is in progress'],
    ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'api error InternalError: An internal error has occurred'],
  ],
  'pods are in the way of an upgrade': [
    ['ERR_CLEANUP_CLUSTER_RESOURCES', 'PodEvictionFailure: Reached max retries while trying to evict pods from nodes'],
  ],
  'asked for what cannot be': [
    ['ERR_CONFIGURATION_PROBLEM', creating('UnsupportedAvailabilityZoneException: Cannot create cluster', 'EKS')],
    ['ERR_CONFIGURATION_PROBLEM', creating('InvalidParameterException: unsupported Kubernetes version', 'EKS')],
    ['ERR_CONFIGURATION_PROBLEM', 'api error InvalidVpcRange: The CIDR 10.0.0.0/8 is invalid.'],
    [
      'ERR_CONFIGURATION_PROBLEM',
      'AsgInstanceLaunchFailures: Could not launch On-Demand Instances. Unsupported - Your requested instance type ' +
        '(m7g.large) is not supported in your requested Availability Zone (x). Launching EC2 instance failed.',
    ],
    [
      'ERR_CONFIGURATION_PROBLEM',
      'AsgInstanceLaunchFailures: Could not launch Spot Instances. InvalidParameterCombination - The specified instance type ' +
        'is not eligible for Free Tier.',
    ],
  ],
};

describe.each(Object.entries(CASES))('errors of AWS, %s', (_what, cases) => {
  it.each(cases)('%s is classified as %s', (code, text) => {
    expect(classify(text)).toBe(code);
  });
});

describe('classify of AWS errors', () => {
  it.each([
    'Throttling of the disk is expected',
    'the operation is Unsupported here',
    'error: update failed',
    'the quota was exceeded and access is denied',
    'Blocked by a policy',
    'resource /x/AccessDenied is fine',
    'context deadline exceeded',
    'aws:eks/cluster:Cluster cluster creating failed',
  ])('ignores prose: %s', (text) => {
    expect(classify(text)).toBeUndefined();
  });
});
