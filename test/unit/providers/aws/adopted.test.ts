import { describe, expect, it } from 'vitest';
import { adoptProblems, clusterOfID, lookAtAdopted } from '../../../../providers/aws/adopted.ts';
import { adopted } from '../../../../providers/aws/programs/adopted.ts';
import type { CloudPool } from '../../../../providers/cloud.ts';
import { type Answer, FakeAws, identity, refusal, xml } from './fake-aws.ts';
import { answers, cloudPool, clusterInputs, graphOf, owner } from './fixtures.ts';

type AdoptedInputs = Parameters<typeof adopted>[0];

const ARN = 'arn:aws:eks:eu-central-1:123456789012:cluster/theirs';
const CLUSTER = 'aws:eks/cluster:Cluster';
const GROUP = 'aws:eks/nodeGroup:NodeGroup';
const adopt = { id: ARN, deletionPolicy: 'Release' as const };

describe('the ID of an EKS cluster to adopt', () => {
  it.each([
    [ARN, 'theirs', '123456789012', 'eu-central-1'],
    ['arn:aws-cn:eks:cn-north-1:123456789012:cluster/a_b-1', 'a_b-1', '123456789012', 'cn-north-1'],
    ['theirs', 'theirs', undefined, undefined],
  ])('%s is parsed', (id, name, account, region) => {
    expect(clusterOfID(id)).toEqual({ name, ...(account && { account, region }) });
  });

  it.each([
    ['theirs', 'eu-central-1', undefined],
    [ARN, 'eu-central-1', undefined],
    [ARN, 'us-east-1', 'set spec.region'],
    ['arn:aws:ec2:eu-central-1:123456789012:vpc/vpc-1', 'eu-central-1', 'neither the name nor the ARN'],
    ['a/b', 'eu-central-1', 'neither the name nor the ARN'],
  ])('%s in %s has problem: %s', (id, region, expected) => {
    const problems = adoptProblems({ ...adopt, id }, region);
    if (expected) expect(problems[0]?.message).toContain(expected);
    else expect(problems).toEqual([]);
  });
});

describe('lookAtAdopted at AWS', () => {
  const described = {
    name: 'theirs',
    status: 'ACTIVE',
    version: '1.35',
    roleArn: 'role',
    tags: { team: 'shop' },
    accessConfig: { authenticationMode: 'API' },
    resourcesVpcConfig: { vpcId: 'vpc-1', subnetIds: ['subnet-b', 'subnet-a'] },
  };
  const subnets =
    '<subnetSet><item><subnetId>subnet-a</subnetId><availabilityZone>eu-central-1a</availabilityZone></item>' +
    '<item><subnetId>subnet-b</subnetId><availabilityZone>eu-central-1b</availabilityZone></item></subnetSet>';
  const ENTRY = `/clusters/theirs/access-entries/${encodeURIComponent('arn:aws:iam::123456789012:role/teams/coppice')}`;

  async function look(cluster: object, entry?: Answer, id = ARN, account = '123456789012') {
    await using fake = await FakeAws.start(({ action }) => {
      if (action === '/clusters/theirs') return { body: { cluster } };
      if (action === 'DescribeSubnets') return xml(action, subnets);
      if (action === 'GetCallerIdentity') return identity('arn:aws:sts::123456789012:assumed-role/coppice/session');
      if (action === 'GetRole')
        return xml(
          action,
          '<GetRoleResult><Role><Arn>arn:aws:iam::123456789012:role/teams/coppice</Arn></Role></GetRoleResult>',
        );
      return action === ENTRY ? entry : undefined;
    });
    const wanted = { ...clusterInputs(), kubernetesVersion: '', adopt: { ...adopt, id } };
    return await lookAtAdopted(fake.connection(), owner, wanted, account);
  }

  it('returns the facts that the program has to preserve', async () => {
    expect(await look(described)).toEqual({
      isTaken: false,
      facts: {
        name: 'theirs',
        roleArn: 'role',
        version: '1.35',
        network: {
          network: 'vpc-1',
          subnets: [
            { id: 'subnet-a', zone: 'eu-central-1a' },
            { id: 'subnet-b', zone: 'eu-central-1b' },
          ],
        },
        tags: { team: 'shop' },
        letIn: true,
      },
    });
  });

  it.each<[string, object, Answer | undefined, boolean]>([
    ['nobody lets it in', described, undefined, true],
    ['others do', described, { body: { accessEntry: { tags: {} } } }, false],
    ['we do', described, { body: { accessEntry: { tags: { 'coppice-uid': owner.uid } } } }, true],
    ['EKS knows no entries', { ...described, accessConfig: { authenticationMode: 'CONFIG_MAP' } }, undefined, false],
  ])('manages the access entry depending on who created it: %s', async (_, cluster, entry, expected) => {
    expect((await look(cluster, entry)).facts.letIn).toBe(expected);
  });

  it('recognizes an adopted cluster by its tags', async () => {
    const tags = { team: 'shop', 'coppice-adopted-by': owner.uid };
    const { isTaken, facts } = await look({ ...described, tags });
    expect(isTaken).toBe(true);
    expect(facts.tags).toEqual({ team: 'shop' });
  });

  it.each<[string, object, string, string, string]>([
    ['is not there', described, 'other', '123456789012', 'has none of that name in eu-central-1'],
    ['is in another account', described, ARN, '999999999999', 'credentials are of account 999999999999'],
    ['is being deleted', { ...described, status: 'DELETING' }, ARN, '123456789012', 'it is DELETING'],
  ])('refuses a cluster that %s', async (_, cluster, id, account, expected) => {
    await expect(look(cluster, undefined, id, account)).rejects.toThrow(expected);
  });

  it('does not report a cluster as missing when AWS refuses the call', async () => {
    await using fake = await FakeAws.start(() => refusal(403, 'AccessDenied'));
    const wanted = { ...clusterInputs(), adopt };
    const looking = lookAtAdopted(fake.connection(), owner, wanted, '123456789012');
    await expect(looking).rejects.toMatchObject({ code: 'ERR_INFRA_UNAUTHORIZED' });
  });
});

