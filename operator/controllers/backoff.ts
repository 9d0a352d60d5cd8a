import type { ErrorCode } from '../api/errors.ts';
import { isRetryable } from '../api/errors.ts';

/** Back-off in milliseconds. */
export interface BackoffWaits {
  first: number;
  longest: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Special back-off by error code, milliseconds, for all clusters. */
const WAITS: Partial<Record<ErrorCode, BackoffWaits>> = {
  // Retrying for sold-out machines uses up the account's request rate.
  ERR_INFRA_RESOURCES_DEPLETED: { first: MINUTE, longest: 30 * MINUTE },
  // The following resolve by themselves, although Gardener leaves them to a person. Early retries prolong throttling.
  ERR_INFRA_RATE_LIMITS_EXCEEDED: { first: 5 * MINUTE, longest: 60 * MINUTE },
  // Other clusters of the account may free quota at any time, and raising a quota causes no event.
  ERR_INFRA_QUOTA_EXCEEDED: { first: 5 * MINUTE, longest: 30 * MINUTE },
  // The obstacle is often being deleted itself: an address, a network interface, a load balancer.
  ERR_INFRA_DEPENDENCIES: { first: MINUTE, longest: 30 * MINUTE },
  // The webhook's server may recover at any time, and repairing a webhook causes no event.
  ERR_PROBLEMATIC_WEBHOOK: { first: 10 * SECOND, longest: 2 * MINUTE },
};
const USUAL: BackoffWaits = { first: 10 * SECOND, longest: 10 * MINUTE };
/**
 * Back-off of deletions that only a person can help: retried nevertheless, because nobody may look at them any more.
 */
const DELETION: BackoffWaits = { first: MINUTE, longest: 30 * MINUTE };

/**
 * Milliseconds until the next try after `failures` consecutive failures; undefined: only a change of spec or
 * credentials, or operation "retry", helps. Deletions are retried for ever.
 * @param random in [0, 1), spreads clusters that failed together
 */
export function retryDelayMs(
  code: ErrorCode | undefined,
  failures: number,
  random: number,
  deleting = false,
): number | undefined {
  const own = code && WAITS[code];
  const hopeless = code !== undefined && !own && !isRetryable([code]);
  if (hopeless && !deleting) return undefined;
  return waitOf(own ?? (hopeless ? DELETION : USUAL), failures, random);
}

/** Milliseconds until the next try; doubles each time. @param random see retryDelayMs */
export const waitOf = ({ first, longest }: BackoffWaits, failures: number, random: number): number =>
  Math.round(Math.min(longest, first * 2 ** (failures - 1)) * (0.75 + random / 2));
