import { dependencyNotReady } from '../../operator/api/errors.ts';

/**
 * A cluster that a killed run began, and that the cloud still makes. Imported now it would be a cluster without an address, and stay one until
 * something looked again. The operator retries.
 */
export const beingCreated = (what: string): Error =>
  dependencyNotReady(`${what} is still being created, for a run that was killed; it is imported once it is ready`);
