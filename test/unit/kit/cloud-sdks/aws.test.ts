import {
  ChangeResourceRecordSetsCommand,
  ListHostedZonesCommand,
  ListResourceRecordSetsCommand,
  Route53Client,
} from '@aws-sdk/client-route-53';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { ClientAssertionCredential, ClientSecretCredential } from '@azure/identity';
import { IdentityPoolClient, JWT } from 'google-auth-library';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeCloud, fakeCloud, type WebEndpoints } from '../../kit/cloud/index.ts';
import { fakeBucketTestbed } from '../../kit/conformance/bucket-testbeds.ts';
import { jwt } from '../providers/jwt.ts';

/**
 * The clouds' own clients ask the fake clouds, so that a fake and the product cannot be wrong in the same way: what the fakes take and
 * answer is what these send and understand.
 */
let cloud: FakeCloud;
let web: WebEndpoints;
beforeAll(async () => {
  cloud = await fakeCloud();
  web = await cloud.web();
});
afterAll(() => cloud?.close());

const TRUSTED = { issuer: 'https://garden.example', subject: 'system:serviceaccount:shop:me', audience: 'clouds' };
const identityToken = (subject = TRUSTED.subject) =>
  jwt({ iss: TRUSTED.issuer, sub: subject, aud: [TRUSTED.audience], exp: Math.floor(Date.now() / 1000) + 600 });

describe("AWS' own clients", () => {
  const optionsFor = (service: 'route53' | 's3', secretAccessKey?: string) => {
    const { key, secret } = cloud.account('aws');
    return {
      region: 'eu-central-1',
      endpoint: web.aws(service, 'eu-central-1')!,
      credentials: { accessKeyId: key, secretAccessKey: secretAccessKey ?? secret },
      maxAttempts: 1,
    };
  };

  it('list zones, make a record, and are refused the same again', async () => {
    const zone = await cloud.dns(cloud.account('aws')).makeZone('example.com');
    const client = new Route53Client(optionsFor('route53'));
    const { HostedZones = [] } = await client.send(new ListHostedZonesCommand({}));
    expect(HostedZones.map(({ Id, Name }) => [Id, Name])).toEqual([[`/hostedzone/${zone}`, 'example.com.']]);
    const make = new ChangeResourceRecordSetsCommand({
      HostedZoneId: zone,
      ChangeBatch: {
        Changes: [
          {
            Action: 'CREATE',
            ResourceRecordSet: {
              Name: 'api.example.com.',
              Type: 'A',
              TTL: 60,
              ResourceRecords: [{ Value: '192.0.2.1' }],
            },
          },
        ],
      },
    });
    await client.send(make);
    const { ResourceRecordSets = [] } = await client.send(new ListResourceRecordSetsCommand({ HostedZoneId: zone }));
    expect(ResourceRecordSets).toMatchObject([
      { Name: 'api.example.com.', Type: 'A', TTL: 60, ResourceRecords: [{ Value: '192.0.2.1' }] },
    ]);
    // AWS' own client makes nothing of the answer that AWS documents: its error is called "Unknown" (decision 41).
    await expect(client.send(make)).rejects.toMatchObject({ $metadata: { httpStatusCode: 400 } });
  });

  it('keep objects of any name in a bucket', async () => {
    const client = new S3Client({
      ...optionsFor('s3'),
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
    });
    const Bucket = 'somebodys-bucket';
    const keys = ['a b+c/ü&?.tar', "100%'s (1)*.tar", 'plain/key-1_2.tar'];
    await client.send(
      new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'eu-central-1' } }),
    );
    for (const Key of keys) await client.send(new PutObjectCommand({ Bucket, Key, Body: `of ${Key}` }));
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'a b+c' }));
    expect(Contents.map(({ Key }) => Key)).toEqual([keys[0]]);
    for (const Key of keys) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      expect(await Body?.transformToString()).toBe(`of ${Key}`);
      await client.send(new DeleteObjectCommand({ Bucket, Key }));
    }
  });

  it('are refused by another secret', async () => {
    const client = new Route53Client(optionsFor('route53', 'a guess'));
    await expect(client.send(new ListHostedZonesCommand({}))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 403 },
    });
  });
});

