import type { WorkloadIdentity } from '../api/workloadidentity.ts';
import type { Secret } from '../kube/resources.ts';
import { type Credentials, type CredentialsUse, credentialsIn } from './credentials.ts';
import { identityCredentials, usableIdentity } from './identity.ts';
import type { IdentityTokens } from './identity-tokens.ts';

/** Where credentials come from. */
export interface CredentialsSource {
  secret(namespace: string, name: string, signal?: AbortSignal): Promise<Secret | undefined>;
  identity(namespace: string, name: string, signal?: AbortSignal): Promise<WorkloadIdentity | undefined>;
  readonly tokens: Pick<IdentityTokens, 'token'>;
}

/** The credentials in use: those of a Secret, or a token of a WorkloadIdentity. Rejects with CoppiceErrors. */
export async function obtainCredentials(
  source: CredentialsSource,
  use: CredentialsUse,
  signal?: AbortSignal,
): Promise<Credentials> {
  const { namespace, identity: name } = use;
  if (name === undefined) return credentialsIn(await source.secret(namespace, use.secret, signal), use);
  const identity = usableIdentity(await source.identity(namespace, name, signal), use);
  return identityCredentials(identity, await source.tokens.token(identity), use);
}
