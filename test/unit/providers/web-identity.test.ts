import { describe, expect, it } from 'vitest';
import { CoppiceError, errorText } from '../../../operator/api/errors.ts';
import { claimsOf } from '../../../operator/pki/token-claims.ts';
import { credentialsOf as awsCredentials } from '../../../providers/aws/credentials.ts';
import { openSession } from '../../../providers/aws/session.ts';
import { AKS_SCOPE, entraToken } from '../../../providers/azure/token.ts';
import { credentialsOf as gcpCredentials, pluginCredentials } from '../../../providers/gcp/credentials.ts';
import { accessToken } from '../../../providers/gcp/token.ts';
import { Exchanges, explainDistrust } from '../../../providers/web-identity.ts';
import { FakeAws, refusal, SESSION, xml } from './aws/fake-aws.ts';
import * as azureFake from './azure/fake-azure.ts';
import { client, tenant } from './azure/fixtures.ts';
import { FakeGoogle } from './gcp/fake-google.ts';
import { context as gcpContext, profile } from './gcp/fixtures.ts';
import { jwt } from './jwt.ts';

const now = new Date('2026-11-21T10:00:00Z');
const later = (minutes: number) => new Date(+now + minutes * 60_000);
const SUBJECT = 'system:serviceaccount:shop:wi-me';
const { signal } = new AbortController();
let serial = 0;
/** A new one each time: what clouds gave for one is kept. */
const tokenFor = (aud: string) =>
  jwt({ iss: 'https://garden.example', sub: SUBJECT, aud: [aud], exp: 1_795_000_000, jti: String(++serial) });

describe('claimsOf', () => {
  it('returns the claims of a token, and undefined for anything else', () => {
    expect(claimsOf(tokenFor('a'))).toEqual({
      issuer: 'https://garden.example',
      subject: SUBJECT,
      audiences: ['a'],
      expiresAt: 1_795_000_000,
    });
    for (const none of ['', 'jwt', 'a.b.c', jwt({ iss: 'x' })]) expect(claimsOf(none)).toBeUndefined();
  });
});

describe('a cached cloud token', () => {
  it('is used until it would expire during a run', async () => {
    const kept = new Exchanges<number>();
    let asked = 0;
    const at = (when: Date, proof = 'token') =>
      kept.get([proof], { now: when, signal }, async () => ({ value: ++asked, expiresAt: later(60).toISOString() }));
    expect(await at(now)).toBe(1);
    expect(await at(later(35))).toBe(1);
    expect(await at(later(35), 'another token')).toBe(2);
    expect(await at(later(36))).toBe(3);
  });

  it('is requested again after a refusal, or without a known expiry', async () => {
    const kept = new Exchanges<string>();
    await expect(kept.get(['t'], { now, signal }, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await kept.get(['t'], { now, signal }, async () => ({ value: 'a', expiresAt: '' }))).toBe('a');
    expect(await kept.get(['t'], { now, signal }, async () => ({ value: 'b', expiresAt: '' }))).toBe('b');
  });
});

describe('explainDistrust', () => {
  it.each(['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'ERR_INFRA_DEPENDENCIES'] as const)(
    'returns an error unrelated to trust unchanged: %s',
    (code) => {
      const error = new CoppiceError(code, 'no');
      expect(explainDistrust(error, tokenFor('a'), 'role r', 'how')).toBe(error);
    },
  );
});

describe('web identity at AWS', () => {
  const role = 'arn:aws:iam::123456789012:role/coppice';
  const open = (fake: FakeAws, token: string, at = now, more: object = {}) => {
    const { key: _, ...aws } = fake.connection();
    const credentials = { roleARN: role, token, ...more };
    return openSession(awsCredentials({ id: 'a', credentials }), { ...aws, now: () => at });
  };
  const given = `<Credentials><AccessKeyId>${SESSION.accessKeyID}</AccessKeyId><SecretAccessKey>session secret</SecretAccessKey>
    <SessionToken>session token</SessionToken><Expiration>${later(60).toISOString()}</Expiration></Credentials>`;

  it('exchanges the token for a session without signature, and again before its expiry', async () => {
    await using fake = await FakeAws.start(({ action }) => xml(action, `<${action}Result>${given}</${action}Result>`));
    const token = tokenFor('sts.amazonaws.com');
    expect(await open(fake, token)).toEqual(SESSION);
    expect(await open(fake, token, later(30))).toEqual(SESSION);
    expect(fake.asked).toMatchObject([
      {
        action: 'AssumeRoleWithWebIdentity',
        accessKeyID: undefined,
        input: { RoleArn: role, WebIdentityToken: token, DurationSeconds: '3600', RoleSessionName: 'coppice' },
      },
    ]);
    await open(fake, token, later(50));
    await open(fake, tokenFor('sts.amazonaws.com'));
    expect(fake.asked).toHaveLength(3);
  });

  it('uses the region that the identity names', async () => {
    await using fake = await FakeAws.start(({ action }) => xml(action, `<${action}Result>${given}</${action}Result>`));
    const regions: string[] = [];
    const { key: _, ...aws } = fake.connection();
    const endpoint = (_service: string, region: string) => {
      regions.push(region);
      return fake.endpoint();
    };
    const credentials = { roleARN: role, token: tokenFor('sts.amazonaws.com'), stsRegion: 'eu-west-1' };
    await openSession(awsCredentials({ id: 'a', credentials }), { ...aws, endpoint });
    expect(new Set(regions)).toEqual(new Set(['eu-west-1']));
    expect(() => awsCredentials({ id: 'a', credentials: { ...credentials, stsRegion: 'evil.example/' } })).toThrow(
      'stsRegion of the AWS credentials is no region',
    );
  });

  it.each([
    ['AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity', 403],
    ['InvalidIdentityToken', 'Incorrect token audience', 400],
  ])('reports which trust is missing: %s', async (code, message, status) => {
    await using fake = await FakeAws.start(() => refusal(status, code, message));
    const token = tokenFor('sts.amazonaws.com');
    const error = await open(fake, token).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'ERR_INFRA_UNAUTHENTICATED' });
    expect(errorText(error)).toContain(`${code}: ${message}`);
    expect(errorText(error)).toContain(
      `Have role ${role} trust issuer https://garden.example, subject ${SUBJECT}, audience sts.amazonaws.com`,
    );
    expect(errorText(error)).not.toContain(token);
  });
});

