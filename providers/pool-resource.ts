import type { Shortage } from '../operator/api/errors.ts';

const PREFIX = 'pool-';

/** Name of a program's resource that is a whole pool, as in Pulumi's state: never to be changed. */
export const poolResource = (pool: string): string => `${PREFIX}${pool}`;

/** The pool that a resource of this name is for; see poolResource. */
export const poolOfResource = (resource: string): Shortage | undefined =>
  resource.startsWith(PREFIX) ? { pool: resource.slice(PREFIX.length) } : undefined;