describe("Google's own client", () => {
  /** It knows Google's address by heart. */
  const toFake = ((input: string | URL, init?: RequestInit) =>
    fetch(String(input).replace('https://oauth2.googleapis.com', web.gcp.oauth), init)) as typeof fetch;
  const byKey = (key: string) => {
    const { principal } = cloud.account('gcp');
    const scopes = ['https://www.googleapis.com/auth/cloud-platform'];
    const client = new JWT({ email: principal, key, scopes });
    client.transporter.defaults.fetchImplementation = toFake;
    return client;
  };

  it('gets a token by the key of a service account, and none by another key', async () => {
    const { key, secret } = cloud.account('gcp');
    expect((await byKey(secret).authorize()).access_token).toBe(`ya29.${key}`);
    await expect(byKey(cloud.account('gcp', 2).secret).authorize()).rejects.toThrow('invalid_grant');
  });

  it('becomes a service account by a token that the pool trusts, and by no other', async () => {
    const account = cloud.account('gcp');
    cloud.trust(account, TRUSTED);
    const by = (token: string) =>
      new IdentityPoolClient({
        type: 'external_account',
        audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${web.gcp.sts}/v1/token`,
        service_account_impersonation_url: `${web.gcp.iamCredentials}/v1/projects/-/serviceAccounts/${account.principal}:generateAccessToken`,
        subject_token_supplier: { getSubjectToken: async () => token },
      });
    expect((await by(identityToken()).getAccessToken()).token).toBe(`ya29.${account.key}`);
    await expect(by(identityToken('somebody')).getAccessToken()).rejects.toThrow();
  });
});

describe("Azure's own client", () => {
  /** It asks no authority without TLS. */
  const options = () => ({
    disableInstanceDiscovery: true,
    retryOptions: { maxRetries: 0 },
    additionalPolicies: [
      {
        position: 'perRetry' as const,
        policy: {
          name: 'to the fake',
          sendRequest: (
            request: { url: string; allowInsecureConnection?: boolean },
            next: (request: never) => Promise<never>,
          ) => {
            request.url = request.url.replace('https://login.microsoftonline.com', web.azure.login);
            request.allowInsecureConnection = true;
            return next(request as never);
          },
        },
      },
    ],
  });
  const SCOPE = 'https://management.azure.com/.default';
  const TENANT = '99999999-2222-4333-8444-555555555555';

  it('gets a token by the secret of an application, and none by another', async () => {
    const { key, secret } = cloud.account('azure-native');
    const given = await new ClientSecretCredential(TENANT, key, secret, options()).getToken(SCOPE);
    expect(given.token).toBe(`entra.${key}`);
    await expect(new ClientSecretCredential(TENANT, key, 'a guess', options()).getToken(SCOPE)).rejects.toThrow(
      'AADSTS7000215',
    );
  });

  it('gets one for a token that the application trusts, and by no other', async () => {
    const account = cloud.account('azure-native');
    cloud.trust(account, TRUSTED);
    const by = (token: string) => new ClientAssertionCredential(TENANT, account.key, async () => token, options());
    expect((await by(identityToken()).getToken(SCOPE)).token).toBe(`entra.${account.key}`);
    await expect(by(identityToken('somebody')).getToken(SCOPE)).rejects.toThrow('AADSTS700213');
  });
});

describe('the product, in a bucket in which others have put objects of any name', () => {
  it('lists them, and takes them away with the bucket', async () => {
    const testbed = await fakeBucketTestbed('aws');
    const bucket = { name: 'coppice-backup-odd', seed: 'blue', seedUID: 'uid-1', garden: 'g' };
    const ctx = testbed.context(bucket);
    await testbed.buckets.ensure(ctx);
    const client = new S3Client({
      region: ctx.region,
      endpoint: testbed.endpoint!,
      credentials: {
        accessKeyId: ctx.account.credentials.accessKeyID!,
        secretAccessKey: ctx.account.credentials.secretAccessKey!,
      },
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
    });
    const Key = "a b+c/100%'s (1)*&ü?.tar";
    await client.send(new PutObjectCommand({ Bucket: bucket.name, Key, Body: 'theirs' }));
    expect(await testbed.buckets.list(ctx, 'a b+c')).toEqual([{ key: Key, size: 6 }]);
    await testbed.buckets.remove(ctx, { withContents: true });
    await expect(testbed.buckets.list(ctx, '')).rejects.toThrow('NoSuchBucket');
    await testbed.close();
  });
});
