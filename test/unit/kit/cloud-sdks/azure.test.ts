import { ComputeManagementClient } from '@azure/arm-compute';
import { ContainerServiceClient } from '@azure/arm-containerservice';
import { DnsManagementClient } from '@azure/arm-dns';
import { PrivateDnsManagementClient } from '@azure/arm-privatedns';
import { StorageManagementClient } from '@azure/arm-storage';
import { ClientAssertionCredential, ClientSecretCredential } from '@azure/identity';
import { ContainerClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storageAccountName } from '../../../../providers/azure/blob-storage.ts';
import { azureDNS } from '../../../../providers/azure/dns.ts';
import { azureProvider } from '../../../../providers/azure/index.ts';
import type { DNSContext } from '../../../../providers/dns.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import type { FakeCloud, WebEndpoints } from '../../../kit/cloud/index.ts';
import { cloudOverTLS, identityToken, operationsOf, TRUSTED } from './clouds.ts';

/** Azure's own clients ask the fake Azure, so that it and the product cannot be wrong in the same way (decision 41). */
let cloud: FakeCloud;
let web: WebEndpoints['azure'];
beforeAll(async () => {
  cloud = await cloudOverTLS();
  web = (await cloud.web()).azure;
});
afterAll(() => cloud?.close());

const SCOPE = 'https://management.azure.com/.default';
const TENANT = '99999999-2222-4333-8444-555555555555';
const once = { retryOptions: { maxRetries: 0 } };
const identity = () => ({ ...once, authorityHost: web.login, disableInstanceDiscovery: true });

const credential = (secret?: string) => {
  const account = cloud.account('azure-native');
  return new ClientSecretCredential(TENANT, account.key, secret ?? account.secret, identity());
};
const subscription = () => cloud.account('azure-native').id;
const manager = () => ({ ...once, endpoint: web.management });

async function all<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of pages) found.push(one);
  return found;
}

const profile = { metadata: { name: 'azure' }, spec: { type: 'azure' } };
const productContext = () => ({
  account: cloud.account('azure-native'),
  profile: profile as never,
  region: 'westeurope',
  signal: new AbortController().signal,
  now: () => new Date(),
});

describe('a credential of the Azure SDK', () => {
  it('gets a token for the right client secret only', async () => {
    expect((await credential().getToken(SCOPE)).token).toContain(cloud.account('azure-native').key);
    await expect(credential('a guess').getToken(SCOPE)).rejects.toThrow('AADSTS7000215');
    await expect(credential().getToken('https://somebody.example/.default')).rejects.toThrow('AADSTS500011');
  });

  it('gets a token for a trusted identity token only', async () => {
    const account = cloud.account('azure-native');
    cloud.trust(account, TRUSTED);
    const by = (token: string) => new ClientAssertionCredential(TENANT, account.key, async () => token, identity());
    expect((await by(identityToken()).getToken(SCOPE)).token).toContain(account.key);
    await expect(by(identityToken('somebody')).getToken(SCOPE)).rejects.toThrow('AADSTS700213');
  });
});

