import { createHash } from 'node:crypto';
import { CoppiceError, configurationProblem, notYetConfigured } from '../api/errors.ts';
import { audiencesOf, type WorkloadIdentity } from '../api/workloadidentity.ts';
import { type Credentials, type CredentialsUse, sourceOf } from './credentials.ts';
import { type IdentityToken, subjectOf } from './identity-tokens.ts';

/** The identity that is used; throws when it is not there, going, or for another cloud than its binding. */
export function usableIdentity(identity: WorkloadIdentity | undefined, use: CredentialsUse): WorkloadIdentity {
  const what = sourceOf(use);
  if (!identity) throw notYetConfigured(`there is no ${what}`, 'Make it, or name another.');
  const { type } = identity.spec.targetSystem;
  if (use.type === undefined || use.type === type) return identity;
  throw configurationProblem(`${what} is for ${type}, not ${use.type}`, 'Name an identity for the right cloud.');
}

/** Keys as a Secret would have them, with a token in place of what is secret there. */
export function identityCredentials(
  identity: WorkloadIdentity,
  { token }: IdentityToken,
  use: CredentialsUse,
): Credentials {
  const { type, providerConfig } = identity.spec.targetSystem;
  const { region, ...own } = providerConfig;
  const values = Object.entries({
    ...own,
    ...(type === 'aws' && region !== undefined && { stsRegion: region }),
    token,
  });
  // Not of the token: that is renewed all the time, and they are still who they were.
  const version = JSON.stringify([
    identity.metadata.uid,
    subjectOf(identity),
    audiencesOf(identity.spec),
    type,
    providerConfig,
  ]);
  return {
    use,
    values: Object.fromEntries(values.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]))),
    version: createHash('sha256').update(version).digest('hex').slice(0, 16),
  };
}

/** An error of a cloud that does not take the credentials, saying whose they are where they are no Secret's. */
export function namingIdentity(error: unknown, use: CredentialsUse): unknown {
  if (use.identity === undefined || !(error instanceof CoppiceError) || error.code !== 'ERR_INFRA_UNAUTHENTICATED')
    return error;
  return new CoppiceError(error.code, `the cloud does not know ${sourceOf(use)}: ${error.message}`, {
    advice: error.advice,
    cause: error.cause ?? error,
  });
}
