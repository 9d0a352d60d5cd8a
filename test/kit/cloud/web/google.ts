import { createPublicKey, verify } from 'node:crypto';
import { kindOf } from '../gcp/kinds.ts';
import { gcp as model } from '../gcp/model.ts';
import { type Account, type CloudResource, isMade, type Properties, type Testbed } from '../model.ts';
import { neededAtGoogle } from '../needs/web.ts';
import type { Store } from '../store.ts';
import { judgeToken } from '../trust.ts';
import { cloudStorage } from './google-buckets.ts';
import { cloudDNS, cloudDNSAction } from './google-dns.ts';
import { computeMachines } from './google-machines.ts';
import { listNodePools, nodePoolGroups } from './google-node-pools.ts';
import { type Asked, fieldsOf, Refused, type Said, type Web } from './server.ts';

/** A token names the key that it was given for; the plugins take it too. */
const PREFIX = 'ya29.';

/** `compute.googleapis.com/Network`: as Cloud Asset Inventory names types. */
const assetType = ({ type }: CloudResource): string => {
  const { service, noun } = kindOf(type);
  // Groups of machines in a zone and in a region are of one type.
  return `${service}.googleapis.com/${noun.replace(/^RegionInstanceGroup/, 'InstanceGroup')}`;
};

/** Path of a resource in its API; for node pools it is not the id that import takes. */
const pathOf = ({ id, type, inputs, name, region }: CloudResource, project: string): string =>
  type === 'gcp:container:NodePool'
    ? `projects/${project}/locations/${inputs.location ?? region}/clusters/${inputs.cluster}/nodePools/${name}`
    : id;

function described(resource: CloudResource, testbed: Testbed): Properties {
  const outputs = testbed.outputs(resource);
  if (resource.type === 'gcp:container:NodePool') return { ...outputs, config: resource.inputs.nodeConfig };
  if (resource.type === 'gcp:container:Cluster') {
    const { masterVersion: currentMasterVersion, nodeLocations: locations, enableAutopilot } = outputs;
    const status = isMade(resource, testbed) ? 'RUNNING' : 'PROVISIONING';
    return { ...outputs, status, currentMasterVersion, locations, autopilot: { enabled: enableAutopilot === true } };
  }
  if (resource.type !== 'gcp:compute:Router') return outputs;
  const nats = testbed.all('gcp:compute:RouterNat').filter(({ inputs }) => inputs.router === resource.name);
  return { ...outputs, nats: nats.map(({ name }) => ({ name })) };
}

/** Who may do what on the project or on a key of it. */
function policyOf(on: string, testbed: Testbed): Properties {
  const isProject = on === `projects/${testbed.caller.account}`;
  if (!isProject && !testbed.find('gcp:kms:CryptoKey', on)) throw new Refused(404, 'notFound', `${on} was not found`);
  const grants = isProject
    ? testbed.all('gcp:projects:IAMMember')
    : testbed.all('gcp:kms:CryptoKeyIAMMember').filter(({ inputs }) => inputs.cryptoKeyId === on);
  return { bindings: grants.map(({ inputs: { role, member } }) => ({ role, members: [member] })) };
}

const tokenFor = (key: string): Said => ({
  body: { token_type: 'Bearer', expires_in: 3599, access_token: `${PREFIX}${key}` },
});

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const SUBJECT_TOKENS = ['urn:ietf:params:oauth:token-type:jwt', 'urn:ietf:params:oauth:token-type:id_token'];
/** Longest life of an assertion, seconds. */
const LONGEST = 3600;

/**
 * Google's token for an assertion that a key of the service account has signed
 * (developers.google.com/identity/protocols/oauth2/service-account).
 */
