import { describe, expect, it } from 'vitest';
import { checkAccount } from '../../../../providers/aws/account.ts';
import { credentialsOf, pluginEnvironment, pluginSettings } from '../../../../providers/aws/credentials.ts';
import { missingForControlPlane } from '../../../../providers/aws/permissions.ts';
import { openSession } from '../../../../providers/aws/session.ts';
import { type Answer, type Asked, FakeAws, identity, refusal, SESSION, secret, xml } from './fake-aws.ts';
import { owner } from './fixtures.ts';

const USER = 'arn:aws:iam::123456789012:user/coppice';

/** IAM's simulation of a policy that denies these. */
const simulation =
  (...denied: string[]) =>
  ({ input }: Asked): Answer => {
    const actions = Object.entries(input).filter(([name]) => name.startsWith('ActionNames.'));
    const members = actions.map(
      ([
        ,
        action,
      ]) => `<member><MatchedStatements><member><SourcePolicyId>p</SourcePolicyId></member></MatchedStatements>
        <EvalResourceName>${input['ResourceArns.member.1']}</EvalResourceName>
        <EvalDecision>${denied.includes(action) ? 'implicitDeny' : 'allowed'}</EvalDecision>
        <EvalActionName>${action}</EvalActionName></member>`,
    );
    const results = `<EvaluationResults>${members.join('')}</EvaluationResults><IsTruncated>false</IsTruncated>`;
    return xml('SimulatePrincipalPolicy', `<SimulatePrincipalPolicyResult>${results}</SimulatePrincipalPolicyResult>`);
  };

const cloud = (arn: string, simulate: (asked: Asked) => Answer) =>
  FakeAws.start((asked) => (asked.action === 'GetCallerIdentity' ? identity(arn) : simulate(asked)));

describe('checkAccount at AWS', () => {
  it('returns the account ID and the permissions that its credentials lack', async () => {
    await using fake = await cloud(USER, simulation('eks:CreateCluster', 'ec2:CreateVpc'));
    expect(await checkAccount(fake.connection(), owner)).toEqual({
      id: '123456789012',
      missing: ['ec2:CreateVpc', 'eks:CreateCluster'],
    });
  });

  it('also checks network and role permissions for control planes on machines', async () => {
    const lacking = ['ec2:CreateVpc', 'elasticloadbalancing:SetSubnets', 'iam:CreateRole'];
    await using fake = await cloud(USER, simulation(...lacking));
    expect(await missingForControlPlane(fake.connection(), USER, owner)).toEqual(lacking);
    expect(fake.asked.map(({ input }) => input['ResourceArns.member.1']).sort()).toEqual([
      '*',
      'arn:aws:iam::123456789012:role/shoot--shop--one-control-plane',
      'arn:aws:iam::123456789012:role/shoot--shop--one-machine',
    ]);
  });

  it('simulates permissions on the names that the programs use, as a policy may allow no others', async () => {
    await using fake = await cloud(USER, simulation());
    expect((await checkAccount(fake.connection(), owner)).missing).toEqual([]);
    const asked = fake.asked.filter(({ action }) => action === 'SimulatePrincipalPolicy');
    expect(asked.map(({ input }) => input['ResourceArns.member.1']).sort()).toEqual([
      '*',
      'arn:aws:eks:eu-central-1:123456789012:access-entry/shoot--shop--one/*',
      'arn:aws:eks:eu-central-1:123456789012:addon/shoot--shop--one/*',
      'arn:aws:eks:eu-central-1:123456789012:cluster/shoot--shop--one',
      'arn:aws:eks:eu-central-1:123456789012:nodegroup/shoot--shop--one/*',
      'arn:aws:eks:eu-central-1:123456789012:podidentityassociation/shoot--shop--one/*',
      'arn:aws:iam::123456789012:role/shoot--shop--one-cluster',
    ]);
    for (const { region, input } of asked) {
      expect(region).toBe('us-east-1');
      expect(input).toMatchObject({
        PolicySourceArn: USER,
        'ContextEntries.member.1.ContextKeyName': 'aws:RequestedRegion',
        'ContextEntries.member.1.ContextKeyValues.member.1': 'eu-central-1',
      });
    }
  });

  it('simulates permissions of the role for credentials of a session', async () => {
    await using fake = await cloud('arn:aws:sts::123456789012:assumed-role/coppice/one', simulation('kms:CreateKey'));
    expect((await checkAccount(fake.connection(), owner)).missing).toEqual(['kms:CreateKey']);
    expect(fake.asked.at(-1)!.input.PolicySourceArn).toBe('arn:aws:iam::123456789012:role/coppice');
  });

  it.each<[string, string, Answer]>([
    ['may not ask', USER, refusal(403, 'AccessDenied')],
    ['have a role in a path', 'arn:aws:sts::123456789012:assumed-role/deep/one', refusal(404, 'NoSuchEntity')],
    ['are root', 'arn:aws:iam::123456789012:root', refusal(400, 'InvalidInput')],
  ])('reports no missing permission where the credentials %s', async (_what, arn, answer) => {
    await using fake = await cloud(arn, () => answer);
    expect(await checkAccount(fake.connection(), owner)).toEqual({ id: '123456789012', missing: [] });
  });
});

