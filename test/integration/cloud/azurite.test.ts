import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blobBuckets, storageAccountName } from '../../../providers/azure/blob-storage.ts';
import type { BackupBuckets, BackupContext } from '../../../providers/backup.ts';
import { contentFor } from '../../kit/conformance/buckets.ts';
import { type Azurite, startAzurite } from '../../kit/emulators/azurite.ts';
import { installAzurite } from '../../kit/emulators/packages.ts';
import { context, FakeAzure } from '../../unit/providers/azure/fake-azure.ts';
import { jwt } from '../../unit/providers/jwt.ts';

/**
 * Azure's Blob Storage that others have written, so that the product and our own fake cannot be wrong in the same way. azurite has blobs
 * alone: accounts, their settings and versions are Resource Manager's.
 */
const azurite = await installAzurite();
const folder = 'folder' in azurite ? azurite.folder : '';
const why = 'reason' in azurite ? `: ${azurite.reason}` : '';

const bucket = { name: 'coppice-backup-1', seed: 'blue', seedUID: 'uid-1', garden: 'g' };

describe.skipIf(folder === '')(`Blob Storage, as azurite plays it${why}`, () => {
  let storage: Azurite;
  let manager: FakeAzure;
  let buckets: BackupBuckets;
  let claims: object;
  /** Each caller has a client of its own, as tokens are kept. */
  let clients = 0;
  const ctx = (): BackupContext => {
    const { account, ...rest } = context();
    const credentials = { ...account.credentials, clientSecret: `secret ${clients}` };
    return { ...rest, account: { ...account, credentials }, bucket, directory: undefined } as unknown as BackupContext;
  };
  const seconds = () => Math.floor(Date.now() / 1000);
  const valid = () => ({
    iss: 'https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/',
    aud: 'https://storage.azure.com',
    iat: seconds() - 60,
    nbf: seconds() - 60,
    exp: seconds() + 600,
  });
  const answering = (given: object) => {
    claims = given;
    clients++;
  };

  beforeAll(async () => {
    storage = await startAzurite(folder, storageAccountName(bucket));
    manager = await FakeAzure.start(
      () => ({ body: { properties: { primaryEndpoints: { blob: `${storage.endpoint}/` } } } }),
      () => ({ body: { token_type: 'Bearer', expires_in: 3599, access_token: jwt(claims) } }),
    );
    buckets = blobBuckets(() => manager.endpoints);
    answering(valid());
  });
  afterAll(async () => {
    await manager?.[Symbol.asyncDispose]();
    await storage?.close();
  });

  const keys = async (prefix = '') => (await buckets.list(ctx(), prefix)).map(({ key }) => key);

  it('reports a missing container, and lists nothing in a new one', async () => {
    await expect(keys()).rejects.toMatchObject({ message: expect.stringContaining('ContainerNotFound') });
    await storage.client.createContainer('backups');
    expect(await keys()).toEqual([]);
  });

  it('returns what was put byte for byte, and the last content of a key', async () => {
    const bytes = randomBytes(3 * 1024 * 1024 + 17);
    const key = 'shoot--a--b/u-1/Full-00000000-00000012-1760000000';
    await buckets.put(ctx(), key, contentFor(Buffer.from('an earlier one')));
    await buckets.put(ctx(), key, contentFor(bytes));
    expect(await buckets.list(ctx(), '')).toEqual([{ key, size: bytes.length }]);
    expect((await buffer(await buckets.get(ctx(), key))).equals(bytes)).toBe(true);
    await buckets.delete(ctx(), key);
    expect(await keys()).toEqual([]);
  });

  it('lists empty objects in order of their keys and by prefix, and deletes idempotently', async () => {
    const all = ['shoot--a--b/u-2/a', 'shoot--a--b/u-2/b', 'shoot--a--c/u/a'];
    for (const key of [...all].reverse()) await buckets.put(ctx(), key, contentFor(Buffer.alloc(0)));
    expect(await keys()).toEqual(all);
    expect(await keys('shoot--a--b/')).toEqual(all.slice(0, 2));
    await buckets.delete(ctx(), all[0]!);
    await buckets.delete(ctx(), all[0]!);
    expect(await keys()).toEqual(all.slice(1));
    await expect(buckets.get(ctx(), all[0]!)).rejects.toMatchObject({ code: 'ERR_INFRA_DEPENDENCIES' });
  });

  it('refuses content that does not match its digest, and keeps nothing of it', async () => {
    const content = { ...contentFor(Buffer.from('sent')), md5: contentFor(Buffer.from('meant')).md5 };
    await expect(buckets.put(ctx(), 'shoot--a--d/x', content)).rejects.toMatchObject({
      message: expect.stringContaining('Md5Mismatch'),
    });
    expect(await keys('shoot--a--d/')).toEqual([]);
  });

  it.each([
    ['for another service', { aud: 'https://management.azure.com' }],
    ['that has expired', { exp: 1 }],
    ['of another issuer', { iss: 'https://garden.example' }],
  ])('refuses a token %s', async (_what, change) => {
    answering({ ...valid(), ...change });
    await expect(keys()).rejects.toMatchObject({ code: 'ERR_INFRA_UNAUTHENTICATED' });
    answering(valid());
    expect(await keys()).toHaveLength(2);
  });
});