describe('the fake Azure DNS, with the Azure SDK,', () => {
  const record = { ttl: 60, aRecords: [{ ipv4Address: '192.0.2.1' }] };

  it('lists zones in pages, and updates records by ETag', async () => {
    const zones = cloud.dns(cloud.account('azure-native'));
    const ids = [await zones.makeZone('example.com'), await zones.makeZone('example.org')];
    const client = new DnsManagementClient(credential(), subscription(), manager());
    const listed = await all(client.zones.list());
    expect(listed.map(({ id, name }) => [id, name])).toEqual([
      [ids[0], 'example.com'],
      [ids[1], 'example.org'],
    ]);
    const group = ids[0]!.split('/')[4]!;
    const at = [group, 'example.com', 'api', 'A'] as const;
    const { etag } = await client.recordSets.createOrUpdate(...at, record, { ifNoneMatch: '*' });
    await expect(client.recordSets.createOrUpdate(...at, record, { ifNoneMatch: '*' })).rejects.toMatchObject({
      statusCode: 412,
    });
    const seen = await client.recordSets.get(...at);
    expect(seen).toMatchObject({ etag, name: 'api', ...record });
    await client.recordSets.createOrUpdate(...at, { ...record, ttl: 30 }, { ifMatch: etag });
    await expect(client.recordSets.delete(...at, { ifMatch: etag })).rejects.toMatchObject({ statusCode: 412 });
    await client.recordSets.delete(...at);
    await expect(client.recordSets.get(...at)).rejects.toMatchObject({ statusCode: 404 });
  });

  it('lists TXT records in pages, and refuses text that is too long', async () => {
    const group = (await cloud.dns(cloud.account('azure-native')).makeZone('texts.example')).split('/')[4]!;
    const client = new DnsManagementClient(credential(), subscription(), manager());
    const text = (...value: string[]) => ({ ttl: 60, txtRecords: [{ value }] });
    const long = 'x'.repeat(300);
    for (const name of ['@', '*.a', 'b'])
      await client.recordSets.createOrUpdate(group, 'texts.example', name, 'TXT', text(name, long.slice(0, 255)));
    const listed = await all(client.recordSets.listByType(group, 'texts.example', 'TXT'));
    expect(listed.map(({ name, txtRecords }) => [name, txtRecords?.[0]?.value?.join('')])).toEqual(
      ['@', '*.a', 'b'].map((name) => [name, name + long.slice(0, 255)]),
    );
    await expect(
      client.recordSets.createOrUpdate(group, 'texts.example', 'c', 'TXT', text(long)),
    ).rejects.toMatchObject({ statusCode: 400 });
  });

  it('stores records of private zones', async () => {
    const id = await cloud.dns(cloud.account('azure-native')).makeZone('inside.example', { private: true });
    const client = new PrivateDnsManagementClient(credential(), subscription(), manager());
    expect((await all(client.privateZones.list())).map((zone) => zone.id)).toEqual([id]);
    const at = [id.split('/')[4]!, 'inside.example', 'AAAA', 'api'] as const;
    const records = { ttl: 60, aaaaRecords: [{ ipv6Address: '2001:db8::1' }] };
    await client.recordSets.createOrUpdate(...at, records, { ifNoneMatch: '*' });
    expect(await client.recordSets.get(...at)).toMatchObject({ name: 'api', ...records });
    await client.recordSets.delete(...at);
  });

  it('lets the product report the record that conflicts with a CNAME created meanwhile', async () => {
    const id = await cloud.dns(cloud.account('azure-native')).makeZone('race.example');
    const zone = { id, domain: 'race.example', private: false };
    const client = new DnsManagementClient(credential(), subscription(), manager());
    const at = [id.split('/')[4]!, 'race.example', 'api'] as const;
    await client.recordSets.createOrUpdate(...at, 'A', record);
    const name = { cnameRecord: { cname: 'lb.example.org' }, ttl: 60 };
    const said = 'The CNAME record could not be created because another record with the same name already exists';
    await expect(client.recordSets.createOrUpdate(...at, 'CNAME', name)).rejects.toMatchObject({
      statusCode: 409,
      message: expect.stringContaining(said),
    });
    const refused = azureDNS(web).change(productContext() as unknown as DNSContext, zone, [
      { after: { name: 'api.race.example', type: 'CNAME', ttl: 60, values: ['lb.example.org'] } },
    ]);
    await expect(refused).rejects.toMatchObject({
      code: 'ERR_INFRA_DEPENDENCIES',
      message: expect.stringContaining(`Conflict: ${said}`),
    });
  });
});

describe('the fake machines of Azure, with the Azure SDK,', () => {
  it('are listed with their user data, and deleted by name', async () => {
    const make = operationsOf(cloud, 'azure-native');
    const group = { resourceGroupName: 'machines', location: 'germanywestcentral' };
    await make.create('azure-native:resources:ResourceGroup', 'group', group);
    await make.create('azure-native:compute:VirtualMachineScaleSet', 'set', {
      ...group,
      vmScaleSetName: 'workers',
      sku: { name: 'Standard_D2s_v5', capacity: 2 },
      zones: ['1'],
      virtualMachineProfile: {
        userData: Buffer.from('the hash').toString('base64'),
        osProfile: { computerNamePrefix: 'workers' },
      },
    });
    const client = new ComputeManagementClient(credential(), subscription(), manager());
    const [one, other] = await all(client.virtualMachines.list('machines'));
    expect(one).toMatchObject({ zones: ['1'], provisioningState: 'Succeeded', timeCreated: expect.any(Date) });
    expect(one!.virtualMachineScaleSet?.id).toMatch(/virtualMachineScaleSets\/workers$/);
    const told = await client.virtualMachines.get('machines', one!.name!, { expand: 'userData' });
    expect(Buffer.from(told.userData!, 'base64').toString()).toBe('the hash');
    await client.virtualMachineScaleSets.deleteInstances(
      'machines',
      'workers',
      { instanceIds: [one!.name!] },
      { updateIntervalInMs: 1 },
    );
    expect((await all(client.virtualMachines.list('machines'))).map(({ name }) => name)).toEqual([other!.name]);
    await expect(client.virtualMachines.get('machines', one!.name!)).rejects.toMatchObject({ statusCode: 404 });
  });

  it('of an AKS pool are listed with their virtual machines, and deleted by name', async () => {
    const make = operationsOf(cloud, 'azure-native');
    const common = { resourceGroupName: 'managed', location: 'germanywestcentral' };
    await make.create('azure-native:resources:ResourceGroup', 'group', common);
    await make.create('azure-native:containerservice:ManagedCluster', 'cluster', {
      ...common,
      resourceName: 'managed',
      kubernetesVersion: '1.35.4',
      agentPoolProfiles: [],
    });
    const pool = { resourceGroupName: 'managed', resourceName: 'managed', agentPoolName: 'workers' };
    await make.create('azure-native:containerservice:AgentPool', 'pool', {
      ...pool,
      mode: 'User',
      count: 3,
      vmSize: 'Standard_D8s_v5',
      tags: { a: 'b' },
    });
    const client = new ContainerServiceClient(credential(), subscription(), manager());
    const [listed] = await all(client.agentPools.list('managed', 'managed'));
    expect(listed).toMatchObject({
      name: 'workers',
      count: 3,
      mode: 'User',
      tags: { a: 'b' },
      provisioningState: 'Succeeded',
    });
    const machines = await all(client.machines.list('managed', 'managed', 'workers'));
    expect(machines.map(({ properties }) => properties?.resourceId)).toEqual(
      machines.map(() =>
        expect.stringMatching(/\/virtualMachineScaleSets\/aks-workers-\w+-vmss\/virtualMachines\/\d+$/),
      ),
    );
    const end = (name: string) =>
      client.agentPools.deleteMachines(
        'managed',
        'managed',
        'workers',
        { machineNames: [name] },
        { updateIntervalInMs: 1 },
      );
    await expect(end('nobody')).rejects.toMatchObject({ statusCode: 400, code: 'InvalidParameter' });
    await end(machines[0]!.name!);
    expect(await client.agentPools.get('managed', 'managed', 'workers')).toMatchObject({ count: 2 });
  });
});

