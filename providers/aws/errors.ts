import type { ErrorCode } from '../../operator/api/errors.ts';

/**
 * Meaning of AWS' error codes, most specific first: a text may contain several (a node group is ResourceInUse because
 * of an InsufficientInstanceCapacity), and the first matching row decides. A pattern covers families of EC2 codes.
 *
 * Sources, looked up 2026-11:
 * - common: "Common Errors" of the AWS API references (the same list in each service's)
 * - ec2: docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
 * - service: exceptions and issue codes in the service models of botocore 1.43.11 (sts, iam, eks, autoscaling, kms,
 *   resourcegroupstaggingapi); eks: enums ErrorCode, NodegroupIssueCode, AddonIssueCode, ClusterIssueCode
 * - retries: botocore 1.43.11 retries/standard.py, throttled and transient codes
 * - elb: errors of CreateLoadBalancer, CreateTargetGroup, CreateListener and RegisterTargets in the API reference
 * 2015-12-01
 * - s3: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
 * - karpenter: aws/karpenter-provider-aws pkg/errors/errors.go, codes of unavailable capacity
 * - gardener: gardener-extension-provider-aws pkg/apis/aws/helper/error_codes.go, for which side a code belongs to
 */
const KNOWN: readonly (readonly [code: ErrorCode, source: string, codes: readonly (string | RegExp)[]])[] = [
  [
    'ERR_INFRA_UNAUTHENTICATED',
    'common',
    [
      'ExpiredToken',
      'ExpiredTokenException',
      'IncompleteSignature',
      'InvalidAccessKeyId',
      'InvalidClientTokenId',
      'InvalidSignatureException',
      'MissingAuthenticationToken',
      'MissingAuthenticationTokenException',
      'RequestExpired',
      'SignatureDoesNotMatch',
      'UnrecognizedClientException',
    ],
  ],
  ['ERR_INFRA_UNAUTHENTICATED', 'ec2', ['AuthFailure', 'InvalidSecurity.RequestHasExpired']],
  ['ERR_INFRA_UNAUTHENTICATED', 'service', ['IDPRejectedClaim', 'InvalidIdentityToken']],
  ['ERR_INFRA_DEPENDENCIES', 'ec2', ['Blocked', 'OptInRequired', 'PendingVerification']],
  [
    'ERR_INFRA_DEPENDENCIES',
    'service',
    ['RegionDisabledException', 'StsRegionalEndpointDisabled', 'Ec2ServiceNotSubscribed'],
  ],
  ['ERR_INFRA_UNAUTHORIZED', 'common', ['AccessDenied', 'AccessDeniedException', 'NotAuthorized']],
  ['ERR_INFRA_UNAUTHORIZED', 'ec2', ['OperationNotPermitted', 'UnauthorizedOperation']],
  ['ERR_INFRA_UNAUTHORIZED', 'service', ['SessionDurationEscalationException', 'AddonPermissionFailure']],
  [
    'ERR_INFRA_RATE_LIMITS_EXCEEDED',
    'retries',
    [
      'BandwidthLimitExceeded',
      'EC2ThrottledException',
      'PriorRequestNotComplete',
      'RequestLimitExceeded',
      'RequestThrottled',
      'RequestThrottledException',
      'SlowDown',
      'Throttling',
      'ThrottledException',
      'ThrottlingException',
      'TooManyRequestsException',
    ],
  ],
  ['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'ec2', ['SnapshotCreationPerVolumeRateExceeded']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'ec2', [/LimitExceeded(Exception|Fault)?$/]],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'ec2', ['MaxSpotFleetRequestCountExceeded', 'MaxSpotInstanceCountExceeded']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'ec2', ['ResourceCountExceeded', 'ReservedInstancesCountExceeded', 'VolumeIOPSLimit']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 'service', ['EniLimitReached', 'ServiceQuotaExceededException']],
  ['ERR_INFRA_QUOTA_EXCEEDED', 's3', ['TooManyBuckets']],
  [
    'ERR_INFRA_QUOTA_EXCEEDED',
    'elb',
    ['TooManyListeners', 'TooManyLoadBalancers', 'TooManyTargetGroups', 'TooManyTargets'],
  ],
  [
    'ERR_INFRA_RESOURCES_DEPLETED',
    'ec2',
    [
      'InsufficientAddressCapacity',
      'InsufficientCapacity',
      'InsufficientCapacityOnHost',
      'InsufficientHostCapacity',
      'InsufficientInstanceCapacity',
      'InsufficientReservedInstanceCapacity',
      'InsufficientReservedInstancesCapacity',
      'InsufficientVolumeCapacity',
      'ReservationCapacityExceeded',
    ],
  ],
  ['ERR_INFRA_RESOURCES_DEPLETED', 'karpenter', ['UnfulfillableCapacity']],
  ['ERR_CLEANUP_CLUSTER_RESOURCES', 'service', ['PodEvictionFailure']],
  [
    'ERR_INFRA_DEPENDENCIES',
    'ec2',
    ['DependencyViolation', 'InsufficientFreeAddressesInSubnet', 'Gateway.NotAttached'],
  ],
  [
    'ERR_INFRA_DEPENDENCIES',
    's3',
    ['BucketAlreadyExists', 'BucketAlreadyOwnedByYou', 'BucketNotEmpty', 'NoSuchBucket', 'NoSuchKey', 'NoSuchTagSet'],
  ],
  ['ERR_INFRA_UNAUTHORIZED', 's3', ['AccountProblem', 'AllAccessDisabled', 'NotSignedUp']],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 's3', ['BadDigest', 'IncompleteBody', 'OperationAborted']],
  ['ERR_INFRA_DEPENDENCIES', 'ec2', ['RouteAlreadyExists', 'Resource.AlreadyAssociated', 'Resource.AlreadyAssigned']],
  ['ERR_INFRA_DEPENDENCIES', 'ec2', ['CustomerKeyHasBeenRevoked', 'InvalidKMSKey.InvalidState', 'VolumeInUse']],
  [
    'ERR_INFRA_DEPENDENCIES',
    'service',
    [
      'AdmissionRequestDenied',
      'AlreadyExists',
      'AlreadyExistsException',
      'ConfigurationConflict',
      'DeleteConflict',
      'DisabledException',
      'EntityAlreadyExists',
      'InsufficientFreeAddresses',
      'IpNotAvailable',
      'KMSInvalidStateException',
      'KmsGrantRevoked',
      'KmsKeyDisabled',
      'KmsKeyMarkedForDeletion',
      'NoSuchEntity',
      'ResourceInUse',
      'ResourceInUseException',
      'UnmodifiableEntity',
    ],
  ],
  ['ERR_INFRA_DEPENDENCIES', 'ec2', [/(InUse|\.Duplicate|NotFound(Exception)?|AlreadyExists(Exception)?)$/]],
  [
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    'ec2',
    ['ConcurrentTagAccess', 'IncorrectInstanceState', 'IncorrectState', 'InternalError', 'Unavailable'],
  ],
  [
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    'common',
    ['InternalFailure', 'ServiceUnavailable', 'ServiceUnavailableException'],
  ],
  ['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'retries', ['RequestTimeout', 'RequestTimeoutException']],
  [
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    'service',
    [
      'ClusterUnreachable',
      'ConcurrentModification',
      'ConcurrentModificationException',
      'DependencyTimeoutException',
      'EntityTemporarilyUnmodifiable',
      'IDPCommunicationError',
      'InternalServiceException',
      'InvalidStateException',
      'KMSInternalException',
      'KeyUnavailableException',
      'ResourceContention',
      'ResourcePropagationDelayException',
      'ScalingActivityInProgress',
      'ServerException',
      'ServiceFailure',
    ],
  ],
  ['ERR_CONFIGURATION_PROBLEM', 'ec2', ['MissingParameter', 'UnknownParameter', 'Unsupported', 'UnsupportedOperation']],
  [
    'ERR_CONFIGURATION_PROBLEM',
    'ec2',
    ['VolumeTypeNotAvailableInZone', 'VpcCidrConflict', 'CidrConflict', 'ZonesMismatched'],
  ],
  ['ERR_CONFIGURATION_PROBLEM', 'common', ['ValidationError', 'ValidationException']],
  [
    'ERR_CONFIGURATION_PROBLEM',
    'service',
    [
      'AutoScalingGroupInvalidConfiguration',
      'BadRequestException',
      'Ec2SubnetInvalidConfiguration',
      'MalformedPolicyDocument',
      'UnsupportedAddonModification',
      'UnsupportedAvailabilityZoneException',
      'UnsupportedVersion',
    ],
  ],
  ['ERR_CONFIGURATION_PROBLEM', 'ec2', [/^Invalid[A-Z]/]],
  // Wrapper codes: used only without a more specific one.
  ['ERR_INFRA_DEPENDENCIES', 'service', ['AsgInstanceLaunchFailures', 'NodeCreationFailure']],
];

/** A code of several words, which prose does not contain: `InsufficientInstanceCapacity`, `InvalidGroup.NotFound`. */
const COMPOUND = /(?<![\w./-])(?:Client\.|Server\.)?([A-Z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*|\.[A-Z][A-Za-z]*)+)(?![\w/])/g;
/**
 * Any code in a position where only codes occur: `Throttling: ...`, `Unsupported - ...`, `api error Blocked`,
 * `<Code>Throttling</Code>`.
 */
const PLACED = /(?:api error |<Code>)([A-Z][\w.]*)|(?<![\w./-])(?:Client\.|Server\.)?([A-Z][\w.]*)(?=: | - )/g;

/**
 * The Gardener code of a message from AWS, its Terraform provider or Pulumi, by error codes in the text, never by
 * prose. undefined: no known code.
 */
export function classify(text: string): ErrorCode | undefined {
  const found = [COMPOUND, PLACED].flatMap((form) =>
    [...text.matchAll(form)].map((match) => match[1] ?? match[2] ?? ''),
  );
  const fits = (code: string | RegExp) =>
    found.some((token) => (code instanceof RegExp ? code.test(token) : code === token));
  return KNOWN.find(([, , codes]) => codes.some(fits))?.[0];
}
