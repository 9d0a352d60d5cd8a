import { verify } from 'node:crypto';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { CoppiceError, isRetryable } from '../../../../operator/api/errors.ts';
import type { CloudContext } from '../../../../providers/cloud.ts';
import { credentialsOf, pluginCredentials } from '../../../../providers/gcp/credentials.ts';
import { gkeKubeconfig } from '../../../../providers/gcp/kubeconfig.ts';
import { accessToken } from '../../../../providers/gcp/token.ts';
import { type Answer, FakeGoogle } from './fake-google.ts';
import { context, now, pem, profile, publicKey, withKey } from './fixtures.ts';

const lending = { ...profile, spec: { ...profile.spec, providerConfig: { machineIdentity: true } } };
const ofMachine = (changes: Partial<CloudContext> = {}) =>
  context({ account: { id: 'demo-project', credentials: { projectID: 'demo-project' } }, ...changes });
const of = (credentials: Record<string, string>) => context({ account: { id: 'a', credentials } });
const decoded = (part: string): any => JSON.parse(Buffer.from(part, 'base64url').toString());

async function failure(ctx: CloudContext, answer?: Answer): Promise<CoppiceError> {
  await using google = await FakeGoogle.start(() => answer);
  const error = await accessToken(ctx, google.endpoints).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CoppiceError);
  expect(String(error)).not.toContain(pem.split('\n')[1]);
  return error as CoppiceError;
}

describe('accessToken at Google', () => {
  it("requests a token with an assertion signed by the account's key", async () => {
    await using google = await FakeGoogle.start();
    const token = await accessToken(context(), google.endpoints);
    expect(token).toEqual({ token: 'ya29.token', expiresAt: '2026-11-21T12:59:59.000Z' });
    const form = new URLSearchParams(google.asked[0]!.body);
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
    const [header, claims, signature] = form.get('assertion')!.split('.') as [string, string, string];
    expect(decoded(header)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' });
    const issued = now.getTime() / 1000 - 10;
    expect(decoded(claims)).toEqual({
      iss: 'coppice@demo-project.iam.gserviceaccount.com',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      aud: 'https://oauth2.googleapis.com/token',
      iat: issued,
      exp: issued + 3600,
    });
    const signed = Buffer.from(`${header}.${claims}`);
    expect(verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url'))).toBe(true);
  });

  it("uses the metadata server where the profile lends the machine's identity", async () => {
    await using google = await FakeGoogle.start(({ headers }) =>
      headers['metadata-flavor'] === 'Google'
        ? { body: { access_token: 'ya29.machine', expires_in: 1800, token_type: 'Bearer' } }
        : { status: 403, body: 'Missing Metadata-Flavor:Google header.' },
    );
    const token = await accessToken(ofMachine({ profile: lending }), google.endpoints);
    expect(token).toEqual({ token: 'ya29.machine', expiresAt: '2026-11-21T12:30:00.000Z' });
    expect(google.asked[0]!.path).toBe('/computeMetadata/v1/instance/service-accounts/default/token');
  });

  it("does not fall back to the machine's identity without a key", async () => {
    const error = await failure(ofMachine());
    expect(error.code).toBe('ERR_INFRA_UNAUTHENTICATED');
    expect(error.message).toContain("does not lend the operator's own identity");
  });

  it.each([
    ['none', of({}), 'lack serviceaccount.json'],
    ['no JSON', of({ 'serviceaccount.json': 'key' }), 'is no JSON'],
    ['nothing', of({ 'serviceaccount.json': 'null' }), 'of type undefined'],
    ['a URL to ask', withKey({ type: 'external_account' }), 'of type external_account'],
    ['no account', withKey({ client_email: 'somebody@example.com' }), 'client_email'],
    ['no private key', withKey({ private_key: undefined }), 'has no private_key'],
    ['a broken key', withKey({ private_key: pem.replaceAll('\n', ' ') }), 'is no RSA key'],
    ['a project that would be a path', withKey({ project_id: '../other' }), 'name no project'],
  ] as [string, CloudContext, string][])(
    'does not request a token with credentials that are %s',
    async (_, ctx, message) => {
      const error = await failure(ctx);
      expect(error.code).toBe('ERR_INFRA_UNAUTHENTICATED');
      expect(error.message).toContain(message);
    },
  );

  it.each([
    [
      'a key that was deleted',
      { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } },
      'ERR_INFRA_UNAUTHENTICATED',
      'Google gives no token to coppice@demo-project.iam.gserviceaccount.com: Invalid JWT Signature',
    ],
    [
      'an account that is disabled',
      { status: 401, body: { error: 'disabled_client', error_description: 'The OAuth client was disabled.' } },
      'ERR_INFRA_UNAUTHENTICATED',
      'The OAuth client was disabled',
    ],
    [
      'an account that is gone',
      { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid grant: account not found' } },
      'ERR_INFRA_UNAUTHENTICATED',
      'account not found',
    ],
    ['too many requests', { status: 429, body: {} }, 'ERR_INFRA_RATE_LIMITS_EXCEEDED', 'HTTP 429'],
    ['a bad day', { status: 503, body: 'down' }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'HTTP 503'],
    ['no token', { body: {} }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'without a token'],
    ['a web page', { body: '<html>' }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'no JSON'],
  ] as [string, Answer, string, string][])('reports %s with the right code', async (_, answer, code, message) => {
    const error = await failure(context(), answer);
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(message)]);
    expect(error.message).not.toContain('\n');
  });

  it('reports an unreachable Google as retryable', async () => {
    const google = await FakeGoogle.start();
    await google[Symbol.asyncDispose]();
    const error = await accessToken(context(), google.endpoints).catch((reason: unknown) => reason);
    expect(isRetryable([(error as CoppiceError).code])).toBe(true);
  });
});

describe('a kubeconfig for GKE', () => {
  it('works without gcloud until its token expires', async () => {
    await using google = await FakeGoogle.start();
    const outputs = { name: 'one', endpoint: 'https://203.0.113.7', certificateAuthority: 'PEM', version: '1.36.3' };
    const { kubeconfig, expiresAt } = await gkeKubeconfig(context(), google.endpoints, outputs);
    expect(expiresAt).toBe('2026-11-21T12:59:59.000Z');
    expect(load(kubeconfig)).toMatchObject({
      clusters: [{ cluster: { server: 'https://203.0.113.7', 'certificate-authority-data': 'UEVN' } }],
      users: [{ user: { token: 'ya29.token' } }],
    });
  });
});

describe('the credentials of the Google plugin', () => {
  it("are the key with Google's endpoints only, whatever the account file names", () => {
    const sly = withKey({ token_uri: 'https://evil.example/token', universe_domain: 'evil.example' });
    const { GOOGLE_CREDENTIALS, ...others } = pluginCredentials(credentialsOf(sly.account, profile));
    expect(others).toEqual({});
    expect(JSON.parse(GOOGLE_CREDENTIALS!)).toEqual({
      type: 'service_account',
      project_id: 'demo-project',
      private_key_id: 'k1',
      private_key: pem,
      client_email: 'coppice@demo-project.iam.gserviceaccount.com',
      token_uri: 'https://oauth2.googleapis.com/token',
    });
  });

  it("are a token for the machine's own identity", () => {
    const credentials = credentialsOf(ofMachine().account, lending);
    expect(pluginCredentials(credentials, 'ya29.machine')).toEqual({ GOOGLE_OAUTH_ACCESS_TOKEN: 'ya29.machine' });
  });
});