describe('web identity at Google', () => {
  const pool = 'projects/123456789012/locations/global/workloadIdentityPools/coppice/providers/garden';
  const email = 'coppice@demo-project.iam.gserviceaccount.com';
  const credentials = (token: string) => ({
    projectID: 'demo-project',
    workloadIdentityProvider: pool,
    serviceAccountEmail: email,
    token,
  });
  const of = (token: string, at = now) =>
    gcpContext({ account: { id: 'a', credentials: credentials(token) }, now: () => at });
  const start = (refuse?: string) =>
    FakeGoogle.start(({ path }) => {
      if (path === '/v1/token') {
        return refuse === 'sts'
          ? { status: 400, body: { error: 'invalid_target', error_description: 'The target service is invalid.' } }
          : { body: { access_token: 'federated', expires_in: 3599, token_type: 'Bearer' } };
      }
      return refuse === 'iam'
        ? {
            status: 403,
            body: { error: { code: 403, status: 'PERMISSION_DENIED', message: "Permission 'iam...' denied" } },
          }
        : { body: { accessToken: 'ya29.account', expireTime: later(60).toISOString() } };
    });

  it('exchanges the token, impersonates the service account, and again before its expiry', async () => {
    await using google = await start();
    const token = tokenFor('pool');
    const expected = { token: 'ya29.account', expiresAt: later(60).toISOString() };
    expect(await accessToken(of(token), google.endpoints)).toEqual(expected);
    expect(await accessToken(of(token, later(30)), google.endpoints)).toEqual(expected);
    const [exchange, impersonation, ...others] = google.asked;
    expect(others).toEqual([]);
    expect(exchange).toMatchObject({ method: 'POST', path: '/v1/token' });
    expect(JSON.parse(exchange!.body)).toEqual({
      grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: `//iam.googleapis.com/${pool}`,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
      subjectToken: token,
    });
    expect(impersonation).toMatchObject({
      method: 'POST',
      path: `/v1/projects/-/serviceAccounts/${email}:generateAccessToken`,
      headers: { authorization: 'Bearer federated' },
    });
    await accessToken(of(token, later(50)), google.endpoints);
    expect(google.asked).toHaveLength(4);
  });

  it.each([
    ['sts', `Have ${pool} trust issuer https://garden.example, subject ${SUBJECT}, audience pool`],
    ['iam', `Have service account ${email} trust issuer https://garden.example, subject ${SUBJECT}, audience pool`],
  ])('reports who must trust what: %s', async (refuse, words) => {
    await using google = await start(refuse);
    const error = await accessToken(of(tokenFor('pool')), google.endpoints).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'ERR_INFRA_UNAUTHENTICATED' });
    expect(errorText(error)).toContain(words);
  });

  it('refuses a malformed token, and an account that would be a path', () => {
    const wrong = { ...credentials(''), serviceAccountEmail: '../x' };
    expect(() => gcpCredentials({ id: 'a', credentials: wrong }, profile)).toThrow(
      'serviceAccountEmail, token of the GCP',
    );
  });

  it('passes the plugin the access token only', () => {
    const known = gcpCredentials({ id: 'a', credentials: credentials('t') }, profile);
    expect(pluginCredentials(known, 'ya29.account')).toEqual({ GOOGLE_OAUTH_ACCESS_TOKEN: 'ya29.account' });
  });
});

describe('web identity at Entra ID', () => {
  const { clientSecret: _, ...nobody } = azureFake.secret;
  const of = (token: string, at = now) => ({ ...azureFake.context({ ...nobody, token }), now: () => at });

  it('requests one token per scope, and again before its expiry', async () => {
    await using azure = await azureFake.FakeAzure.start(() => undefined);
    const token = tokenFor('api://AzureADTokenExchange');
    const first = await entraToken(of(token), azure.endpoints, AKS_SCOPE);
    expect(await entraToken(of(token, later(30)), azure.endpoints, AKS_SCOPE)).toEqual(first);
    expect(azure.asked).toHaveLength(1);
    await entraToken(of(token), azure.endpoints, 'another');
    await entraToken(of(token, later(50)), azure.endpoints, AKS_SCOPE);
    expect(azure.asked).toHaveLength(3);
    expect(azure.asked[0]).toMatchObject({ path: `/login/${tenant}/oauth2/v2.0/token` });
  });

  it('reports which trust is missing', async () => {
    const error_description =
      'AADSTS700213: No matching federated identity record found for presented assertion subject.';
    await using azure = await azureFake.FakeAzure.start(
      () => undefined,
      () => ({ status: 401, body: { error: 'invalid_client', error_description } }),
    );
    const failure = entraToken(of(tokenFor('api://AzureADTokenExchange')), azure.endpoints, 'scope');
    const error = await failure.catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code: 'ERR_INFRA_UNAUTHENTICATED',
      message: expect.stringContaining('AADSTS700213'),
    });
    expect(errorText(error)).toContain(
      `Have application ${client} trust issuer https://garden.example, subject ${SUBJECT}, audience api://AzureADTokenExchange`,
    );
  });
});
