import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialsUse } from '../../../operator/accounts/credentials.ts';
import { identityCredentials, namingIdentity } from '../../../operator/accounts/identity.ts';
import { IdentityTokens, identityAccount, subjectOf } from '../../../operator/accounts/identity-tokens.ts';
import { type CredentialsSource, obtainCredentials } from '../../../operator/accounts/obtain-credentials.ts';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { identityAccountName } from '../../../operator/api/names.ts';
import { gardenRules } from '../../../operator/api/roles.ts';
import { audiencesOf, type WorkloadIdentity, workloadIdentitySpec } from '../../../operator/api/workloadidentity.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { credentialsOf as awsCredentials } from '../../../providers/aws/credentials.ts';
import { credentialsOf as azureCredentials } from '../../../providers/azure/credentials.ts';
import { credentialsOf as gcpCredentials } from '../../../providers/gcp/credentials.ts';
import { profile } from '../providers/gcp/fixtures.ts';
import { jwt } from '../providers/jwt.ts';

const ROLE = 'arn:aws:iam::123456789012:role/coppice';
const POOL = 'projects/123456789012/locations/global/workloadIdentityPools/coppice/providers/garden';
const ID = '6f9d1b9e-0c1a-4f7e-9d55-0a4f6f7b2c11';
const CONFIGS = {
  aws: { roleARN: ROLE, region: 'eu-central-1' },
  gcp: {
    projectID: 'demo-project',
    workloadIdentityProvider: POOL,
    serviceAccountEmail: 'coppice@demo-project.iam.gserviceaccount.com',
  },
  azure: { tenantID: ID, clientID: ID, subscriptionID: ID },
};
const identity = (type: keyof typeof CONFIGS = 'aws', spec: object = {}, uid = 'u1'): WorkloadIdentity => ({
  apiVersion: API_VERSION,
  kind: 'WorkloadIdentity',
  metadata: { name: 'me', namespace: 'shop', uid },
  spec: workloadIdentitySpec.parse({ targetSystem: { type, providerConfig: CONFIGS[type] }, ...spec }),
});
const TOKEN = { token: 'first', issuer: 'i', subject: 's', audiences: ['a'] };
const USE: CredentialsUse = { namespace: 'shop', identity: 'me', type: 'aws', binding: 'b' };

describe('audiences', () => {
  it.each([
    ['aws', 'sts.amazonaws.com'],
    ['gcp', `//iam.googleapis.com/${POOL}`],
    ['azure', 'api://AzureADTokenExchange'],
  ] as const)('are those that %s expects where nobody says otherwise', (type, audience) => {
    expect(audiencesOf(identity(type).spec)).toEqual([audience]);
    expect(audiencesOf(identity(type, { audiences: ['own'] }).spec)).toEqual(['own']);
  });
});

it("are combined with subjects short enough for Google's 127 bytes, for any names", () => {
  const long = { ...identity(), metadata: { name: 'n'.repeat(63), namespace: 's'.repeat(63) } };
  expect(subjectOf(long)).toHaveLength(127);
  expect(subjectOf(identity())).toBe('system:serviceaccount:shop:wi-me');
  expect(identityAccountName('n'.repeat(62))).not.toBe(identityAccountName('n'.repeat(63)));
});

