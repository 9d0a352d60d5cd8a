import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { DeleteAccessKeyCommand, IAMClient } from '@aws-sdk/client-iam';
import {
  type ChangeAction,
  ChangeResourceRecordSetsCommand,
  CreateHostedZoneCommand,
  DeleteHostedZoneCommand,
  ListResourceRecordSetsCommand,
  type ResourceRecordSet,
  Route53Client,
} from '@aws-sdk/client-route-53';
import {
  CreateBucketCommand,
  DeleteBucketTaggingCommand,
  DeletePublicAccessBlockCommand,
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  GetPublicAccessBlockCommand,
  type GetPublicAccessBlockCommandOutput,
  ListObjectsV2Command,
  PutBucketVersioningCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { profileManifests } from '../../../operator/api/profiles.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsDNS, awsProvider } from '../../../providers/aws/index.ts';
import type { RecordSet, RecordType } from '../../../providers/dns.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import type { BucketTestbed } from '../conformance/buckets.ts';
import type { DNSTestbed } from '../conformance/dns.ts';
import { type MotoUser, REGION, startMoto } from './moto.ts';

/** What a user needs for buckets, and to give up its own key. */
const ON_BUCKETS = ['s3:*', 'iam:DeleteAccessKey'];
const ON_ZONES = ['route53:*', 'iam:DeleteAccessKey'];

const onlyAws = async () => (await profileManifests()).find(({ metadata }) => metadata.name === 'aws')!;

/** As somebody who revokes a key does it. */
const revoke = ({ options, name, account }: MotoUser) =>
  new IAMClient(options).send(
    new DeleteAccessKeyCommand({ UserName: name, AccessKeyId: account.credentials.accessKeyID }),
  );

/**
 * Counts what this process asks of an address by our own HTTP client, as far as it may change something; AWS' own client has another.
 * @param isWrite by method and path
 */
function countWrites(origin: string, isWrite: (method: string, path: string) => boolean) {
  let count = 0;
  const listener = (message: unknown) => {
    const { request } = message as { request: { origin: string; method: string; path: string } };
    if (request.origin === origin && isWrite(request.method, request.path)) count++;
  };
  subscribe('undici:request:create', listener);
  return { count: () => count, stop: () => unsubscribe('undici:request:create', listener) };
}

/** Buckets of the real provider in moto's S3. moto does not look at x-amz-expected-bucket-owner: who has the bucket alone may ask. */
export async function motoBucketTestbed(folder: string): Promise<BucketTestbed> {
  const moto = await startMoto(folder);
  const users = [
    await moto.user('111111111111', 'coppice', ON_BUCKETS),
    await moto.user('222222222222', 'other', ON_BUCKETS),
  ];
  // Loses its key, which cannot be given back.
  const former = await moto.user('111111111111', 'former', ON_BUCKETS);
  const poor = await moto.user('111111111111', 'poor', ['s3:ListAllMyBuckets']);
  await moto.enforce();
  const [user] = users as [MotoUser, MotoUser];
  const profile = await onlyAws();
  const clientOf = ({ options }: MotoUser) => new S3Client({ ...options, forcePathStyle: true });
  const s3 = clientOf(user);
  const writes = countWrites(moto.endpoint, (method) => method === 'PUT' || method === 'DELETE');
  let asking = user;
  return {
    buckets: awsProvider({} as StackRunner, () => moto.endpoint).backups!,
    context: (bucket, number = 1) => ({
      bucket,
      region: REGION,
      account: number === 1 ? asking.account : users[number - 1]!.account,
      profile,
      signal: new AbortController().signal,
      now: () => new Date(),
    }),
    writes: writes.count,
    async faults({ name: Bucket, seed, seedUID, garden }) {
      const { PublicAccessBlockConfiguration: access } = await s3
        .send(new GetPublicAccessBlockCommand({ Bucket }))
        .catch((): GetPublicAccessBlockCommandOutput => ({ $metadata: {} }));
      const { Status: versions } = await s3.send(new GetBucketVersioningCommand({ Bucket }));
      const { ServerSideEncryptionConfiguration: encryption } = await s3.send(
        new GetBucketEncryptionCommand({ Bucket }),
      );
      const { Rules: lifecycle } = await s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
      const { Policy } = await s3.send(new GetBucketPolicyCommand({ Bucket }));
      const { TagSet } = await s3.send(new GetBucketTaggingCommand({ Bucket }));
      const holds: Record<string, boolean | undefined> = {
        private:
          access?.BlockPublicAcls &&
          access.BlockPublicPolicy &&
          access.IgnorePublicAcls &&
          access.RestrictPublicBuckets,
        versioned: versions === 'Enabled',
        encrypted: encryption?.Rules?.[0]?.ApplyServerSideEncryptionByDefault?.SSEAlgorithm === 'AES256',
        'rid of old versions': lifecycle?.[0]?.NoncurrentVersionExpiration?.NoncurrentDays === 7,
        'rid of marks of what was deleted': lifecycle?.[0]?.Expiration?.ExpiredObjectDeleteMarker,
        'reached by TLS only': JSON.parse(Policy!).Statement[0].Condition.Bool['aws:SecureTransport'] === 'false',
      };
      const values = TagSet?.map(({ Value }) => Value);
      for (const tag of [seed, seedUID, garden]) holds[`tagged ${tag}`] = values?.includes(tag);
      return Object.keys(holds).filter((what) => !holds[what]);
    },
    async change({ name: Bucket }, how) {
      if (how === 'unmark') return void (await s3.send(new DeleteBucketTaggingCommand({ Bucket })));
      await s3.send(new DeletePublicAccessBlockCommand({ Bucket }));
      const VersioningConfiguration = { Status: 'Suspended' as const };
      await s3.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
    },
    async trap({ name: Bucket }) {
      const [, other] = users as [MotoUser, MotoUser];
      const client = clientOf(other);
      const CreateBucketConfiguration = { LocationConstraint: REGION } as const;
      await client.send(new CreateBucketCommand({ Bucket, CreateBucketConfiguration }));
      return async () => {
        const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }));
        const { Status } = await client.send(new GetBucketVersioningCommand({ Bucket }));
        return JSON.stringify({ Contents, Status });
      };
    },
    namesAreEverybodys: true,
    troubles: [
      {
        what: 'a revoked key',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        async begin() {
          asking = former;
          await revoke(former);
        },
      },
      {
        what: 'permissions that are missing',
        code: 'ERR_INFRA_UNAUTHORIZED',
        begin: () => {
          asking = poor;
        },
      },
    ],
    heal: () => {
      asking = user;
    },
    async close() {
      writes.stop();
      await moto.close();
    },
  };
}