function tokenByKey({ grant_type: grant, assertion = '' }: Record<string, string>, accounts: readonly Account[]): Said {
  const refused = (error: string, description: string): Said => ({
    status: 400,
    body: { error, error_description: description },
  });
  if (grant !== JWT_BEARER) return refused('unsupported_grant_type', `Invalid grant_type: ${grant}`);
  const [header = '', claims = '', signature = ''] = assertion.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
  const { iss, aud, scope, iat, exp } = read(claims) as Record<string, string> & { iat: number; exp: number };
  const account = accounts.find(({ principal }) => principal === iss);
  const isSigned =
    account !== undefined &&
    read(header).alg === 'RS256' &&
    verify(
      'RSA-SHA256',
      Buffer.from(`${header}.${claims}`),
      createPublicKey(account.secret),
      Buffer.from(signature, 'base64url'),
    );
  if (!isSigned) return refused('invalid_grant', 'Invalid JWT Signature.');
  const now = Date.now() / 1000;
  if (iat > now || exp < now || exp - iat > LONGEST)
    return refused(
      'invalid_grant',
      'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.',
    );
  if (aud !== 'https://oauth2.googleapis.com/token')
    return refused('invalid_grant', 'Invalid JWT: Failed audience check.');
  if (!scope) return refused('invalid_scope', 'Empty or missing scope not allowed.');
  return tokenFor(account.key);
}

/** A request for an exchange: as a form (RFC 8693) or as JSON (REST reference of sts v1 `token`). */
function exchangeOf(asked: Asked): Record<string, string> {
  if (String(asked.headers['content-type']).startsWith('application/json')) return JSON.parse(asked.body);
  const camel = (name: string) => name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(fieldsOf(asked)).map(([name, value]) => [camel(name), value]));
}

/** A federated token says whose token it was given for: which service account takes it, IAM says later. */
const FEDERATED = 'ya29.d.';
const PROVIDER =
  /^\/\/iam\.googleapis\.com\/projects\/\d+\/locations\/global\/workloadIdentityPools\/[^/]+\/providers\/[^/]+$/;

/**
 * Google's Security Token Service. It trusts an issuer for an audience, not a subject. Texts: google-github-actions/auth issues 211 (audience
 * of the request) and 334 (no such pool); what it says of a token's own claims was not found in full and is only like it.
 */
function federatedToken(asked: Record<string, string>, accounts: readonly Account[], store: Store): Said {
  const refused = (error: string, description: string): Said => ({
    status: 400,
    body: { error, error_description: description },
  });
  if (!PROVIDER.test(asked.audience ?? ''))
    return refused(
      'invalid_request',
      'Invalid value for "audience". This value should be the full resource name of the Identity Provider.',
    );
  if (asked.grantType !== TOKEN_EXCHANGE) return refused('unsupported_grant_type', 'Invalid grant type.');
  if (asked.requestedTokenType !== ACCESS_TOKEN || !SUBJECT_TOKENS.includes(asked.subjectTokenType ?? ''))
    return refused('invalid_request', 'Invalid value for "requested_token_type" or "subject_token_type".');
  const token = asked.subjectToken ?? '';
  const judged = accounts.map((account) => judgeToken(store, account, token));
  const { distrust, claims } = judged.find((one) => one.distrust === undefined || one.distrust === 'subject') ??
    judged.find((one) => one.distrust !== 'issuer') ??
    judged[0] ?? { distrust: 'issuer' as const };
  if (distrust === undefined || distrust === 'subject') {
    const proof = Buffer.from(token).toString('base64url');
    return { body: { token_type: 'Bearer', expires_in: 3599, access_token: `${FEDERATED}${proof}` } };
  }
  if (distrust === 'audience')
    return refused(
      'invalid_grant',
      `The audience in ID Token [${claims?.audiences.join(', ')}] does not match the expected audience.`,
    );
  if (distrust === 'issuer')
    return refused('invalid_grant', `The issuer in ID Token ${claims?.issuer} does not match the expected ones.`);
  return refused('invalid_grant', 'ID Token is invalid or no longer valid.');
}

