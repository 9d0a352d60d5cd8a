import { expect, it } from 'vitest';
import { awsProvider } from '../../../../providers/aws/index.ts';
import type { BackupContext } from '../../../../providers/backup.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { type Answer, context, FakeAws, identity } from './fake-aws.ts';

const bucket = { name: 'coppice-backup-1', seed: 'blue', seedUID: 'uid-1', garden: 'g' };

/** Buckets of a provider whose S3 answers so. */
async function listing(answer: Answer) {
  await using fake = await FakeAws.start(({ action }) =>
    action === 'GetCallerIdentity' ? identity('arn:aws:iam::123456789012:root') : answer,
  );
  const ctx = { ...context(fake), bucket } as unknown as BackupContext;
  return await awsProvider({} as StackRunner, fake.endpoint).backups!.list(ctx, '');
}

it('list returns the objects of an answer with an unusual root element', async () => {
  const body = '<ListObjectsV2Output><Contents><Key>a/b</Key><Size>3</Size></Contents></ListObjectsV2Output>';
  expect(await listing({ body })).toEqual([{ key: 'a/b', size: 3 }]);
});

it.each(['<html><body>Log in</body></html>', 'upstream timed out'])(
  'list rejects, and returns no empty list, when a proxy answers instead of S3: %j',
  async (body) => {
    await expect(listing({ body })).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: 'what answered s3:ListBucket is not AWS: is there a proxy in between?',
    });
  },
);