describe('the AWS program of an adopted cluster', () => {
  const found: AdoptedInputs['found'] = {
    name: 'theirs',
    roleArn: 'their-role',
    version: '1.35',
    network: {
      network: 'vpc-1',
      subnets: [
        { id: 'subnet-a', zone: 'eu-central-1a' },
        { id: 'subnet-b', zone: 'eu-central-1b' },
      ],
    },
    tags: { team: 'shop' },
    letIn: true,
  };
  const made = (changes: Partial<AdoptedInputs> = {}) =>
    graphOf(
      adopted,
      { ...clusterInputs(), kubernetesVersion: '', pools: [], adopt, found, leaving: false, ...changes },
      answers,
    );
  const pool = (changes: Partial<CloudPool>) => made({ pools: [cloudPool(changes)] });

  it('declares the cluster as it is, and no network, key or add-on', async () => {
    const graph = await made();
    const { inputs, options } = graph.one(CLUSTER, 'adopted');
    expect(inputs).toMatchObject({ name: 'theirs', version: '1.35', roleArn: 'their-role' });
    expect(inputs.tags).toEqual({
      team: 'shop',
      'coppice-adopted-by': owner.uid,
      'coppice-adopted-as': 'shop/one',
      'coppice-adopted-until': 'Release',
    });
    expect(options.ignoreChanges).toEqual(expect.arrayContaining(['vpcConfig', 'encryptionConfig', 'accessConfig']));
    expect(options.ignoreChanges).not.toContain('version');
    expect(graph.resources.map(({ type }) => type).sort()).toEqual([
      'aws:eks/accessEntry:AccessEntry',
      'aws:eks/accessPolicyAssociation:AccessPolicyAssociation',
      CLUSTER,
    ]);
    expect(graph.outputs).toMatchObject({ name: 'theirs', endpoint: 'https://one.eks.example' });
  });

  it('changes only the requested fields of the cluster', async () => {
    const graph = await made({ kubernetesVersion: '1.36.3', authorizedNetworks: ['192.0.2.0/24'] });
    const { inputs, options } = graph.one(CLUSTER);
    expect(inputs).toMatchObject({ version: '1.36', vpcConfig: { publicAccessCidrs: ['192.0.2.0/24'] } });
    expect(options.ignoreChanges).toContain('vpcConfig.subnetIds');
    expect(options.ignoreChanges).not.toContain('vpcConfig');
  });

  it.each([
    ['Release', { leaving: true }, { team: 'shop' }, true],
    ['Delete', { adopt: { id: ARN, deletionPolicy: 'Delete' as const } }, undefined, false],
  ])('retains the cluster unless deletionPolicy is Delete: %s', async (_, changes, tags, retained) => {
    const { inputs, options } = (await made(changes)).one(CLUSTER);
    expect(options.retainOnDelete ?? false).toBe(retained);
    if (tags) expect(inputs.tags).toEqual(tags);
  });

  it("puts Coppice's node groups into the cluster's subnets, with the owner's tags", async () => {
    const graph = await pool({ zones: ['eu-central-1b', 'eu-central-1c'] });
    expect(graph.one(GROUP).inputs).toMatchObject({ subnetIds: ['subnet-b'], version: '1.35', clusterName: 'theirs' });
    expect(graph.one(GROUP).inputs.tags).toMatchObject({ 'coppice-uid': owner.uid });
    await expect(pool({ zones: ['eu-central-1c'] })).rejects.toThrow('the cluster has eu-central-1a, eu-central-1b');
  });
});