/** IAM Credentials: gives a service account's token to whom its policy lets (google-github-actions/auth issue 526). */
function impersonated(asked: Asked, email: string, accounts: readonly Account[], store: Store): Said {
  const bearer = String(asked.headers.authorization ?? '').replace('Bearer ', '');
  const account = accounts.find(({ principal }) => principal === email);
  const token = Buffer.from(bearer.replace(FEDERATED, ''), 'base64url').toString();
  if (account && bearer.startsWith(FEDERATED) && judgeToken(store, account, token).distrust === undefined) {
    const expireTime = new Date(Date.now() + 3600_000).toISOString();
    return { body: { accessToken: `${PREFIX}${account.key}`, expireTime } };
  }
  const message = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).";
  return { status: 403, body: { error: { code: 403, message, status: 'PERMISSION_DENIED' } } };
}

/** Google's APIs, as far as Coppice asks them. */
export const googleWeb: Web = {
  model,
  open(asked, accounts, store): Said | undefined {
    const { pathname } = asked.url;
    if (pathname === '/v1/token') return federatedToken(exchangeOf(asked), accounts, store);
    const email = /^\/v1\/projects\/-\/serviceAccounts\/([^/:]+):generateAccessToken$/.exec(pathname)?.[1];
    if (email !== undefined) return impersonated(asked, decodeURIComponent(email), accounts, store);
    if (pathname !== '/token') return undefined;
    return tokenByKey(fieldsOf(asked), accounts);
  },
  caller: ({ headers }, accounts) => accounts.find(({ key }) => headers.authorization === `Bearer ${PREFIX}${key}`),
  about: ({ method, url }) => ({
    region: /\/(?:regions|locations)\/([^/]+)/.exec(url.pathname)?.[1] ?? '',
    action: cloudDNSAction(method, url) ?? `${method} ${url.pathname.replace(/projects\/[^/:]+/, 'projects')}`,
  }),
  needs: ({ url }) => neededAtGoogle(decodeURIComponent(url.pathname).replace(/^\/(?:compute\/)?v1\//, '')),
  answer(asked, testbed, denied, store) {
    const { url, body } = asked;
    const stored = cloudStorage(asked, testbed, store);
    if (stored) return stored;
    const { account } = testbed.caller;
    const zones = cloudDNS(asked, account, store);
    if (zones) return zones;
    const path = decodeURIComponent(url.pathname).replace(/^\/(?:compute\/)?v1\//, '');
    if (path === `projects/${account}:testIamPermissions`) {
      const { permissions } = JSON.parse(body) as { permissions: string[] };
      return { body: { permissions: permissions.filter((one) => !denied.includes(one)) } };
    }
    if (path === `projects/${account}:searchAllResources`) {
      const results = testbed.all().map((one) => ({
        name: `//${kindOf(one.type).service}.googleapis.com/${pathOf(one, account)}`,
        assetType: assetType(one),
        location: one.region,
        labels: model.tags(one),
        description: one.inputs.description,
        createTime: new Date(one.createdAt).toISOString(),
      }));
      return { body: { results } };
    }
    if (path.endsWith(':getIamPolicy')) return { body: policyOf(path.replace(/:getIamPolicy$/, ''), testbed) };
    const machines =
      listNodePools(path, testbed) ??
      nodePoolGroups(path, body, testbed, store) ??
      computeMachines(path, url.searchParams, body, testbed, store);
    if (machines) return { body: machines };
    const resource = testbed.all().find((one) => pathOf(one, account) === path);
    if (!resource) throw new Refused(404, 'notFound', `The resource '${path}' was not found`);
    return { body: described(resource, testbed) };
  },
  refusals: {
    unknown: () => new Refused(401, 'authError', 'Request had invalid authentication credentials.'),
    throttled: () => new Refused(429, 'rateLimitExceeded', "Quota exceeded for quota metric 'Queries'."),
    denied: (action) => new Refused(403, 'forbidden', `Required permission for '${action}'`),
    closed: () => new Refused(403, 'forbidden', 'Permission denied on location (or it may not exist).'),
  },
  refusal: ({ status, code, message }) => ({
    status,
    body: { error: { code: status, message, errors: [{ reason: code, message, domain: 'global' }] } },
  }),
};
