import { beforeEach, describe, expect, it } from 'vitest';
import { type OpenBucket, openBucket } from '../../../operator/accounts/bucket-account.ts';
import { purge, retireBackups } from '../../../operator/controllers/backup/retention.ts';
import { BACKUP, MemoryBuckets, NOW, seedWith, sourceOf } from './memory-bucket.ts';

const HOUR = 3600_000;
const blue = { technicalID: 'shoot--shop--blue', uid: 'u-1' };

describe('the backups of a deleted shoot', () => {
  let buckets: MemoryBuckets;
  let source: ReturnType<typeof sourceOf>;
  let bucket: OpenBucket;
  const keys = () => [...buckets.objects.keys()];

  beforeEach(async () => {
    buckets = new MemoryBuckets();
    source = sourceOf(buckets);
    bucket = await openBucket(source, seedWith(BACKUP), new AbortController().signal);
    for (const key of [
      'shoot--shop--blue/u-1/a',
      'shoot--shop--blue/u-1/b',
      'shoot--shop--blue/u-10/a',
      'shoot--shop--blue-2/u-1/a',
    ])
      buckets.objects.set(key, Buffer.from(key));
  });

  it('are deleted with it, and no others', async () => {
    expect(await retireBackups(bucket, blue, 0)).toBe(2);
    expect(keys()).toEqual(['shoot--shop--blue/u-10/a', 'shoot--shop--blue-2/u-1/a']);
  });

  it('stay for the grace period, and are deleted with their deletion mark', async () => {
    await retireBackups(bucket, blue, 2);
    expect(keys()).toHaveLength(5);
    source.time = NOW + 2 * HOUR - 1;
    expect(await purge(bucket, 2, new Set())).toEqual([]);
    source.time = NOW + 2 * HOUR;
    expect(await purge(bucket, 2, new Set())).toMatchObject([blue]);
    expect(keys()).toEqual(['shoot--shop--blue/u-10/a', 'shoot--shop--blue-2/u-1/a']);
  });

  it('do not stay longer after a retried deletion', async () => {
    await retireBackups(bucket, blue, 2);
    source.time = NOW + HOUR;
    await retireBackups(bucket, blue, 2);
    source.time = NOW + 2 * HOUR;
    expect(await purge(bucket, 2, new Set())).toHaveLength(1);
  });

  it('stay while the shoot exists, whatever their mark', async () => {
    await retireBackups(bucket, blue, 1);
    source.time = NOW + 100 * HOUR;
    expect(await purge(bucket, 1, new Set(['u-1']))).toEqual([]);
    expect(keys()).toHaveLength(5);
  });

  it('stay without a mark: a garden restored from an old backup does not know its shoots', async () => {
    source.time = NOW + 10_000 * HOUR;
    expect(await purge(bucket, 0, new Set())).toEqual([]);
    expect(keys()).toHaveLength(4);
  });

  it('get no mark where there are none', async () => {
    await retireBackups(bucket, { technicalID: 'shoot--shop--red', uid: 'u-5' }, 2);
    expect(keys()).toHaveLength(4);
  });
});
