import { describe, expect, it } from 'vitest';
import { blobBuckets } from '../../../../providers/azure/blob-storage.ts';
import type { BackupContext } from '../../../../providers/backup.ts';
import { context, FakeAzure } from './fake-azure.ts';
import { subscription } from './fixtures.ts';

const bucket = { name: 'coppice-backup-1', seed: 'blue', seedUID: 'uid-1', garden: 'g' };
const GROUP = `/subscriptions/${subscription}/resourceGroups/coppice-backup-1`;
const ctx = { ...context(), bucket, directory: undefined } as unknown as BackupContext;

/** What is written while the bucket is made or taken away, in a subscription with a group of its name that bears these tags. */
async function written(tags: Record<string, string> | undefined, what: 'ensure' | 'remove') {
  await using azure = await FakeAzure.start(({ method, path }) =>
    method === 'GET' && path.startsWith(`${GROUP}?`) ? { body: { tags } } : undefined,
  );
  const done = await blobBuckets(() => azure.endpoints)
    [what](ctx)
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  return {
    done,
    writes: azure.asked
      .filter(({ method, path }) => method !== 'GET' && !path.startsWith('/login/'))
      .map(({ method, path }) => `${method} ${path.split('?')[0]}`),
  };
}

describe('a foreign resource group with the name of the bucket', () => {
  it.each([
    ['without tags', undefined],
    ['with tags of their own', { team: 'web' }],
    ['of another seed', { 'coppice-backup-seed-uid': 'uid-2' }],
  ])('is neither tagged nor used: %s', async (_what, tags) => {
    const { done, writes } = await written(tags, 'ensure');
    expect(writes).toEqual([]);
    expect(done).toMatchObject({
      code: 'ERR_INFRA_DEPENDENCIES',
      message: expect.stringContaining('resource group coppice-backup-1 lacks the tags of seed blue'),
      advice: expect.stringContaining('coppice-backup-seed-uid=uid-1'),
    });
  });

  it('is not deleted', async () => {
    expect((await written({ team: 'web' }, 'remove')).writes).toEqual([]);
    expect((await written({ 'coppice-backup-seed-uid': 'uid-1' }, 'remove')).writes).toEqual([`DELETE ${GROUP}`]);
  });
});

/** What `list` returns where Blob Storage answers so. */
async function listing(body: string) {
  await using azure = await FakeAzure.start(({ path }) =>
    path.includes('comp=list')
      ? { body }
      : { body: { properties: { primaryEndpoints: { blob: `${azure.endpoints.management}/blob` } } } },
  );
  return await blobBuckets(() => azure.endpoints).list(ctx, '');
}

it.each(['<html><body>Log in</body></html>', 'upstream timed out'])(
  'list rejects, and returns no empty list, when a proxy answers instead of Blob Storage: %j',
  async (body) => {
    await expect(listing(body)).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: "what answered Azure's List Blobs is not Azure: is there a proxy in between?",
    });
  },
);
