import { dependencyNotReady } from '../../operator/api/errors.ts';

/**
 * Error for a cluster of a killed run that the cloud is still creating. Imported now it would have no address until the
 * next refresh. The operator retries.
 */
export const beingCreated = (what: string): Error =>
  dependencyNotReady(`${what} is still being created, for a run that was killed; it is imported once it is ready`);