describe("the product's bucket in the fake Azure, with the Azure SDK,", () => {
  const bucket = { name: 'coppice-backup-odd', seed: 'blue', seedUID: 'uid-1', garden: 'g' };

  it('is private, keeps versions, and expires them', async () => {
    const { backups } = azureProvider({} as StackRunner, web);
    await backups!.ensure({ ...productContext(), bucket } as never);
    const client = new StorageManagementClient(credential(), subscription(), manager());
    const at = [bucket.name, storageAccountName(bucket)] as const;
    expect(await client.storageAccounts.getProperties(...at)).toMatchObject({
      allowBlobPublicAccess: false,
      allowSharedKeyAccess: false,
      enableHttpsTrafficOnly: true,
      minimumTlsVersion: 'TLS1_2',
      encryption: { services: { blob: { enabled: true } } },
    });
    expect(await client.blobServices.getServiceProperties(...at)).toMatchObject({
      isVersioningEnabled: true,
      deleteRetentionPolicy: { enabled: true, days: 7 },
    });
    const { policy } = await client.managementPolicies.get(...at, 'default');
    expect(policy?.rules?.[0]?.definition.actions.version?.delete?.daysAfterCreationGreaterThan).toBe(7);
  });

  it('stores blobs of any name from others, lists them in pages, and is deleted with them', async () => {
    const { backups } = azureProvider({} as StackRunner, web);
    const ctx = { ...productContext(), bucket } as never;
    await backups!.ensure(ctx);
    const keys = ["a b+c/100%'s (1)*&<ü>?.tar", 'plain/key-1_2.tar', 'plain/key-2.tar'];
    const url = `${web.management}/blob/${storageAccountName(bucket)}/backups`;
    const client = new ContainerClient(url, credential(), { retryOptions: { maxTries: 1 } });
    for (const key of keys) await client.getBlockBlobClient(key).upload(`of ${key}`, Buffer.byteLength(`of ${key}`));
    expect((await all(client.listBlobsFlat())).map(({ name }) => name).sort()).toEqual([...keys].sort());
    expect((await all(client.listBlobsFlat({ prefix: 'a b+c' }))).map(({ name }) => name)).toEqual([keys[0]]);
    expect((await client.getBlobClient(keys[0]!).downloadToBuffer()).toString()).toBe(`of ${keys[0]}`);
    expect(await backups!.list(ctx, 'a b+c')).toEqual([{ key: keys[0], size: Buffer.byteLength(`of ${keys[0]}`) }]);
    await client.deleteBlob(keys[1]!);
    await expect(client.getBlobClient(keys[1]!).download()).rejects.toMatchObject({
      statusCode: 404,
      code: 'BlobNotFound',
    });
    // A token for Resource Manager is of no use here.
    const other = new ContainerClient(url, { getToken: () => credential().getToken(SCOPE) });
    await expect(all(other.listBlobsFlat())).rejects.toMatchObject({ statusCode: 401 });
    await backups!.remove(ctx, { withContents: true });
    await expect(all(client.listBlobsFlat())).rejects.toMatchObject({ statusCode: 403 });
  });
});

describe('a caller of the fake Azure, with the Azure SDK,', () => {
  it('that exceeds the rate limit gets the pause to wait', async () => {
    const client = new DnsManagementClient(credential(), subscription(), manager());
    await all(client.zones.list());
    cloud.faults.set({ throttle: { perSecond: 0, retryAfter: 17 } });
    const refused = await all(client.zones.list()).catch((error: unknown) => error);
    cloud.faults.clear();
    expect(refused).toMatchObject({ statusCode: 429 });
    expect((refused as { response: { headers: Map<string, string> } }).response.headers.get('retry-after')).toBe('17');
  });

  it('with a revoked token is refused', async () => {
    const client = new DnsManagementClient(credential(), subscription(), manager());
    await all(client.zones.list());
    cloud.faults.set({ revoked: [cloud.account('azure-native').key] });
    const refused = all(client.zones.list());
    await expect(refused).rejects.toMatchObject({ statusCode: 401, code: 'InvalidAuthenticationToken' });
    cloud.faults.clear();
  });
});
