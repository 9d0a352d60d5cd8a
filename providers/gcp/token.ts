import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import type { CloudContext } from '../cloud.ts';
import { posted } from '../json-api.ts';
import { Exchanges, explainDistrust } from '../web-identity.ts';
import { credentialsOf, type Federation, hasKey, KEY_FILE, type ServiceAccountKey } from './credentials.ts';
import { callGoogle, type Endpoints } from './google-api.ts';

/** An OAuth 2.0 access token of Google. */
export interface GoogleToken {
  token: string;
  /** RFC 3339. */
  expiresAt: string;
}

type Context = Pick<CloudContext, 'account' | 'profile' | 'signal' | 'now'>;

/** Scope of all Google Cloud; IAM decides the account's rights. */
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** Longest life of an assertion, seconds. */
const LIFE = 3600;
/** Margin in seconds, since Google rejects assertions from the future. */
const SKEW = 10;

const TOKENS = new Exchanges<GoogleToken>();

/**
 * An access token, valid for about an hour, from the account's credentials. Cached while valid: the long-lived key is
 * used once an hour, not for each request. Throws ERR_INFRA_UNAUTHENTICATED when Google refuses them.
 */
export async function accessToken(ctx: Context, endpoints: Endpoints): Promise<GoogleToken> {
  const { proof } = credentialsOf(ctx.account, ctx.profile);
  // The metadata server caches its tokens.
  if (proof === 'machine') return machineToken(ctx, endpoints);
  const parts = hasKey(proof)
    ? ['key', endpoints.oauth, proof.email, proof.privateKey, proof.keyID ?? '']
    : ['token', endpoints.sts, endpoints.iamCredentials, proof.provider, proof.email, proof.token];
  return TOKENS.get(parts, { now: ctx.now(), signal: ctx.signal }, async (signal) => {
    const asked = { ...ctx, signal };
    const value = hasKey(proof)
      ? await keyToken(asked, endpoints, proof)
      : await federatedToken(asked, endpoints, proof);
    return { value, expiresAt: value.expiresAt };
  });
}

interface Answer {
  access_token?: string;
  expires_in?: number;
}

/**
 * With an assertion signed by the account's key (RFC 7523;
 * developers.google.com/identity/protocols/oauth2/service-account).
 */
async function keyToken(ctx: Context, endpoints: Endpoints, key: ServiceAccountKey): Promise<GoogleToken> {
  const asked = ctx.now();
  const answer = await callGoogle<Answer>({
    method: 'POST',
    url: `${endpoints.oauth}/token`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: assertion(key, asked),
    }).toString(),
    what: `Google gives no token to ${key.email}`,
    signal: ctx.signal,
  });
  return tokenOf(answer, asked);
}

/**
 * With a token that a workload identity pool trusts: it is exchanged for Google's, which impersonates the service
 * account (RFC 8693; REST references of sts v1 `token` and iamcredentials v1 `generateAccessToken`).
 */
async function federatedToken(ctx: Context, endpoints: Endpoints, federation: Federation): Promise<GoogleToken> {
  const { email, token } = federation;
  const exchanged = await exchange(ctx, endpoints, federation);
  const answer = await callGoogle<{ accessToken?: string; expireTime?: string }>({
    url: `${endpoints.iamCredentials}/v1/projects/-/serviceAccounts/${email}:generateAccessToken`,
    token: exchanged,
    ...posted({ scope: [SCOPE], lifetime: `${LIFE}s` }),
    what: `Google gives no token of ${email}`,
    signal: ctx.signal,
  }).catch((error: unknown) => {
    throw explainDistrust(
      error,
      token,
      `service account ${email}`,
      'grant it roles/iam.workloadIdentityUser for principal://iam.googleapis.com/<pool>/subject/<subject>',
    );
  });
  const { accessToken, expireTime } = answer ?? {};
  if (!accessToken || !expireTime) throw dependencyNotReady('Google answered without a token');
  return { token: accessToken, expiresAt: new Date(expireTime).toISOString() };
}

/** Google's token in exchange for an external one. */
async function exchange(ctx: Context, endpoints: Endpoints, { provider, token }: Federation): Promise<string> {
  const answer = await callGoogle<Answer>({
    url: `${endpoints.sts}/v1/token`,
    ...posted({
      grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: `//iam.googleapis.com/${provider}`,
      scope: SCOPE,
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
      subjectToken: token,
    }),
    what: `Google's Security Token Service takes no token for ${provider}`,
    signal: ctx.signal,
  }).catch((error: unknown) => {
    throw explainDistrust(
      error,
      token,
      provider,
      'issuer and allowed audiences of the provider, google.subject=assertion.sub',
    );
  });
  if (!answer?.access_token) throw dependencyNotReady('Google answered without a token');
  return answer.access_token;
}

/** With the machine's own account (cloud.google.com/compute/docs/access/authenticate-workloads). */
async function machineToken(ctx: Context, endpoints: Endpoints): Promise<GoogleToken> {
  const asked = ctx.now();
  const answer = await callGoogle<Answer>({
    url: `${endpoints.metadata}/computeMetadata/v1/instance/service-accounts/default/token`,
    headers: { 'metadata-flavor': 'Google' },
    what: "no token of the machine's own service account",
    signal: ctx.signal,
  });
  return tokenOf(answer, asked);
}

function tokenOf(answer: Answer | undefined, asked: Date): GoogleToken {
  const { access_token: token, expires_in: seconds } = answer ?? {};
  if (!token || !seconds) throw dependencyNotReady('Google answered without a token');
  return { token, expiresAt: new Date(asked.getTime() + seconds * 1000).toISOString() };
}

/** JSON Web Token by which the account requests an access token, signed with RS256. */
function assertion({ email, privateKey, keyID }: ServiceAccountKey, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1000) - SKEW;
  const header = { alg: 'RS256', typ: 'JWT', ...(keyID !== undefined && { kid: keyID }) };
  const claims = {
    iss: email,
    scope: SCOPE,
    aud: 'https://oauth2.googleapis.com/token',
    iat: seconds,
    exp: seconds + LIFE,
  };
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), readKey(privateKey)).toString('base64url')}`;
}

function readKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === 'rsa') return key;
  } catch {
    // Reported below: Node's message may quote the key.
  }
  throw new CoppiceError(
    'ERR_INFRA_UNAUTHENTICATED',
    `private_key in ${KEY_FILE} of the GCP credentials is no RSA key`,
    {
      advice: 'Put the key file into the Secret as it was downloaded, line breaks and all.',
    },
  );
}
