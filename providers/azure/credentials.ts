import { CoppiceError } from '../../operator/api/errors.ts';
import type { CloudAccount } from '../cloud.ts';

/** Who asks, and how it is proven. */
export interface AzureCredentials {
  clientID: string;
  tenantID: string;
  subscriptionID: string;
  /** A secret of the application, or a token of somebody whom it trusts (workload identity federation). */
  proof: { secret: string } | { assertion: string };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DOMAIN = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i;

const unusable = (message: string, advice: string): CoppiceError =>
  new CoppiceError('ERR_INFRA_UNAUTHENTICATED', message, { advice });

/**
 * The keys of the Secret, named as Gardener names them (provider-azure pkg/azure/types.go), checked: they become parts of URLs.
 * `token` stands in for `clientSecret` with workload identity. Throws ERR_INFRA_UNAUTHENTICATED when one is missing or is no id.
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

/** Secrets are often made from files that end with a new line. */
const trimmed = (credentials: Readonly<Record<string, string>>): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(credentials).map(([key, value]) => [key, value.trim()]));

/** What the plugin azure-native proves itself with (pulumi-azure-native provider/pkg/provider/auth_azidentity.go). */
export const pluginCredentials = ({ proof }: AzureCredentials): Record<string, string> =>
  'secret' in proof ? { ARM_CLIENT_SECRET: proof.secret } : { ARM_OIDC_TOKEN: proof.assertion };

/** What else it reads; no secrets, and not to be cut out of messages, which are full of these ids. */
export const pluginSettings = (credentials: AzureCredentials): Record<string, string> => ({
  ARM_CLIENT_ID: credentials.clientID,
  ARM_TENANT_ID: credentials.tenantID,
  ARM_SUBSCRIPTION_ID: credentials.subscriptionID,
  ...('assertion' in credentials.proof && { ARM_USE_OIDC: 'true' }),
});
