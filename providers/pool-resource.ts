import type { Shortage } from '../operator/api/errors.ts';

const PREFIX = 'pool-';

/** Resource name of a pool in programs and in Pulumi's state: must never change. */
export const poolResource = (pool: string): string => `${PREFIX}${pool}`;

/** The pool of a resource name; see poolResource. */
export const poolOfResource = (resource: string): Shortage | undefined =>
  resource.startsWith(PREFIX) ? { pool: resource.slice(PREFIX.length) } : undefined;
