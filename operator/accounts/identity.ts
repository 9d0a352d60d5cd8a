import { createHash } from 'node:crypto';
import { CoppiceError, configurationProblem, notYetConfigured } from '../api/errors.ts';
import { audiencesOf, type WorkloadIdentity } from '../api/workloadidentity.ts';
import { type Credentials, type CredentialsUse, credentialsSourceOf } from './credentials.ts';
import { type IdentityToken, subjectOf } from './identity-tokens.ts';

/** The identity to be used; throws when it is missing, being deleted, or of another cloud than its binding. */
export function usableIdentity(identity: WorkloadIdentity | undefined, use: CredentialsUse): WorkloadIdentity {
  const what = credentialsSourceOf(use);
  if (!identity) throw notYetConfigured(`there is no ${what}`, 'Make it, or name another.');
  const { type } = identity.spec.targetSystem;
  if (use.type === undefined || use.type === type) return identity;
  throw configurationProblem(`${what} is for ${type}, not ${use.type}`, 'Name an identity for the right cloud.');
}

/** The keys of a credentials Secret, with a token in place of the secret values. */
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
  // The token is left out of the version: it is renewed all the time without a change of the identity.
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

/** A cloud's refusal of credentials, completed by the name of the WorkloadIdentity where no Secret was used. */
export function namingIdentity(error: unknown, use: CredentialsUse): unknown {
  if (use.identity === undefined || !(error instanceof CoppiceError) || error.code !== 'ERR_INFRA_UNAUTHENTICATED')
    return error;
  return new CoppiceError(error.code, `the cloud does not know ${credentialsSourceOf(use)}: ${error.message}`, {
    advice: error.advice,
    cause: error.cause ?? error,
  });
}
