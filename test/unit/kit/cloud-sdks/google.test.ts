import { DNS, type Zone } from '@google-cloud/dns';
import { Storage } from '@google-cloud/storage';
import { cloudresourcemanager } from '@googleapis/cloudresourcemanager';
import { container } from '@googleapis/container';
import { IdentityPoolClient, JWT } from 'google-auth-library';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BackupContext } from '../../../../providers/backup.ts';
import type { RecordChange } from '../../../../providers/dns/plan.ts';
import type { DNSContext } from '../../../../providers/dns.ts';
import { cloudDNS } from '../../../../providers/gcp/dns.ts';
import { gcpProvider } from '../../../../providers/gcp/index.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { REGIONS } from '../../../kit/cloud/configuration.ts';
import type { FakeCloud, WebEndpoints } from '../../../kit/cloud/index.ts';
import { cloudOverTLS, identityToken, operationsOf, TRUSTED } from './clouds.ts';

/** Google's own clients ask the fake Google, so that it and the product cannot be wrong in the same way (decision 41). */
let cloud: FakeCloud;
let web: WebEndpoints['gcp'];
beforeAll(async () => {
  cloud = await cloudOverTLS();
  web = (await cloud.web()).gcp;
});
afterAll(() => cloud?.close());

/** Of the host that gives tokens, Google's clients know the address by heart. */
const toFake = ((input: string | URL, init?: RequestInit) =>
  fetch(String(input).replace('https://oauth2.googleapis.com', web.oauth), init)) as typeof fetch;

function clientOf(number = 1, key?: string): JWT {
  const { principal, secret } = cloud.account('gcp', number);
  const scopes = ['https://www.googleapis.com/auth/cloud-platform'];
  const client = new JWT({ email: principal, key: key ?? secret, scopes });
  client.transporter.defaults.fetchImplementation = toFake;
  return client;
}

const project = (number = 1) => cloud.account('gcp', number).id;
const profile = { metadata: { name: 'gcp' }, spec: { type: 'gcp' } };
const productContext = () => ({
  account: cloud.account('gcp'),
  profile: profile as never,
  region: REGIONS.gcp,
  signal: new AbortController().signal,
  now: () => new Date(),
});