describe('checkAccount with unusable credentials', () => {
  it.each<[string, Answer, string, string]>([
    [
      'unknown',
      refusal(403, 'InvalidClientTokenId', 'The security token is invalid.'),
      'ERR_INFRA_UNAUTHENTICATED',
      'AWS refuses sts:GetCallerIdentity: InvalidClientTokenId: The security token is invalid.',
    ],
    ['expired', refusal(400, 'ExpiredToken'), 'ERR_INFRA_UNAUTHENTICATED', 'ExpiredToken'],
    ['throttled', refusal(400, 'Throttling', 'Rate exceeded'), 'ERR_INFRA_RATE_LIMITS_EXCEEDED', 'Rate exceeded'],
    ['blocked by an organization', refusal(403, 'AccessDenied'), 'ERR_INFRA_UNAUTHORIZED', 'AccessDenied'],
    ['not judged', { status: 503, body: 'upstream' }, 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 'HTTP 503'],
    [
      'answered by a proxy',
      { body: '<html><body>log in</body></html>' },
      'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      'is not AWS',
    ],
  ])('reports the error: %s', async (_what, answer, code, message) => {
    await using fake = await FakeAws.start(() => answer);
    const error = await checkAccount(fake.connection(), owner).catch((thrown) => thrown);
    expect(error).toMatchObject({ code });
    expect(error.message).toContain(message);
  });

  it('reports another secret key as unauthenticated', async () => {
    await using fake = await cloud(USER, simulation());
    const wrong = { ...secret, secretAccessKey: 'another' };
    await expect(checkAccount(fake.connection(wrong), owner)).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHENTICATED',
    });
  });

  it('reports a broken network as a retryable error, not as wrong credentials', async () => {
    const fake = await cloud(USER, simulation());
    await fake[Symbol.asyncDispose]();
    await expect(checkAccount(fake.connection(), owner)).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: expect.stringMatching(
        /^AWS cannot be reached for sts:GetCallerIdentity at 127\.0\.0\.1:\d+: ECONNREFUSED$/,
      ),
    });
  });

  it.each<[string, Record<string, string>, string]>([
    ['nothing', {}, 'the AWS credentials lack accessKeyID and secretAccessKey'],
    ['no secret', { accessKeyID: secret.accessKeyID }, 'the AWS credentials lack secretAccessKey'],
    [
      'two lines',
      { ...secret, accessKeyID: 'AKIAEXAMPLEEXAMPLE00\nhost: x' },
      'accessKeyID of the AWS credentials is no access key id',
    ],
    ['no role', { ...secret, roleARN: 'coppice' }, 'roleARN of the AWS credentials is no ARN of a role'],
    ['a token for no role', { token: 'x' }, 'the AWS credentials lack accessKeyID and secretAccessKey'],
  ])('does not call AWS: %s', (_what, credentials, message) => {
    expect(() => credentialsOf({ id: 'a', credentials })).toThrow(
      expect.objectContaining({ code: 'ERR_INFRA_UNAUTHENTICATED', message }),
    );
  });
});

describe('openSession', () => {
  const role = 'arn:aws:iam::123456789012:role/coppice';
  const credentials = `<Credentials><AccessKeyId>${SESSION.accessKeyID}</AccessKeyId>
    <SecretAccessKey>session secret</SecretAccessKey><SessionToken>session token</SessionToken></Credentials>`;
  const sts = () => FakeAws.start(({ action }) => xml(action, `<${action}Result>${credentials}</${action}Result>`));
  const open = (fake: FakeAws, given: Record<string, string>) => {
    const { key: _, ...aws } = fake.connection();
    return openSession(credentialsOf({ id: 'a', credentials: given }), aws);
  };

  it('returns the key itself without a role', async () => {
    await using fake = await sts();
    const given = { accessKeyID: `${secret.accessKeyID}\n`, secretAccessKey: `${secret.secretAccessKey}\n` };
    expect(await open(fake, given)).toEqual(secret);
    expect(fake.asked).toEqual([]);
  });

  it('assumes a role with the key', async () => {
    await using fake = await sts();
    expect(await open(fake, { ...secret, roleARN: role })).toEqual(SESSION);
    expect(fake.asked).toMatchObject([
      { action: 'AssumeRole', accessKeyID: secret.accessKeyID, input: { RoleArn: role, RoleSessionName: 'coppice' } },
    ]);
  });

  it('assumes a role with a web identity token, without any key', async () => {
    await using fake = await sts();
    expect(await open(fake, { roleARN: role, token: 'jwt' })).toEqual(SESSION);
    expect(fake.asked).toMatchObject([
      { action: 'AssumeRoleWithWebIdentity', accessKeyID: undefined, input: { WebIdentityToken: 'jwt' } },
    ]);
  });

  it('reports why AWS refuses the role', async () => {
    await using fake = await FakeAws.start(() =>
      refusal(403, 'AccessDenied', 'not authorized to perform: sts:AssumeRole'),
    );
    await expect(open(fake, { ...secret, roleARN: role })).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHORIZED',
      message: 'AWS refuses sts:AssumeRole: AccessDenied: not authorized to perform: sts:AssumeRole',
    });
  });
});

it("pluginEnvironment passes the session's key, and disables all other sources of credentials", () => {
  expect(pluginEnvironment(SESSION)).toEqual({
    AWS_ACCESS_KEY_ID: SESSION.accessKeyID,
    AWS_SECRET_ACCESS_KEY: 'session secret',
    AWS_SESSION_TOKEN: 'session token',
  });
  expect(pluginEnvironment(secret)).not.toHaveProperty('AWS_SESSION_TOKEN');
  expect(pluginSettings('eu-central-1')).toMatchObject({
    AWS_REGION: 'eu-central-1',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  });
});
