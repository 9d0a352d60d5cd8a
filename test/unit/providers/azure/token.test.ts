import { describe, expect, it } from 'vitest';
import { credentialsOf, pluginCredentials, pluginSettings } from '../../../../providers/azure/credentials.ts';
import { AKS_SCOPE, entraToken } from '../../../../providers/azure/token.ts';
import { type Answer, context, FakeAzure, secret, TOKEN } from './fake-azure.ts';
import { client, subscription, tenant } from './fixtures.ts';

const { clientSecret: _, ...nobody } = secret;
const federated = { ...nobody, token: 'assertion' };
const account = (credentials: Record<string, string>) => ({ id: 'azure', credentials });

describe('entraToken', () => {
  it('returns a token with its expiry for the client secret', async () => {
    await using azure = await FakeAzure.start(() => undefined);
    const token = await entraToken(context(), azure.endpoints, AKS_SCOPE);
    expect(token).toEqual({ token: TOKEN, expiresAt: '2026-11-20T10:59:59.000Z' });
    expect(azure.asked).toHaveLength(1);
    expect(azure.asked[0]).toMatchObject({ method: 'POST', path: `/login/${tenant}/oauth2/v2.0/token` });
    expect(Object.fromEntries(new URLSearchParams(azure.asked[0]!.body))).toEqual({
      grant_type: 'client_credentials',
      scope: '6dae42f8-4368-4678-94ff-3960e28e3630/.default',
      client_id: client,
      client_secret: 'hush',
    });
  });

  it('uses the token of a trusted identity', async () => {
    await using azure = await FakeAzure.start(() => undefined);
    await entraToken(context(federated), azure.endpoints, 'scope');
    expect(Object.fromEntries(new URLSearchParams(azure.asked[0]!.body))).toEqual({
      grant_type: 'client_credentials',
      scope: 'scope',
      client_id: client,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: 'assertion',
    });
  });

  const refusals: [what: string, answer: Answer, code: string, message: string][] = [
    [
      'a wrong secret',
      {
        status: 401,
        body: {
          error: 'invalid_client',
          error_description: 'AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 0a\r\nCorrelation ID: 0b',
        },
      },
      'ERR_INFRA_UNAUTHENTICATED',
      `Entra ID gives no token to client ${client}: AADSTS7000215: Invalid client secret provided`,
    ],
    [
      'an expired secret',
      {
        status: 401,
        body: { error: 'invalid_client', error_description: 'AADSTS7000222: The secret keys are expired.' },
      },
      'ERR_INFRA_UNAUTHENTICATED',
      'AADSTS7000222: The secret keys are expired',
    ],
    [
      'an application that is not there',
      {
        status: 400,
        body: { error: 'unauthorized_client', error_description: 'AADSTS700016: Application not found.' },
      },
      'ERR_INFRA_UNAUTHENTICATED',
      'AADSTS700016',
    ],
    [
      'a directory that is not there',
      { status: 400, body: { error: 'invalid_request', error_description: 'AADSTS90002: Tenant not found.' } },
      'ERR_INFRA_UNAUTHENTICATED',
      'AADSTS90002',
    ],
    ['too many requests', { status: 429, body: '' }, 'ERR_INFRA_RATE_LIMITS_EXCEEDED', 'HTTP 429'],
    ['an outage', { status: 503, body: 'upstream down' }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'HTTP 503'],
    ['something else than JSON', { body: '<html>' }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'no JSON'],
    ['no token', { body: {} }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'without a token'],
  ];

  it.each(refusals)('reports %s with a code in one line', async (_what, answer, code, message) => {
    await using azure = await FakeAzure.start(
      () => undefined,
      () => answer,
    );
    const error = await entraToken(context(), azure.endpoints, 'scope').catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
    expect((error as Error).message).not.toMatch(/\n|hush|Trace ID/);
  });

  it('rejects when Entra ID is unreachable', async () => {
    await using azure = await FakeAzure.start(() => undefined);
    const endpoints = { ...azure.endpoints, login: 'http://127.0.0.1:1' };
    await expect(entraToken(context(), endpoints, 'scope')).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: expect.stringContaining('127.0.0.1:1 cannot be reached'),
    });
  });

  it('rejects when its caller aborts', async () => {
    await using azure = await FakeAzure.start(() => undefined);
    const ctx = { ...context(), signal: AbortSignal.abort(new Error('given up')) };
    await expect(entraToken(ctx, azure.endpoints, 'scope')).rejects.toThrow('given up');
  });
});

describe('Azure credentials', () => {
  it('are read in the form of Gardener, without surrounding white space', () => {
    expect(credentialsOf(account({ ...secret, clientSecret: 'hush\n' }))).toEqual({
      clientID: client,
      tenantID: tenant,
      subscriptionID: subscription,
      proof: { secret: 'hush' },
    });
  });

  const unusable: [what: string, credentials: Record<string, string>, message: string][] = [
    ['no secret', nobody, 'lack clientSecret'],
    ['an empty secret', { ...secret, clientSecret: ' ' }, 'lack clientSecret'],
    ['nothing', {}, 'lack clientID, tenantID, subscriptionID, clientSecret'],
    [
      'a name for an id',
      { ...secret, subscriptionID: 'production' },
      'subscriptionID of the Azure credentials is no UUID',
    ],
    ['a path for a tenant', { ...secret, tenantID: '../evil' }, 'tenantID of the Azure credentials is neither'],
  ];

  it.each(unusable)('with %s are refused before any call to Azure', (_what, credentials, message) => {
    expect(() => credentialsOf(account(credentials))).toThrow(
      expect.objectContaining({ code: 'ERR_INFRA_UNAUTHENTICATED', message: expect.stringContaining(message) }),
    );
  });

  it('reach the plugin by its environment, secrets apart from other settings', () => {
    const ids = { ARM_CLIENT_ID: client, ARM_TENANT_ID: tenant, ARM_SUBSCRIPTION_ID: subscription };
    const bySecret = credentialsOf(account(secret));
    expect(pluginCredentials(bySecret)).toEqual({ ARM_CLIENT_SECRET: 'hush' });
    expect(pluginSettings(bySecret)).toEqual(ids);
    const byToken = credentialsOf(account(federated));
    expect(pluginCredentials(byToken)).toEqual({ ARM_OIDC_TOKEN: 'assertion' });
    expect(pluginSettings(byToken)).toEqual({ ...ids, ARM_USE_OIDC: 'true' });
  });
});
