import type { ErrorCode } from '../api/errors.ts';
import { isRetryable } from '../api/errors.ts';

/** In milliseconds. */
export interface Waits {
  first: number;
  longest: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Milliseconds before another try, by code, where they differ from the usual. */
const WAITS: Partial<Record<ErrorCode, Waits>> = {
  // Asking again for machines that are sold out uses up the account's request rate.
  ERR_INFRA_RESOURCES_DEPLETED: { first: MINUTE, longest: 30 * MINUTE },
  // Throttling ends by itself, though Gardener leaves it to a person; what is asked too early prolongs it.
  ERR_INFRA_RATE_LIMITS_EXCEEDED: { first: 5 * MINUTE, longest: 60 * MINUTE },
};
const USUAL: Waits = { first: 10 * SECOND, longest: 10 * MINUTE };

/**
 * Milliseconds until the next try after `failures` failures in a row; undefined: only a change of the spec, of the
 * credentials, or the operation "retry" helps.
 * @param random in [0, 1): clusters that failed together come back apart
 */
export function backoff(code: ErrorCode | undefined, failures: number, random: number): number | undefined {
  const own = code && WAITS[code];
  if (code && !own && !isRetryable([code])) return undefined;
  return waitOf(own ?? USUAL, failures, random);
}

/** Milliseconds until the next try, each wait twice as long as the one before. @param random see backoff */
export const waitOf = ({ first, longest }: Waits, failures: number, random: number): number =>
  Math.round(Math.min(longest, first * 2 ** (failures - 1)) * (0.75 + random / 2));
