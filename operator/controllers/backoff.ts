import type { ErrorCode } from '../api/errors.ts';
import { isRetryable } from '../api/errors.ts';

/** In milliseconds. */
export interface Waits {
  first: number;
  longest: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Milliseconds before another try, by code, where they differ from the usual; of all clusters, whoever runs them. */
const WAITS: Partial<Record<ErrorCode, Waits>> = {
  // Asking again for machines that are sold out uses up the account's request rate.
  ERR_INFRA_RESOURCES_DEPLETED: { first: MINUTE, longest: 30 * MINUTE },
  // The following end by themselves, though Gardener leaves them to a person. What is asked too early prolongs throttling.
  ERR_INFRA_RATE_LIMITS_EXCEEDED: { first: 5 * MINUTE, longest: 60 * MINUTE },
  // Others of the account may free something at any time, and nobody tells us when a quota was raised.
  ERR_INFRA_QUOTA_EXCEEDED: { first: 5 * MINUTE, longest: 30 * MINUTE },
  // What stands in the way is often on its way out itself: an address, a network interface, a load balancer.
  ERR_INFRA_DEPENDENCIES: { first: MINUTE, longest: 30 * MINUTE },
  // Its server may come back at any time, and nobody tells us when somebody repaired or removed a webhook.
  ERR_PROBLEMATIC_WEBHOOK: { first: 10 * SECOND, longest: 2 * MINUTE },
};
const USUAL: Waits = { first: 10 * SECOND, longest: 10 * MINUTE };
/** Where only a person can help: a deletion is tried again all the same, since nobody may look at it any more. */
const DELETION: Waits = { first: MINUTE, longest: 30 * MINUTE };

/**
 * Milliseconds until the next try after `failures` failures in a row; undefined: only a change of the spec, of the
 * credentials, or the operation "retry" helps. A deletion is tried for ever.
 * @param random in [0, 1): clusters that failed together come back apart
 */
export function backoff(
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

/** Milliseconds until the next try, each wait twice as long as the one before. @param random see backoff */
export const waitOf = ({ first, longest }: Waits, failures: number, random: number): number =>
  Math.round(Math.min(longest, first * 2 ** (failures - 1)) * (0.75 + random / 2));
