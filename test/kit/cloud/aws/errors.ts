import { randomUUID } from 'node:crypto';
import type { Attempt, CloudErrors } from '../model.ts';
import { oneError } from '../one-error.ts';
import { apiOf, callOf, type Fault } from './apis.ts';

const DOING = {
  create: 'creating',
  read: 'reading',
  update: 'updating',
  delete: 'deleting',
  invoke: 'reading',
} as const;

// Services whose SDK knows its error codes as types leave "api error" out: aws-ia/terraform-aws-control_tower_account_factory
// 529 (IAM, EKS) against hashicorp/terraform-provider-aws 27618 (STS) and what EC2 answers.
const MODELLED = new Set(['EKS', 'IAM', 'KMS', 'S3']);

/** terraform-provider-aws tries so often before it gives up: header `max=25` in hashicorp/terraform-provider-aws 37722. */
const ATTEMPTS = 25;

interface Answered {
  status: number;
  fault: Fault;
  /** "exceeded maximum number of attempts" stands before the status. */
  retried?: boolean;
}

/** An error of the AWS SDK for Go v2, as the provider wraps it. */
export function sdkError(attempt: Attempt, { status, fault: [code, message], retried }: Answered): string {
  const { service, noun } = apiOf(attempt.type);
  const subject = attempt.name === '' ? noun : `${noun} (${attempt.name})`;
  const parts = [
    `${DOING[attempt.operation]} ${subject}: operation error ${service}: ${callOf(attempt.type, attempt.operation)}`,
    ...(retried ? [`exceeded maximum number of attempts, ${ATTEMPTS}`] : []),
    `https response error StatusCode: ${status}`,
    `RequestID: ${randomUUID()}`,
    `${MODELLED.has(service) && !retried ? '' : 'api error '}${code}: ${message}`,
  ];
  return oneError(parts.join(', '));
}

const action = ({ type, operation }: Attempt): string =>
  `${apiOf(type).service.toLowerCase().replaceAll(' ', '')}:${callOf(type, operation)}`;

/**
 * Who uses keys that AWS does not take: by service as in turbot/steampipe-plugin-aws 75 (EC2), hashicorp/terraform-provider-aws 27618
 * (services with XML answers) and keidarcy/e1s 367 (others).
 */
const notTaken = (service: string): Answered => {
  if (service === 'EC2') {
    return { status: 401, fault: ['AuthFailure', 'AWS was not able to validate the provided access credentials'] };
  }
  const query = ['IAM', 'STS', 'Auto Scaling'].includes(service);
  const code = query ? 'InvalidClientTokenId' : 'UnrecognizedClientException';
  return { status: 403, fault: [code, 'The security token included in the request is invalid.'] };
};

/** Codes by service, as in trailofbits/algo 14947 (EC2), OpenPipe/OpenPipe 688 (IAM), aws/aws-cli 5823 (EKS). */
const forbidden = (attempt: Attempt): Fault => {
  const { service } = apiOf(attempt.type);
  const what = action(attempt);
  const who = `User: ${attempt.caller?.principal} is not authorized to perform: ${what} on resource: * because no identity-based policy allows the ${what} action`;
  if (service === 'EC2') return ['UnauthorizedOperation', `You are not authorized to perform this operation. ${who}`];
  return [service === 'IAM' || service === 'Auto Scaling' ? 'AccessDenied' : 'AccessDeniedException', who];
};

/** hashicorp/terraform 6096 (EC2), awslabs/amazon-eks-ami 218 (EKS), GoogleCloudPlatform/terraformer 1933 (others). */
const slowDown = (service: string): Answered => {
  if (service === 'EC2')
    return { status: 503, fault: ['RequestLimitExceeded', 'Request limit exceeded.'], retried: true };
  if (service === 'EKS')
    return { status: 429, fault: ['TooManyRequestsException', 'Too Many Requests'], retried: true };
  return { status: 400, fault: ['Throttling', 'Rate exceeded'], retried: true };
};

/** AWS's words. */
export const errors: CloudErrors = {
  action,
  exists: (attempt, id) => {
    // A node group is told by its cluster too.
    const name = attempt.type === 'aws:eks:NodeGroup' ? id : attempt.name;
    const fault =
      apiOf(attempt.type).exists?.(name, attempt) ?? (['AlreadyExistsException', `${name} already exists`] as const);
    return sdkError(attempt, { status: 409, fault });
  },
  missing: (attempt, { type, handle }) =>
    sdkError(attempt, {
      status: 400,
      fault: apiOf(type).missing?.(String(handle)) ?? ['ResourceNotFoundException', `${handle} does not exist`],
    }),
  gone: (attempt) =>
    sdkError(attempt, { status: 404, fault: ['ResourceNotFoundException', `${attempt.name} does not exist`] }),
  inUse: (attempt, id, by) =>
    sdkError(attempt, {
      status: 400,
      fault: apiOf(attempt.type).inUse?.(id, by.type) ?? [
        'DependencyViolation',
        `resource ${id} has a dependent object`,
      ],
    }),
  refused: (attempt, { code, message }) => sdkError(attempt, { status: 400, fault: [code, message] }),
  throttled: (attempt) => sdkError(attempt, slowDown(apiOf(attempt.type).service)),
  quota: (attempt, limit) =>
    sdkError(attempt, {
      status: 400,
      fault: apiOf(attempt.type).quota ?? ['LimitExceededException', `Limit of ${limit} exceeded.`],
    }),
  /** hashicorp/terraform-provider-aws 39904 and aws/containers-roadmap 2204 (EKS); EC2 error codes (others). */
  depleted: (attempt, { types, zones, spot }) => {
    const kind = spot ? 'Spot' : 'On-Demand';
    const why = `Could not launch ${kind} Instances. InsufficientInstanceCapacity - We currently do not have sufficient ${types[0]} capacity in the Availability Zone you requested (${zones[0]}).`;
    const { noun } = apiOf(attempt.type);
    if (attempt.type !== 'aws:eks:NodeGroup') {
      return oneError(`waiting for ${noun} (${attempt.name}) capacity satisfied: scaling activity: ${why}`);
    }
    return oneError(
      `waiting for ${noun} (${attempt.name}) ${attempt.operation}: unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: ${attempt.name}: AsgInstanceLaunchFailures: ${why}`,
    );
  },
  unauthenticated: (attempt) => sdkError(attempt, notTaken(apiOf(attempt.type).service)),
  denied: (attempt) => sdkError(attempt, { status: 403, fault: forbidden(attempt) }),
  // A region that the account did not opt in to knows none of its keys: turbot/steampipe-plugin-aws 75, fog/fog-aws 585.
  closed: (attempt) => sdkError(attempt, notTaken(apiOf(attempt.type).service)),
  internal: (attempt) =>
    sdkError(attempt, {
      status: 500,
      fault: [
        'InternalFailure',
        'The request processing has failed because of an unknown error, exception or failure.',
      ],
    }),
};
