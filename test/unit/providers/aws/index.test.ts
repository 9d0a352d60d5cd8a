import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { awsClusters } from '../../../../providers/aws/index.ts';
import type { StackRequest } from '../../../../providers/pulumi/request.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { context, FakeAws, identity, SESSION, secret, xml } from './fake-aws.ts';
import { clusterInputs, owner } from './fixtures.ts';

const { owner: _, network, ...cluster } = clusterInputs();
const made = { name: 'one', endpoint: 'https://one.eks.example', certificateAuthority: 'CA\n', version: '1.36' };

/** Keeps what it is asked; every stack is as the programs would leave it, or was never made. */
function recording(isMade = true) {
  const requests: [operation: string, request: StackRequest][] = [];
  const outputs = ({ stack }: StackRequest) => ({ ...(stack.layer === 'network' ? network : made) });
  const kept =
    <T>(operation: string, answer: (request: StackRequest) => T) =>
    async (request: StackRequest): Promise<T> => {
      requests.push([operation, request]);
      return answer(request);
    };
  const runner: StackRunner = {
    preview: kept('preview', ({ stack }) => [{ operation: 'create', resource: stack.layer }]),
    apply: kept('apply', (request) => ({ outputs: outputs(request), changes: [] })),
    drift: kept('drift', ({ stack }) => [{ operation: 'update', resource: stack.layer }]),
    destroy: kept('destroy', () => {}),
    outputs: async (request) => (isMade ? outputs(request) : undefined),
  };
  return { runner, requests, order: () => requests.map(([operation, { stack }]) => `${operation} ${stack.layer}`) };
}

const nobody = () => FakeAws.start(() => undefined);

describe('the EKS provider', () => {
  it('applies a network and then a cluster by its own programs', async () => {
    await using fake = await nobody();
    const { runner, requests, order } = recording();
    expect(await awsClusters(runner, fake.endpoint).apply(context(fake), cluster)).toEqual(made);
    expect(order()).toEqual(['apply network', 'apply cluster']);
    const [, upper] = requests[1]!;
    expect(upper.program).toEqual({ provider: 'aws', layer: 'cluster' });
    expect(upper.inputs).toEqual({ ...cluster, owner, network });
    // Namespaces take turns by it.
    expect(requests.map(([, { tenant }]) => tenant)).toEqual([owner.namespace, owner.namespace]);
  });

  it('destroys cluster and network in the opposite order, even if incomplete', async () => {
    await using fake = await nobody();
    for (const isMade of [true, false]) {
      const { runner, order } = recording(isMade);
      await awsClusters(runner, fake.endpoint).destroy(context(fake), cluster);
      expect(order()).toEqual(['destroy cluster', 'destroy network']);
    }
  });

  it('previews a cluster before its network exists', async () => {
    await using fake = await nobody();
    const { runner, requests } = recording(false);
    const changes = await awsClusters(runner, fake.endpoint).preview(context(fake), cluster);
    expect(changes.map(({ resource }) => resource)).toEqual(['network', 'cluster']);
    const { network: unmade } = requests[1]![1].inputs as { network: typeof network };
    expect(unmade.network).toMatch(/^vpc-[0-9a-f]{17}$/);
    expect(unmade.subnets.map(({ zone }) => zone)).toEqual(cluster.zones);
    expect(new Set(unmade.subnets.map(({ id }) => id)).size).toBe(3);
  });

  it('reports no drift of a cluster that was never created', async () => {
    await using fake = await nobody();
    const { runner } = recording(false);
    expect(await awsClusters(runner, fake.endpoint).drift(context(fake), cluster)).toEqual([]);
    expect(await awsClusters(recording().runner, fake.endpoint).drift(context(fake), cluster)).toHaveLength(2);
  });

  it('passes the plugin the key and the region, and no other credentials', async () => {
    await using fake = await nobody();
    const { runner, requests } = recording();
    await awsClusters(runner, fake.endpoint).apply(context(fake), cluster);
    expect(requests[0]![1].credentials).toEqual({
      AWS_ACCESS_KEY_ID: secret.accessKeyID,
      AWS_SECRET_ACCESS_KEY: secret.secretAccessKey,
    });
    expect(requests[0]![1].settings).toMatchObject({ AWS_REGION: 'eu-central-1' });
    expect(JSON.stringify(requests[0]![1].inputs)).not.toContain('hush');
  });

  it('starts nothing with unusable credentials', async () => {
    await using fake = await nobody();
    const { runner, requests } = recording();
    await expect(awsClusters(runner, fake.endpoint).apply(context(fake, {}), cluster)).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHENTICATED',
    });
    expect(requests).toEqual([]);
  });

  it('classifies errors of AWS by their codes, and finds existing resources', async () => {
    await using fake = await FakeAws.start(({ action }) =>
      xml(action, '<vpcSet><item><vpcId>vpc-7</vpcId></item></vpcSet>'),
    );
    const { runner, requests } = recording();
    await awsClusters(runner, fake.endpoint).apply(context(fake), cluster);
    const [, { findExisting, classify, signal }] = requests[0]!;
    expect(classify!({ text: 'api error VpcLimitExceeded: no more' })).toBe('ERR_INFRA_QUOTA_EXCEEDED');
    const wanted = { urn: 'urn', type: 'aws:ec2/vpc:Vpc', name: 'vpc', inputs: {} };
    expect(await findExisting(wanted, signal)).toEqual({ id: 'vpc-7' });
  });

  it('issues kubeconfigs with a token of the configured role', async () => {
    await using fake = await FakeAws.start(({ action }) =>
      xml(
        action,
        `<AssumeRoleResult><Credentials><AccessKeyId>${SESSION.accessKeyID}</AccessKeyId><SecretAccessKey>session secret</SecretAccessKey>
         <SessionToken>session token</SessionToken></Credentials></AssumeRoleResult>`,
      ),
    );
    const ctx = context(fake, { ...secret, roleARN: 'arn:aws:iam::123456789012:role/coppice' });
    const { kubeconfig, expiresAt } = await awsClusters(recording().runner, fake.endpoint).kubeconfig(ctx, made);
    expect(expiresAt).toBe('2026-11-21T10:14:00.000Z');
    const { users } = load(kubeconfig) as { users: { user: { token: string } }[] };
    const url = Buffer.from(users[0]!.user.token.slice('k8s-aws-v1.'.length), 'base64url').toString();
    expect(url).toContain(SESSION.accessKeyID);
    expect(new URL(url).searchParams.get('X-Amz-Security-Token')).toBe('session token');
  });

  it("asks AWS for the account and the owner's resources in it", async () => {
    await using fake = await FakeAws.start(({ action }) =>
      action === 'GetResources'
        ? { body: { ResourceTagMappingList: [] } }
        : action === 'GetCallerIdentity'
          ? identity('arn:aws:iam::123456789012:root')
          : undefined,
    );
    const managed = awsClusters(recording().runner, fake.endpoint);
    expect(await managed.checkAccount(context(fake))).toEqual({ id: '123456789012', missing: [] });
    expect(await managed.tagged!(context(fake))).toEqual([]);
  });
});