describe('the credentials of an identity', () => {
  it("have the provider's keys for workload identity", () => {
    const of = (type: keyof typeof CONFIGS) => ({
      id: 'a',
      credentials: identityCredentials(identity(type), TOKEN, USE).values,
    });
    expect(awsCredentials(of('aws'))).toEqual({ role: ROLE, token: 'first', stsRegion: 'eu-central-1' });
    expect(gcpCredentials(of('gcp'), profile)).toEqual({
      project: 'demo-project',
      proof: { provider: POOL, email: CONFIGS.gcp.serviceAccountEmail, token: 'first' },
    });
    expect(azureCredentials(of('azure'))).toMatchObject({ clientID: ID, proof: { assertion: 'first' } });
  });

  it('are equal for any token, and differ for another identity: renewal affects no cluster', () => {
    const version = (one: WorkloadIdentity, token = 'first') =>
      identityCredentials(one, { ...TOKEN, token }, USE).version;
    const first = version(identity());
    expect(version(identity(), 'second')).toBe(first);
    expect(version(identity('aws', {}, 'u2'))).not.toBe(first);
    expect(version(identity('aws', { audiences: ['own'] }))).not.toBe(first);
    const other = { type: 'aws', providerConfig: { roleARN: `${ROLE}2` } };
    expect(version(identity('aws', { targetSystem: other }))).not.toBe(first);
  });

  const source = (found: WorkloadIdentity | undefined): CredentialsSource => ({
    secret: async () => undefined,
    identity: async () => found,
    tokens: { token: async () => TOKEN },
  });

  it.each<[string, WorkloadIdentity | undefined, string]>([
    ['that is not there', undefined, 'there is no WorkloadIdentity shop/me'],
    ['that is for another cloud than its binding', identity('gcp'), 'WorkloadIdentity shop/me is for gcp, not aws'],
  ])('are not to be had of one %s', async (_what, found, words) => {
    await expect(obtainCredentials(source(found), USE)).rejects.toThrow(words);
  });

  it('name the identity when a cloud refuses them, and leave errors of Secrets unchanged', () => {
    const error = new CoppiceError('ERR_INFRA_UNAUTHENTICATED', 'AWS refuses', { advice: 'Trust it.' });
    expect(namingIdentity(error, USE)).toMatchObject({
      code: 'ERR_INFRA_UNAUTHENTICATED',
      message: 'the cloud does not know WorkloadIdentity shop/me: AWS refuses',
      advice: 'Trust it.',
    });
    expect(namingIdentity(error, { namespace: 'shop', secret: 'keys' })).toBe(error);
    const other = new CoppiceError('ERR_INFRA_RATE_LIMITS_EXCEEDED', 'slow down');
    expect(namingIdentity(other, USE)).toBe(other);
  });
});

/** The garden as far as tokens are concerned. */
class FakeGarden {
  account: KubeObject | undefined;
  /** `GET`, `APPLY`, `POST audiences`. */
  readonly asked: string[] = [];
  lifeSeconds = 3600;
  broken: Error | undefined;
  readonly #now: () => Date;

  constructor(now: () => Date) {
    this.#now = now;
  }

  async getOrUndefined(): Promise<any> {
    this.asked.push('GET');
    return this.account;
  }

  async apply(object: any): Promise<any> {
    this.asked.push('APPLY');
    this.account = structuredClone(object);
    return this.account;
  }

