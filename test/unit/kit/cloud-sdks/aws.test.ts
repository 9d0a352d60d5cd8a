import {
  AutoScalingClient,
  DescribeAutoScalingGroupsCommand,
  TerminateInstanceInAutoScalingGroupCommand,
} from '@aws-sdk/client-auto-scaling';
import {
  DescribeImagesCommand,
  DescribeInstancesCommand,
  DescribeRouteTablesCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import {
  DescribeClusterCommand,
  DescribeNodegroupCommand,
  EKSClient,
  ListNodegroupsCommand,
} from '@aws-sdk/client-eks';
import {
  GetRoleCommand,
  IAMClient,
  ListAttachedRolePoliciesCommand,
  paginateSimulatePrincipalPolicy,
} from '@aws-sdk/client-iam';
import {
  type Change,
  ChangeResourceRecordSetsCommand,
  ListResourceRecordSetsCommand,
  paginateListHostedZones,
  Route53Client,
} from '@aws-sdk/client-route-53';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  GetPublicAccessBlockCommand,
  ListObjectVersionsCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  AssumeRoleCommand,
  AssumeRoleWithWebIdentityCommand,
  GetCallerIdentityCommand,
  STSClient,
} from '@aws-sdk/client-sts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { awsProvider } from '../../../../providers/aws/index.ts';
import { missingForControlPlane } from '../../../../providers/aws/permissions.ts';
import type { BackupContext } from '../../../../providers/backup.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { type FakeCloud, fakeCloud, type WebEndpoints } from '../../../kit/cloud/index.ts';
import { awsOptions, identityToken, operationsOf, TRUSTED } from './clouds.ts';

/** AWS' own clients ask the fake AWS, so that it and the product cannot be wrong in the same way (decision 41). */
let cloud: FakeCloud;
let web: WebEndpoints['aws'];
beforeAll(async () => {
  cloud = await fakeCloud();
  web = (await cloud.web()).aws;
});
afterAll(() => cloud?.close());

const region = 'eu-central-1';
const options = (secret?: string, number = 1) => awsOptions(cloud, web, { secret, number });
const s3Options = (number = 1) => ({
  ...options(undefined, number),
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED' as const,
});
const role = () => `arn:aws:iam::${cloud.account('aws').id}:role/coppice`;

async function all<Page, T>(pages: AsyncIterable<Page>, itemsOf: (page: Page) => T[] | undefined) {
  const found = { pages: 0, items: [] as T[] };
  for await (const page of pages) {
    found.pages++;
    found.items.push(...(itemsOf(page) ?? []));
  }
  return found;
}

describe('the fake Route 53, with the AWS SDK,', () => {
  const changes = (zone: string, ...Changes: Change[]) =>
    new ChangeResourceRecordSetsCommand({ HostedZoneId: zone, ChangeBatch: { Changes } });
  const change = (Action: 'CREATE' | 'DELETE', Type: 'A' | 'CNAME', Value: string): Change => ({
    Action,
    ResourceRecordSet: { Name: 'api.example.com.', Type, TTL: 60, ResourceRecords: [{ Value }] },
  });

  it('lists zones in pages, creates a record, and refuses duplicates and conflicts', async () => {
    const zones = cloud.dns(cloud.account('aws'));
    const ids: string[] = [];
    for (const domain of ['example.com', 'example.org', 'example.net']) ids.push(await zones.makeZone(domain));
    const client = new Route53Client(options());
    const listed = await all(paginateListHostedZones({ client }, {}), ({ HostedZones }) => HostedZones);
    expect(listed.pages).toBe(2);
    expect(listed.items.map(({ Id }) => Id)).toEqual(ids.map((id) => `/hostedzone/${id}`));
    const [zone = ''] = ids;
    await client.send(changes(zone, change('CREATE', 'A', '192.0.2.1')));
    const { ResourceRecordSets } = await client.send(new ListResourceRecordSetsCommand({ HostedZoneId: zone }));
    expect(ResourceRecordSets).toMatchObject([
      { Name: 'api.example.com.', Type: 'A', TTL: 60, ResourceRecords: [{ Value: '192.0.2.1' }] },
    ]);
    // AWS' own client makes nothing of the answer that AWS documents: its error is called "Unknown" (decision 41).
    for (const refused of [change('CREATE', 'A', '192.0.2.1'), change('CREATE', 'CNAME', 'lb.example.org.')])
      await expect(client.send(changes(zone, refused))).rejects.toMatchObject({ $metadata: { httpStatusCode: 400 } });
    await client.send(changes(zone, change('DELETE', 'A', '192.0.2.1')));
    const absent = new ListResourceRecordSetsCommand({ HostedZoneId: 'Z0NONE' });
    await expect(client.send(absent)).rejects.toMatchObject({ name: 'NoSuchHostedZone' });
  });

  it('refuses another secret key, and throttles', async () => {
    const list = async (client: Route53Client) =>
      all(paginateListHostedZones({ client }, {}), ({ HostedZones }) => HostedZones);
    await expect(list(new Route53Client(options('a guess')))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 403 },
    });
    cloud.faults.set({ throttle: { perSecond: 0 } });
    await expect(list(new Route53Client(options()))).rejects.toMatchObject({ name: 'Throttling' });
    cloud.faults.clear();
  });
});