describe('a credential of the Google SDK', () => {
  it('gets a token for the right service account key only', async () => {
    const { key } = cloud.account('gcp');
    expect((await clientOf().authorize()).access_token).toBe(`ya29.${key}`);
    await expect(clientOf(1, cloud.account('gcp', 2).secret).authorize()).rejects.toThrow('invalid_grant');
  });

  it('impersonates a service account for a trusted token only', async () => {
    const account = cloud.account('gcp');
    cloud.trust(account, TRUSTED);
    const by = (token: string) =>
      new IdentityPoolClient({
        type: 'external_account',
        audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${web.sts}/v1/token`,
        service_account_impersonation_url: `${web.iamCredentials}/v1/projects/-/serviceAccounts/${account.principal}:generateAccessToken`,
        subject_token_supplier: { getSubjectToken: async () => token },
      });
    expect((await by(identityToken()).getAccessToken()).token).toBe(`ya29.${account.key}`);
    await expect(by(identityToken('somebody')).getAccessToken()).rejects.toThrow();
  });
});

describe('the fake Cloud Storage, with the Google SDK,', () => {
  const storageOf = (number = 1) =>
    new Storage({
      apiEndpoint: web.storage,
      useAuthWithCustomEndpoint: true,
      projectId: project(number),
      authClient: clientOf(number),
      retryOptions: { autoRetry: false },
    });
  const bucket = { name: 'coppice-backup-odd', seed: 'blue', seedUID: 'uid-1', garden: 'g' };
  const product = () => ({
    buckets: gcpProvider({} as StackRunner, web).backups!,
    ctx: { ...productContext(), bucket } as unknown as BackupContext,
  });

  it('stores objects of any name with generations, and refuses a taken bucket name', async () => {
    const storage = storageOf();
    const [made] = await storage.createBucket('somebodys-bucket', { versioning: { enabled: true } });
    await expect(storageOf(2).createBucket('somebodys-bucket')).rejects.toMatchObject({ code: 409 });
    expect((await storage.getBuckets({ prefix: 'somebodys' }))[0].map(({ name }) => name)).toEqual([
      'somebodys-bucket',
    ]);
    const keys = ["a b+c/100%'s (1)*&<ü>?.tar", 'plain/key-1_2.tar', 'plain/key-2.tar'];
    for (const key of keys) await made.file(key).save(`of ${key}`, { resumable: false, validation: 'md5' });
    expect((await made.getFiles())[0].map(({ name }) => name)).toEqual([...keys].sort());
    expect((await made.getFiles({ prefix: 'a b+c' }))[0].map(({ name }) => name)).toEqual([keys[0]]);
    expect((await made.file(keys[0]!).download({ validation: 'md5' }))[0].toString()).toBe(`of ${keys[0]}`);
    await made.file(keys[1]!).delete();
    await expect(made.file(keys[1]!).download()).rejects.toMatchObject({ code: 404 });
    expect(await made.file(keys[1]!).exists()).toEqual([false]);
    await expect(made.delete()).rejects.toMatchObject({ code: 409 });
    const [versions] = await made.getFiles({ versions: true });
    expect(versions.map(({ name }) => name)).toEqual([...keys].sort());
    for (const { name, metadata } of versions) await made.file(name, { generation: metadata.generation }).delete();
    await made.delete();
    await expect(made.getMetadata()).rejects.toMatchObject({ code: 404 });
    cloud.faults.set({ throttle: { perSecond: 0 } });
    await expect(storage.getBuckets()).rejects.toMatchObject({ code: 429 });
    cloud.faults.clear();
  });

  it("has the product's bucket private and versioned", async () => {
    const { buckets, ctx } = product();
    await buckets.ensure(ctx);
    const [metadata] = await storageOf().bucket(bucket.name).getMetadata();
    expect(metadata).toMatchObject({
      versioning: { enabled: true },
      iamConfiguration: { publicAccessPrevention: 'enforced', uniformBucketLevelAccess: { enabled: true } },
      labels: { 'coppice-backup-seed-uid': 'uid-1' },
      softDeletePolicy: { retentionDurationSeconds: '0' },
    });
    expect(metadata.lifecycle?.rule).toEqual([
      { action: { type: 'Delete' }, condition: { daysSinceNoncurrentTime: 7 } },
    ]);
  });

  it('lets the product list and delete objects that others stored under any name', async () => {
    const { buckets, ctx } = product();
    await buckets.ensure(ctx);
    const key = "a b+c/100%'s (1)*&ü?.tar";
    await storageOf().bucket(bucket.name).file(key).save('theirs', { resumable: false, validation: 'md5' });
    expect(await buckets.list(ctx, 'a b+c')).toEqual([{ key, size: 6 }]);
    await buckets.remove(ctx, { withContents: true });
    expect(await storageOf().bucket(bucket.name).exists()).toEqual([false]);
    await expect(buckets.get(ctx, 'nothing')).rejects.toMatchObject({ code: 'ERR_INFRA_DEPENDENCIES' });
  });
});

describe('the fake Cloud DNS, with the Google SDK,', () => {
  const dnsOf = (): DNS =>
    new DNS({
      apiEndpoint: new URL(web.dns).host,
      projectId: project(),
      authClient: clientOf() as never,
    });
  const record = (zone: Zone, type: string, data: string, ttl = 60) =>
    zone.record(type, { name: 'api.example.com.', ttl, data });

  it('lists zones and records in pages, and applies a change completely or not at all', async () => {
    const zones = cloud.dns(cloud.account('gcp'));
    const ids = [await zones.makeZone('example.com'), await zones.makeZone('example.org')];
    const dns = dnsOf();
    const [listed] = await dns.getZones();
    expect(listed.map(({ metadata }) => [metadata.name, metadata.dnsName])).toEqual([
      [ids[0], 'example.com.'],
      [ids[1], 'example.org.'],
    ]);
    const zone = dns.zone(ids[0]!);
    await zone.addRecords(record(zone, 'A', '192.0.2.1'));
    for (const name of ['b', 'c'])
      await zone.addRecords(zone.record('TXT', { name: `${name}.example.com.`, ttl: 60, data: '"a"' }));
    const [records] = await zone.getRecords();
    expect(records.map((one) => one.toJSON())).toMatchObject([{ type: 'A', rrdatas: ['192.0.2.1'] }, {}, {}]);
    const refused = async (change: object) =>
      (await zone.createChange(change).catch((error: unknown) => error)) as object;
    expect(await refused({ add: record(zone, 'A', '192.0.2.9') })).toMatchObject({ code: 409 });
    expect(await refused({ add: record(zone, 'CNAME', 'lb.example.org.') })).toMatchObject({ code: 400 });
    expect(await refused({ delete: record(zone, 'AAAA', '2001:db8::1') })).toMatchObject({ code: 404 });
    expect(await refused({ delete: record(zone, 'A', '192.0.2.1', 5) })).toMatchObject({ code: 412 });
    await zone.deleteRecords(record(zone, 'A', '192.0.2.1'));
    await expect(dns.zone('nobodys').getRecords()).rejects.toMatchObject({ code: 404 });
  });

  it('lets the product retry after concurrent changes, and report conflicts of a name', async () => {
    const id = await cloud.dns(cloud.account('gcp')).makeZone('race.example');
    const zone = dnsOf().zone(id);
    await zone.addRecords(zone.record('A', { name: 'api.race.example.', ttl: 60, data: '192.0.2.1' }));
    const there = { name: 'api.race.example', type: 'A' as const, ttl: 60, values: ['192.0.2.1'] };
    const change = (...changes: RecordChange[]) =>
      cloudDNS(web)
        .change(productContext() as unknown as DNSContext, { id, domain: 'race.example', private: false }, changes)
        .catch((error: unknown) => error);
    const later = { code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES' };
    expect(await change({ after: there })).toMatchObject(later);
    expect(await change({ before: { ...there, type: 'AAAA' } })).toMatchObject(later);
    expect(await change({ before: { ...there, ttl: 5 } })).toMatchObject(later);
    const name = { ...there, type: 'CNAME' as const, values: ['lb.example.org'] };
    expect(await change({ after: name })).toMatchObject({
      code: 'ERR_INFRA_DEPENDENCIES',
      message: expect.stringContaining('one CNAME resource record set'),
    });
  });

  it('refuses a revoked token', async () => {
    const dns = dnsOf();
    await dns.getZones();
    cloud.faults.set({ revoked: [cloud.account('gcp').key] });
    await expect(dns.getZones()).rejects.toMatchObject({ code: 401 });
    cloud.faults.clear();
  });
});

describe('the fake GKE and Resource Manager, with the Google SDK,', () => {
  it("describe clusters, node pools and a project's permissions", async () => {
    const make = operationsOf(cloud, 'gcp');
    const location = REGIONS.gcp;
    await make.create('gcp:container/cluster:Cluster', 'cluster', {
      name: 'managed',
      location,
      resourceLabels: { a: 'b' },
    });
    await make.create('gcp:container/nodePool:NodePool', 'pool', {
      name: 'workers',
      cluster: 'managed',
      location,
      nodeCount: 1,
      nodeLocations: [`${location}-a`],
      nodeConfig: { machineType: 'e2-standard-4', resourceLabels: { c: 'd' } },
    });
    const options = { auth: clientOf() as never, retry: false };
    const gke = container({ version: 'v1', rootUrl: `${web.container}/`, ...options }).projects.locations.clusters;
    const name = `projects/${project()}/locations/${location}/clusters/managed`;
    expect((await gke.get({ name })).data).toMatchObject({
      name: 'managed',
      location,
      resourceLabels: { a: 'b' },
      status: 'RUNNING',
    });
    expect((await gke.nodePools.list({ parent: name })).data.nodePools).toMatchObject([
      {
        name: 'workers',
        config: { resourceLabels: { c: 'd' } },
        instanceGroupUrls: [expect.stringContaining('/instanceGroupManagers/')],
      },
    ]);
    await expect(gke.get({ name: `${name}-absent` })).rejects.toMatchObject({ status: 404 });
    const { projects } = cloudresourcemanager({ version: 'v1', rootUrl: `${web.resourceManager}/`, ...options });
    cloud.faults.set({ denied: ['compute.networks.create'] });
    const permissions = ['compute.networks.create', 'compute.networks.get'];
    const told = await projects.testIamPermissions({ resource: project(), requestBody: { permissions } });
    expect(told.data.permissions).toEqual(['compute.networks.get']);
    cloud.faults.clear();
    expect((await projects.getIamPolicy({ resource: project(), requestBody: {} })).data.bindings).toEqual([]);
  });
});
