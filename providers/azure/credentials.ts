import { CoppiceError } from '../../operator/api/errors.ts';
import type { CloudAccount } from '../cloud.ts';

/** Identity and proof of a caller. */
export interface AzureCredentials {
  clientID: string;
  tenantID: string;
  subscriptionID: string;
  /** A secret of the application, or a token that it trusts (workload identity federation). */
  proof: { secret: string } | { assertion: string };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DOMAIN = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i;

const unusable = (message: string, advice: string): CoppiceError =>
  new CoppiceError('ERR_INFRA_UNAUTHENTICATED', message, { advice });

/**
 * Keys of the Secret with Gardener's names (provider-azure pkg/azure/types.go), validated, since they become parts of
 * URLs. `token` replaces `clientSecret` with workload identity. Throws ERR_INFRA_UNAUTHENTICATED when one is missing or
 * malformed.
 */
export function credentialsOf({ credentials }: CloudAccount): AzureCredentials {
  const { clientID = '', tenantID = '', subscriptionID = '', clientSecret, token } = trimmed(credentials);
  const missing = Object.entries({ clientID, tenantID, subscriptionID }).filter(([, value]) => value === '');
  const names = missing.map(([name]) => name);
  if (!clientSecret && !token) names.push('clientSecret');
  if (names.length > 0) {
    throw unusable(
      `the Azure credentials lack ${names.join(', ')}`,
      'The Secret needs the keys clientID, tenantID, subscriptionID, and clientSecret (or token, with workload identity).',
    );
  }
  for (const [name, value] of Object.entries({ clientID, subscriptionID })) {
    if (!UUID.test(value))
      throw unusable(`${name} of the Azure credentials is no UUID`, `Correct ${name} in the Secret.`);
  }
  if (!UUID.test(tenantID) && !DOMAIN.test(tenantID)) {
    throw unusable(
      'tenantID of the Azure credentials is neither a UUID nor a domain',
      'Correct tenantID in the Secret.',
    );
  }
  const proof = clientSecret ? { secret: clientSecret } : { assertion: token! };
  return { clientID, tenantID, subscriptionID, proof };
}

/** Trims values: Secrets are often created from files with a trailing newline. */
const trimmed = (credentials: Readonly<Record<string, string>>): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(credentials).map(([key, value]) => [key, value.trim()]));

/** Credentials of the plugin azure-native (pulumi-azure-native provider/pkg/provider/auth_azidentity.go). */
export const pluginCredentials = ({ proof }: AzureCredentials): Record<string, string> =>
  'secret' in proof ? { ARM_CLIENT_SECRET: proof.secret } : { ARM_OIDC_TOKEN: proof.assertion };

/** Further settings of the plugin; not secret, since messages are full of these ids and must stay readable. */
export const pluginSettings = (credentials: AzureCredentials): Record<string, string> => ({
  ARM_CLIENT_ID: credentials.clientID,
  ARM_TENANT_ID: credentials.tenantID,
  ARM_SUBSCRIPTION_ID: credentials.subscriptionID,
  ...('assertion' in credentials.proof && { ARM_USE_OIDC: 'true' }),
});