  async request(method: string, path: string, { body }: any = {}): Promise<any> {
    if (this.broken) throw this.broken;
    this.asked.push(`${method} ${body.spec.audiences} ${body.spec.expirationSeconds}`);
    expect(path).toBe('/api/v1/namespaces/shop/serviceaccounts/wi-me/token');
    const exp = Math.floor(+this.#now() / 1000) + this.lifeSeconds;
    const claims = { iss: 'https://garden', sub: 'system:serviceaccount:shop:wi-me', aud: body.spec.audiences, exp };
    return { status: { token: jwt(claims), expirationTimestamp: new Date(exp * 1000).toISOString() } };
  }
}

describe('the tokens of an identity', () => {
  let now: Date;
  let garden: FakeGarden;
  let tokens: IdentityTokens;
  const pass = (minutes: number) => {
    now = new Date(+now + minutes * 60_000);
  };
  const posts = () => garden.asked.filter((one) => one.startsWith('POST'));
  beforeEach(() => {
    now = new Date('2026-11-21T12:00:00Z');
    garden = new FakeGarden(() => now);
    tokens = new IdentityTokens(garden, () => now);
  });

  it('are of a ServiceAccount created for it, for an hour and its audiences', async () => {
    expect(await tokens.token(identity())).toMatchObject({
      issuer: 'https://garden',
      subject: 'system:serviceaccount:shop:wi-me',
      audiences: ['sts.amazonaws.com'],
    });
    expect(garden.asked).toEqual(['GET', 'APPLY', 'POST sts.amazonaws.com 3600']);
    expect(garden.account).toEqual(identityAccount(identity()));
  });

  it('are requested once, until half of their life is over', async () => {
    const first = await Promise.all([tokens.token(identity()), tokens.token(identity())]);
    expect(first[0]).toBe(first[1]);
    pass(29);
    expect(await tokens.token(identity())).toBe(first[0]);
    expect(posts()).toHaveLength(1);
    pass(2);
    expect((await tokens.token(identity())).token).not.toBe(first[0].token);
    expect(posts()).toHaveLength(2);
    // The account was there already: nothing is written.
    expect(garden.asked.filter((one) => one === 'APPLY')).toHaveLength(1);
  });

  it('follow the granted life, not the requested one', async () => {
    garden.lifeSeconds = 600;
    await tokens.token(identity());
    pass(6);
    await tokens.token(identity());
    expect(posts()).toHaveLength(2);
  });

  it('differ for other audiences, and for a recreated identity', async () => {
    await tokens.token(identity());
    await tokens.token(identity('aws', { audiences: ['own'] }));
    garden.account = undefined;
    await tokens.token(identity('aws', {}, 'u2'));
    expect(posts()).toHaveLength(3);
  });

  it('are used to their end when the namespace is being deleted and no new one is granted', async () => {
    const first = await tokens.token(identity());
    const causes = [{ reason: 'NamespaceTerminating' }];
    garden.broken = new KubeApiError('POST', 403, { reason: 'Forbidden', details: { causes } });
    pass(31);
    expect(await tokens.token(identity())).toBe(first);
    pass(28);
    expect(await tokens.token(identity())).toBe(first);
    pass(2);
    await expect(tokens.token(identity())).rejects.toThrow(
      'namespace shop is being deleted, and no tokens are made there any more',
    );
  });

  it('are requested again a minute after a failed renewal', async () => {
    const first = await tokens.token(identity());
    garden.broken = new Error('down');
    pass(31);
    await tokens.token(identity());
    garden.broken = undefined;
    expect(await tokens.token(identity())).toBe(first);
    pass(1);
    expect(await tokens.token(identity())).not.toBe(first);
  });

  it('are requested again after a failure', async () => {
    garden.broken = new Error('down');
    await expect(tokens.token(identity())).rejects.toThrow('down');
    garden.broken = undefined;
    expect(await tokens.token(identity())).toMatchObject({ issuer: 'https://garden' });
  });

  it.each<[string, KubeObject, string]>([
    [
      'of somebody else',
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'wi-me', namespace: 'shop' } },
      'ERR_CONFIGURATION_PROBLEM',
    ],
    [
      'of an earlier identity of the name',
      identityAccount(identity('aws', {}, 'u0')),
      'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
    ],
  ])('are never those of a ServiceAccount %s', async (_what, account, code) => {
    garden.account = account;
    await expect(tokens.token(identity())).rejects.toMatchObject({ code });
    expect(garden.asked).toEqual(['GET']);
  });

  it('are requested once the account is correct: foreign changes are reverted', async () => {
    garden.account = { ...identityAccount(identity()), automountServiceAccountToken: true };
    await tokens.token(identity());
    expect(garden.account?.automountServiceAccountToken).toBe(false);
  });
});

it('permit the operator nothing with ServiceAccounts of the garden but creating them and their tokens', () => {
  const rules = gardenRules().filter(({ resources }) => resources.some((one) => one.startsWith('serviceaccounts')));
  expect(rules).toEqual([
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
  ]);
});
