import { dependencyNotReady } from '../../operator/api/errors.ts';
import type { CloudContext } from '../cloud.ts';
import { Exchanges, explainDistrust } from '../web-identity.ts';
import { callAzure, type Endpoints } from './arm.ts';
import { type AzureCredentials, credentialsOf } from './credentials.ts';

/** A bearer token of Entra ID. */
export interface EntraToken {
  token: string;
  /** RFC 3339. */
  expiresAt: string;
}

/**
 * AKS' application, whose tokens every AKS API server accepts; the same in all Azure clouds (azure-aks-docs
 * articles/aks/kubelogin-authentication.md).
 */
export const AKS_SCOPE = '6dae42f8-4368-4678-94ff-3960e28e3630/.default';

/** Token scope of Azure Resource Manager. */
export const managementScope = ({ management }: Endpoints): string => `${management}/.default`;

const TOKENS = new Exchanges<EntraToken>();

type Context = Pick<CloudContext, 'account' | 'signal' | 'now'>;

/**
 * A token for the scope by client credentials: OAuth 2.0 with the application's secret, or a token that the application
 * trusts (learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow). Cached while valid. Throws
 * ERR_INFRA_UNAUTHENTICATED when Entra ID refuses them.
 */
export async function entraToken(ctx: Context, endpoints: Endpoints, scope: string): Promise<EntraToken> {
  const credentials = credentialsOf(ctx.account);
  const { clientID, tenantID, proof } = credentials;
  const secret = 'secret' in proof ? ['secret', proof.secret] : ['assertion', proof.assertion];
  const parts = [endpoints.login, tenantID, clientID, scope, ...secret];
  return TOKENS.get(parts, { now: ctx.now(), signal: ctx.signal }, async (signal) => {
    const value = await askedToken({ ...ctx, signal }, endpoints, credentials, scope).catch((error: unknown) => {
      if ('secret' in proof) throw error;
      throw explainDistrust(error, proof.assertion, `application ${clientID}`, 'a federated identity credential');
    });
    return { value, expiresAt: value.expiresAt };
  });
}

async function askedToken(
  ctx: Context,
  endpoints: Endpoints,
  credentials: AzureCredentials,
  scope: string,
): Promise<EntraToken> {
  const asked = ctx.now().getTime();
  const answer = await callAzure<{ access_token?: string; expires_in?: number }>({
    method: 'POST',
    url: `${endpoints.login}/${credentials.tenantID}/oauth2/v2.0/token`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, ...proofOf(credentials) }).toString(),
    what: `Entra ID gives no token to client ${credentials.clientID}`,
    signal: ctx.signal,
  });
  const { access_token: token, expires_in: seconds } = answer ?? {};
  if (!token || !seconds) throw dependencyNotReady('Entra ID answered without a token');
  return { token, expiresAt: new Date(asked + seconds * 1000).toISOString() };
}

function proofOf({ clientID, proof }: AzureCredentials): Record<string, string> {
  if ('secret' in proof) return { client_id: clientID, client_secret: proof.secret };
  return {
    client_id: clientID,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: proof.assertion,
  };
}