/** Zones of the real provider in moto's Route 53. */
export async function motoDNSTestbed(folder: string): Promise<DNSTestbed> {
  const moto = await startMoto(folder);
  const user = await moto.user('111111111111', 'coppice', ON_ZONES);
  const former = await moto.user('111111111111', 'former', ON_ZONES);
  const poor = await moto.user('111111111111', 'poor', ['route53:Get*', 'route53:List*']);
  await moto.enforce();
  const profile = await onlyAws();
  const client = new Route53Client(user.options);
  const writes = countWrites(moto.endpoint, (method) => method === 'POST');
  let asking = user;
  let made = 0;
  const setsOf = async (HostedZoneId: string) => {
    const sets: ResourceRecordSet[] = [];
    let next: { StartRecordName?: string; StartRecordType?: ResourceRecordSet['Type'] } = {};
    for (;;) {
      const page = await client.send(new ListResourceRecordSetsCommand({ HostedZoneId, ...next }));
      sets.push(...(page.ResourceRecordSets ?? []));
      if (!page.IsTruncated) return sets;
      next = { StartRecordName: page.NextRecordName!, StartRecordType: page.NextRecordType };
    }
  };
  const change = (HostedZoneId: string, Action: ChangeAction, sets: ResourceRecordSet[]) =>
    client.send(
      new ChangeResourceRecordSetsCommand({
        HostedZoneId,
        ChangeBatch: { Changes: sets.map((set) => ({ Action, ResourceRecordSet: set })) },
      }),
    );
  /** What the zone itself consists of. */
  const isOfZone = ({ Type }: ResourceRecordSet) => Type === 'NS' || Type === 'SOA';
  return {
    dns: awsDNS(() => moto.endpoint),
    context: (owner) => ({
      owner,
      objects: { client: undefined as unknown as KubeClient, namespace: owner.namespace },
      account: asking.account,
      profile,
      region: REGION,
      log: silent,
      signal: new AbortController().signal,
      now: () => new Date(),
    }),
    secrets: [user, former, poor].map(({ account }) => account.credentials.secretAccessKey),
    async makeZone(domain, options = {}) {
      const { HostedZone } = await client.send(
        new CreateHostedZoneCommand({
          Name: domain,
          CallerReference: String(++made),
          HostedZoneConfig: { PrivateZone: options.private ?? false },
          ...(options.private && { VPC: { VPCRegion: REGION, VPCId: 'vpc-1' } }),
        }),
      );
      return HostedZone!.Id!.split('/').at(-1)!;
    },
    async removeZone(Id) {
      const sets = (await setsOf(Id)).filter((set) => !isOfZone(set));
      if (sets.length > 0) await change(Id, 'DELETE', sets);
      await client.send(new DeleteHostedZoneCommand({ Id }));
    },
    async put(zone, record) {
      await change(zone, 'UPSERT', [setOf(record)]);
    },
    records: async (zone) => (await setsOf(zone)).filter((set) => !isOfZone(set)).map(recordOf),
    writes: writes.count,
    troubles: [
      {
        what: 'a revoked key',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        async begin() {
          asking = former;
          await revoke(former);
        },
      },
      {
        what: 'a permission that is missing',
        code: 'ERR_INFRA_UNAUTHORIZED',
        begin: () => {
          asking = poor;
        },
      },
    ],
    heal: () => {
      asking = user;
    },
    async close() {
      writes.stop();
      await moto.close();
    },
  };
}

const setOf = ({ name, type, ttl, values }: RecordSet): ResourceRecordSet => ({
  Name: `${name}.`,
  Type: type,
  TTL: ttl,
  ResourceRecords: values.map((value) => ({ Value: type === 'TXT' ? JSON.stringify(value) : value })),
});

const recordOf = ({ Name, Type, TTL, ResourceRecords }: ResourceRecordSet): RecordSet => ({
  name: Name!.replace(/\.$/, ''),
  type: Type as RecordType,
  ttl: Number(TTL),
  values: ResourceRecords!.map(({ Value }) => (Type === 'TXT' ? JSON.parse(Value!) : Value!)),
});