describe('the fake S3, with the AWS SDK,', () => {
  const create = (Bucket: string) =>
    new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: region } });

  it('stores objects of any name, lists them in pages, and names the owner of a bucket', async () => {
    const client = new S3Client(s3Options());
    const Bucket = 'somebodys-bucket';
    const keys = ['a b+c/ü&?.tar', "100%'s (1)*.tar", 'plain/key-1_2.tar'];
    await client.send(create(Bucket));
    await expect(client.send(create(Bucket))).rejects.toMatchObject({ name: 'BucketAlreadyOwnedByYou' });
    const other = new S3Client(s3Options(2));
    await expect(other.send(create(Bucket))).rejects.toMatchObject({ name: 'BucketAlreadyExists' });
    for (const Key of keys) await client.send(new PutObjectCommand({ Bucket, Key, Body: `of ${Key}` }));
    const list = (Prefix?: string) =>
      all(paginateListObjectsV2({ client }, { Bucket, Prefix }), ({ Contents }) => Contents?.map(({ Key }) => Key));
    expect(await list()).toEqual({ pages: 2, items: [...keys].sort() });
    expect((await list('a b+c')).items).toEqual([keys[0]]);
    for (const Key of keys) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      expect(await Body?.transformToString()).toBe(`of ${Key}`);
      await client.send(new DeleteObjectCommand({ Bucket, Key }));
      await expect(client.send(new GetObjectCommand({ Bucket, Key }))).rejects.toMatchObject({ name: 'NoSuchKey' });
    }
    await expect(client.send(new GetBucketTaggingCommand({ Bucket }))).rejects.toMatchObject({ name: 'NoSuchTagSet' });
    const absent = new GetBucketTaggingCommand({ Bucket: 'nobodys' });
    await expect(client.send(absent)).rejects.toMatchObject({ name: 'NoSuchBucket' });
  });

  const bucket = { name: 'coppice-backup-odd', seed: 'blue', seedUID: 'uid-1', garden: 'g' };
  const product = () => {
    const profile = { metadata: { name: 'aws' }, spec: { type: 'aws' } };
    const { signal } = new AbortController();
    const account = cloud.account('aws');
    const ctx = { bucket, region, account, profile, signal, now: () => new Date() } as unknown as BackupContext;
    return { buckets: awsProvider({} as StackRunner, web).backups!, ctx };
  };

  it("has the product's bucket private, encrypted and versioned", async () => {
    const { buckets, ctx } = product();
    await buckets.ensure(ctx);
    const client = new S3Client(s3Options());
    const Bucket = bucket.name;
    const { PublicAccessBlockConfiguration: access } = await client.send(new GetPublicAccessBlockCommand({ Bucket }));
    expect(access).toEqual({
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    });
    expect(await client.send(new GetBucketVersioningCommand({ Bucket }))).toMatchObject({ Status: 'Enabled' });
    const encrypted = await client.send(new GetBucketEncryptionCommand({ Bucket }));
    expect(encrypted.ServerSideEncryptionConfiguration?.Rules).toEqual([
      { ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } },
    ]);
    const { Rules } = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect(Rules).toMatchObject([
      { ID: 'coppice', Status: 'Enabled', Filter: { Prefix: '' }, NoncurrentVersionExpiration: { NoncurrentDays: 7 } },
    ]);
    const { Policy } = await client.send(new GetBucketPolicyCommand({ Bucket }));
    expect(JSON.parse(Policy!).Statement).toMatchObject([
      { Effect: 'Deny', Resource: [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/*`] },
    ]);
    const { TagSet } = await client.send(new GetBucketTaggingCommand({ Bucket }));
    expect(TagSet).toContainEqual({ Key: 'coppice-backup-seed-uid', Value: 'uid-1' });
  });

  it('lets the product list and delete objects that others stored under any name', async () => {
    const { buckets, ctx } = product();
    await buckets.ensure(ctx);
    const client = new S3Client(s3Options());
    const [Bucket, Key] = [bucket.name, "a b+c/100%'s (1)*&ü?.tar"];
    await client.send(new PutObjectCommand({ Bucket, Key, Body: 'theirs' }));
    await client.send(new PutObjectCommand({ Bucket, Key, Body: 'theirs!' }));
    const { Versions } = await client.send(new ListObjectVersionsCommand({ Bucket }));
    expect(Versions?.map((version) => version.Key)).toEqual([Key, Key]);
    expect(await buckets.list(ctx, 'a b+c')).toEqual([{ key: Key, size: 7 }]);
    await buckets.remove(ctx, { withContents: true });
    await expect(buckets.list(ctx, '')).rejects.toThrow('NoSuchBucket');
  });
});

describe('the fake STS, with the AWS SDK,', () => {
  it('identifies the caller, and lets the key and a trusted token assume a role', async () => {
    const account = cloud.account('aws');
    cloud.trust(account, TRUSTED);
    const client = new STSClient(options());
    expect(await client.send(new GetCallerIdentityCommand({}))).toMatchObject({
      Account: account.id,
      Arn: account.principal,
    });
    const session = { RoleArn: role(), RoleSessionName: 'coppice' };
    const { Credentials } = await client.send(new AssumeRoleCommand(session));
    expect(Credentials).toMatchObject({ AccessKeyId: expect.any(String), Expiration: expect.any(Date) });
    const by = (WebIdentityToken: string) =>
      client.send(new AssumeRoleWithWebIdentityCommand({ ...session, DurationSeconds: 3600, WebIdentityToken }));
    expect((await by(identityToken())).Credentials?.SessionToken).toBeDefined();
    await expect(by('no token')).rejects.toMatchObject({ name: 'InvalidIdentityTokenException' });
    await expect(by(identityToken('somebody'))).rejects.toMatchObject({ name: 'AccessDenied' });
    const wrong = new STSClient(options('a guess'));
    await expect(wrong.send(new GetCallerIdentityCommand({}))).rejects.toMatchObject({ name: 'InvalidClientTokenId' });
  });
});

describe('the fake IAM, with the AWS SDK,', () => {
  it('simulates permissions in pages, all of which the product reads', async () => {
    const { principal } = cloud.account('aws');
    const client = new IAMClient({ ...options(), region: 'us-east-1' });
    const ActionNames = Array.from({ length: 45 }, (_, index) => `ec2:Describe${index}`);
    cloud.faults.set({ denied: ['ec2:Describe44', 'iam:RemoveRoleFromInstanceProfile', 'ec2:AllocateAddress'] });
    const pages = paginateSimulatePrincipalPolicy({ client }, { PolicySourceArn: principal, ActionNames });
    const { items } = await all(pages, ({ EvaluationResults }) => EvaluationResults);
    expect(items.map(({ EvalActionName }) => EvalActionName)).toEqual(ActionNames);
    expect(items.filter(({ EvalDecision }) => EvalDecision !== 'allowed')).toMatchObject([
      { EvalActionName: 'ec2:Describe44' },
    ]);
    const { key: accessKeyID, secret: secretAccessKey } = cloud.account('aws');
    const { signal } = new AbortController();
    const connection = { region, key: { accessKeyID, secretAccessKey }, endpoint: web, now: () => new Date(), signal };
    const owner = { technicalID: 'shoot--shop--one', uid: 'uid-2' } as never;
    expect(await missingForControlPlane(connection, principal, owner)).toEqual([
      'ec2:AllocateAddress',
      'iam:RemoveRoleFromInstanceProfile',
    ]);
    cloud.faults.clear();
  });

  it('returns a role with its tags and policies', async () => {
    const make = operationsOf(cloud, 'aws');
    await make.create('aws:iam/role:Role', 'role', { name: 'nodes', assumeRolePolicy: '{}', tags: { a: 'b & c' } });
    const policyArn = 'arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy';
    await make.create('aws:iam/rolePolicyAttachment:RolePolicyAttachment', 'it', { role: 'nodes', policyArn });
    const client = new IAMClient({ ...options(), region: 'us-east-1' });
    const { Role } = await client.send(new GetRoleCommand({ RoleName: 'nodes' }));
    expect(Role).toMatchObject({ RoleName: 'nodes', Tags: [{ Key: 'a', Value: 'b & c' }] });
    const { AttachedPolicies } = await client.send(new ListAttachedRolePoliciesCommand({ RoleName: 'nodes' }));
    expect(AttachedPolicies?.map(({ PolicyArn }) => PolicyArn)).toEqual([policyArn]);
    const absent = new GetRoleCommand({ RoleName: 'nobody' });
    await expect(client.send(absent)).rejects.toMatchObject({ name: 'NoSuchEntityException' });
  });
});

describe('the fake EC2, EKS and Auto Scaling, with the AWS SDK,', () => {
  it('describe networks by their tags', async () => {
    const make = operationsOf(cloud, 'aws');
    const tags = { Name: 'seen' };
    const vpc = await make.create('aws:ec2/vpc:Vpc', 'vpc', { cidrBlock: '10.9.0.0/16', tags });
    const inVPC = { vpcId: vpc.id, tags };
    const subnet = await make.create('aws:ec2/subnet:Subnet', 'subnet', {
      ...inVPC,
      cidrBlock: '10.9.1.0/24',
      availabilityZone: `${region}a`,
    });
    const table = await make.create('aws:ec2/routeTable:RouteTable', 'table', inVPC);
    await make.create('aws:ec2/routeTableAssociation:RouteTableAssociation', 'it', {
      routeTableId: table.id,
      subnetId: subnet.id,
    });
    const client = new EC2Client(options());
    const Filters = [{ Name: 'tag:Name', Values: ['seen'] }];
    const { Vpcs } = await client.send(new DescribeVpcsCommand({ Filters }));
    expect(Vpcs).toMatchObject([{ VpcId: vpc.id, CidrBlock: '10.9.0.0/16', Tags: [{ Key: 'Name', Value: 'seen' }] }]);
    const { Subnets } = await client.send(new DescribeSubnetsCommand({ Filters }));
    expect(Subnets).toMatchObject([{ SubnetId: subnet.id, AvailabilityZone: `${region}a` }]);
    const bySubnet = [{ Name: 'association.subnet-id', Values: [subnet.id] }];
    const { RouteTables } = await client.send(new DescribeRouteTablesCommand({ Filters: bySubnet }));
    expect(RouteTables).toMatchObject([{ RouteTableId: table.id, Associations: [{ SubnetId: subnet.id }] }]);
    const none = [{ Name: 'tag:Name', Values: ['unseen'] }];
    expect((await client.send(new DescribeVpcsCommand({ Filters: none }))).Vpcs).toEqual([]);
    const { Images } = await client.send(
      new DescribeImagesCommand({ Filters: [{ Name: 'name', Values: ['ubuntu*'] }] }),
    );
    expect(Images?.[0]).toMatchObject({ ImageId: expect.stringMatching(/^ami-/), RootDeviceName: '/dev/sda1' });
    const wrong = new EC2Client(options('a guess'));
    await expect(wrong.send(new DescribeVpcsCommand({}))).rejects.toMatchObject({ name: 'AuthFailure' });
    cloud.faults.set({ throttle: { perSecond: 0 } });
    await expect(client.send(new DescribeVpcsCommand({}))).rejects.toMatchObject({ name: 'RequestLimitExceeded' });
    cloud.faults.set({ denied: ['ec2:DescribeVpcs'] });
    await expect(client.send(new DescribeVpcsCommand({}))).rejects.toMatchObject({ name: 'UnauthorizedOperation' });
    cloud.faults.clear();
  });

  it('describe clusters, node groups and machines, and terminate a machine', async () => {
    const make = operationsOf(cloud, 'aws');
    const vpc = await make.create('aws:ec2/vpc:Vpc', 'vpc', { cidrBlock: '10.8.0.0/16' });
    const subnetIds: string[] = [];
    for (const [index, zone] of ['a', 'b'].entries()) {
      const cidrBlock = `10.8.${index}.0/24`;
      const inputs = { vpcId: vpc.id, cidrBlock, availabilityZone: `${region}${zone}` };
      subnetIds.push((await make.create('aws:ec2/subnet:Subnet', `subnet-${zone}`, inputs)).id);
    }
    const { outputs } = await make.create('aws:iam/role:Role', 'role', { name: 'managed', assumeRolePolicy: '{}' });
    const roleArn = outputs.arn;
    await make.create('aws:eks/cluster:Cluster', 'cluster', { name: 'managed', roleArn, vpcConfig: { subnetIds } });
    await make.create('aws:eks/nodeGroup:NodeGroup', 'group', {
      clusterName: 'managed',
      nodeGroupName: 'workers',
      nodeRoleArn: roleArn,
      subnetIds,
      instanceTypes: ['m7i.large'],
      scalingConfig: { minSize: 1, maxSize: 3, desiredSize: 2 },
      tags: { a: 'b' },
    });
    const eks = new EKSClient(options());
    const { cluster } = await eks.send(new DescribeClusterCommand({ name: 'managed' }));
    expect(cluster).toMatchObject({ name: 'managed', roleArn, status: 'ACTIVE', resourcesVpcConfig: { subnetIds } });
    const { nodegroups = [] } = await eks.send(new ListNodegroupsCommand({ clusterName: 'managed' }));
    const [nodegroupName = ''] = nodegroups;
    const { nodegroup } = await eks.send(new DescribeNodegroupCommand({ clusterName: 'managed', nodegroupName }));
    expect(nodegroup).toMatchObject({ scalingConfig: { desiredSize: 2 }, tags: { a: 'b' } });
    const absent = new DescribeClusterCommand({ name: 'absent' });
    await expect(eks.send(absent)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    const AutoScalingGroupNames = nodegroup!.resources!.autoScalingGroups!.map(({ name }) => name!);
    const scaling = new AutoScalingClient(options());
    const describeGroups = () => scaling.send(new DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames }));
    const [group] = (await describeGroups()).AutoScalingGroups ?? [];
    expect(group).toMatchObject({ DesiredCapacity: 2, MinSize: 1, Instances: [{ LifecycleState: 'InService' }, {}] });
    const end = (InstanceId: string) =>
      scaling.send(
        new TerminateInstanceInAutoScalingGroupCommand({ InstanceId, ShouldDecrementDesiredCapacity: true }),
      );
    await end(group!.Instances![0]!.InstanceId!);
    expect((await describeGroups()).AutoScalingGroups).toMatchObject([{ DesiredCapacity: 1 }]);
    await expect(end('i-absent')).rejects.toMatchObject({ name: 'ValidationError' });
    const { Reservations } = await new EC2Client(options()).send(new DescribeInstancesCommand({}));
    expect(Reservations).toEqual([]);
  });
});
