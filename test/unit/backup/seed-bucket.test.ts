import { beforeEach, describe, expect, it } from 'vitest';
import { configurationProblem } from '../../../operator/api/errors.ts';
import { SeedBuckets } from '../../../operator/controllers/backup/seed-bucket.ts';
import { silent } from '../../../operator/kube/log.ts';
import { BACKUP, MemoryBuckets, seedWith, sourceOf } from './memory-bucket.ts';

const { signal } = new AbortController();

describe('the bucket of a seed', () => {
  let buckets: MemoryBuckets;
  let source: ReturnType<typeof sourceOf>;
  let seeds: SeedBuckets;
  beforeEach(() => {
    buckets = new MemoryBuckets();
    source = sourceOf(buckets);
    seeds = new SeedBuckets(source, silent, () => new Set());
  });

  it('is not created without backups', async () => {
    expect(await seeds.look(seedWith(undefined), signal)).toBeUndefined();
    expect(buckets.asked).toEqual([]);
  });

  it('is created, reported, and checked again only after an hour', async () => {
    const first = await seeds.look(seedWith(BACKUP), signal);
    expect(first?.conditions[0]).toMatchObject({ type: 'BackupBucketsReady', status: 'True' });
    expect(first?.conditions[0]?.message).toContain('coppice-backup-seed-1');
    const asked = buckets.asked.length;
    source.time += 59 * 60_000;
    expect((await seeds.look(seedWith(BACKUP), signal))?.conditions[0]).toEqual(first?.conditions[0]);
    expect(buckets.asked).toHaveLength(asked);
    source.time += 60_000;
    await seeds.look(seedWith(BACKUP), signal);
    expect(buckets.asked.length).toBeGreaterThan(asked);
  });

  it('with foreign changes is reported with difference and advice, and backups continue', async () => {
    buckets.changed = ['versions are not kept'];
    const said = await seeds.look(seedWith(BACKUP), signal);
    expect(said?.conditions).toMatchObject([
      { type: 'BackupBucketsReady', status: 'True' },
      {
        type: 'BackupBucketsDrifted',
        status: 'True',
        message: expect.stringMatching(/versions are not kept.*remove its tag/),
      },
    ]);
    buckets.changed = configurationProblem('GetBucketPolicy is refused');
    source.time += 3600_000;
    expect((await seeds.look(seedWith(BACKUP), signal))?.conditions).toMatchObject([
      { status: 'True' },
      {
        type: 'BackupBucketsDrifted',
        status: 'Unknown',
        message: expect.stringContaining('GetBucketPolicy is refused'),
      },
    ]);
    buckets.changed = [];
    source.time += 3600_000;
    expect((await seeds.look(seedWith(BACKUP), signal))?.conditions).toHaveLength(1);
  });

  it("is checked at once after a change of the seed's spec", async () => {
    await seeds.look(seedWith(BACKUP), signal);
    const asked = buckets.asked.length;
    await seeds.look(seedWith({ ...BACKUP, deletionGracePeriodHours: 3 }), signal);
    expect(buckets.asked.length).toBeGreaterThan(asked);
  });

  it('that is unavailable becomes a condition with code and advice, retried after a minute', async () => {
    buckets.broken = configurationProblem('the cloud says no', 'Do this.');
    const said = await seeds.look(seedWith(BACKUP), signal);
    expect(said?.conditions[0]).toMatchObject({
      status: 'False',
      codes: ['ERR_CONFIGURATION_PROBLEM'],
      message: 'the cloud says no. Do this.',
    });
    expect(said?.requeueAfterMs).toBe(60_000);
    buckets.broken = undefined;
    source.time += 60_000;
    expect((await seeds.look(seedWith(BACKUP), signal))?.conditions[0]?.status).toBe('True');
  });

  it.each([
    ['no credentials', { provider: 'aws' }, /names no credentials/],
    [
      'a binding that is not there',
      { provider: 'aws', credentialsRef: { kind: 'CredentialsBinding' as const, name: 'b', namespace: 'n' } },
      /no CredentialsBinding n\/b/,
    ],
    ['a provider that nobody knows', { provider: 'nimbus' }, /no CloudProfile of that name/],
  ])('cannot be had with %s', async (_, backup, message) => {
    expect((await seeds.look(seedWith(backup), signal))?.conditions[0]).toMatchObject({
      status: 'False',
      message: expect.stringMatching(message),
      codes: [expect.stringMatching(/CONFIGURATION_PROBLEM$/)],
    });
    expect(buckets.asked).toEqual([]);
  });
});
