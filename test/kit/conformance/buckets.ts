import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../operator/api/errors.ts';
import type { BackupBucket, BackupBuckets, BackupContent, BackupContext } from '../../../providers/contract.ts';

/** Where a provider makes buckets, as the conformance suite needs it. */
export interface BucketTestbed {
  buckets: BackupBuckets;
  /** Where the cloud's own client finds it. Absent: it has none here. */
  endpoint?: string;
  /** Context of the bucket; the same account each time, unless another `number` is given. */
  context(bucket: BackupBucket, number?: number): BackupContext;
  /** How often something was asked that changes something. Absent: nobody counts it. */
  writes?(): number;
  /** What is wrong with a bucket that there is, to whoever cares for what is in it (public, unencrypted, ...); empty when nothing is. */
  faults(bucket: BackupBucket): Promise<string[]>;
  /** spoil: makes a bucket less safe than it was made; unmark: has ensure set all of it again (a directory is put right by this alone). */
  change(bucket: BackupBucket, how: 'spoil' | 'unmark'): Promise<void>;
  /** Whether somebody else can have a bucket of the same name. */
  namesAreEverybodys: boolean;
  /** Where names are everybody's: lets somebody else have the bucket, open to everybody. Returns what there is in it, settings and all. */
  trap?(bucket: BackupBucket): Promise<() => Promise<string>>;
  /** What can be made to go wrong, and the code that it must have. */
  troubles: { what: string; code: ErrorCode; begin(): void | Promise<void> }[];
  heal(): void;
  close(): Promise<void>;
}

const SIZE = 3 * 1024 * 1024 + 17;

export const contentFor = (bytes: Buffer): BackupContent => ({
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  md5: createHash('md5').update(bytes).digest('base64'),
  open: () => Readable.from(bytes.length === 0 ? [] : [bytes.subarray(0, 1000), bytes.subarray(1000)]),
});

const bucketOf = (seed: string): BackupBucket => ({
  name: `coppice-backup-1b2c3d4e-0000-4000-8000-00000000000${seed.length}`,
  seed,
  seedUID: `1b2c3d4e-0000-4000-8000-00000000000${seed.length}`,
  garden: '9f8e7d6c-0000-4000-8000-000000000001',
});

/** What BackupBuckets promises, wherever `open` lets buckets be made: one life of a bucket, told in order. */
export function keepsBuckets(name: string, open: () => Promise<BucketTestbed>): void {
  describe(`the backup buckets of ${name}`, () => {
    let testbed: BucketTestbed;
    let ctx: BackupContext;
    const bucket = bucketOf('blue');
    const bytes = randomBytes(SIZE);
    beforeAll(async () => {
      testbed = await open();
      ctx = testbed.context(bucket);
    });
    afterAll(() => testbed?.close());

    const keys = async (prefix = '', of = ctx) => (await testbed.buckets.list(of, prefix)).map(({ key }) => key);
    const codeOf = (error: unknown) => (error as { code?: ErrorCode }).code;
    const refusal = async (run: () => Promise<unknown>) => run().then(() => undefined, codeOf);
    async function changingNothing(run: () => Promise<unknown>): Promise<void> {
      const before = testbed.writes?.();
      await run();
      expect(testbed.writes?.()).toBe(before);
    }

    it('accept no object before they exist', async () => {
      expect(await refusal(() => testbed.buckets.put(ctx, 'shoot--a--b/u/one', contentFor(bytes)))).toBe(
        'ERR_INFRA_DEPENDENCIES',
      );
      await testbed.buckets.remove(ctx);
    });

    it('are created with the settings that make backups safe, once', async () => {
      await testbed.buckets.ensure(ctx);
      expect(await testbed.faults(bucket)).toEqual([]);
      await changingNothing(() => testbed.buckets.ensure(ctx));
      expect(await keys()).toEqual([]);
    });

    it('report settings that others weakened, keep them, and restore them on request', async () => {
      expect(await testbed.buckets.differences(ctx)).toEqual([]);
      await testbed.change(bucket, 'spoil');
      await changingNothing(() => testbed.buckets.ensure(ctx));
      const said = await testbed.buckets.differences(ctx);
      expect(said.length).toBe((await testbed.faults(bucket)).length);
      expect(said.length).toBeGreaterThan(0);
      await testbed.change(bucket, 'unmark');
      await testbed.buckets.ensure(ctx);
      expect([await testbed.faults(bucket), await testbed.buckets.differences(ctx)]).toEqual([[], []]);
    });

    it('return what was put byte for byte, and the last content of a key', async () => {
      const key = 'shoot--a--b/u-1/Full-00000000-00000012-1760000000';
      await testbed.buckets.put(ctx, key, contentFor(Buffer.from('an earlier one')));
      await testbed.buckets.put(ctx, key, contentFor(bytes));
      expect(await testbed.buckets.list(ctx, '')).toEqual([{ key, size: SIZE }]);
      expect((await buffer(await testbed.buckets.get(ctx, key))).equals(bytes)).toBe(true);
    });

    it('accept empty objects', async () => {
      await testbed.buckets.put(ctx, 'deleted/shoot--a--b/u-0/1', contentFor(Buffer.alloc(0)));
      expect(await testbed.buckets.list(ctx, 'deleted/')).toEqual([{ key: 'deleted/shoot--a--b/u-0/1', size: 0 }]);
      await testbed.buckets.delete(ctx, 'deleted/shoot--a--b/u-0/1');
    });

    it('list by prefix and in order, over any number of pages', async () => {
      const others = [
        'shoot--a--b/u-2/a',
        'shoot--a--b/u-2/b',
        'shoot--a--b/u-2/c',
        'shoot--a--b/u-2/d',
        'shoot--a--c/u/a',
      ];
      for (const key of [...others].reverse()) await testbed.buckets.put(ctx, key, contentFor(Buffer.from(key)));
      expect(await keys('shoot--a--b/u-2/')).toEqual(others.slice(0, 4));
      expect((await keys()).length).toBe(6);
      expect(await keys('shoot--a--b/u-2/x')).toEqual([]);
    });

    it('delete one object only, and accept a missing one', async () => {
      await testbed.buckets.delete(ctx, 'shoot--a--b/u-2/b');
      await testbed.buckets.delete(ctx, 'shoot--a--b/u-2/b');
      expect(await keys('shoot--a--b/u-2/')).toEqual(['shoot--a--b/u-2/a', 'shoot--a--b/u-2/c', 'shoot--a--b/u-2/d']);
    });

    it('report a missing object', async () => {
      expect(await refusal(() => testbed.buckets.get(ctx, 'shoot--a--b/u-2/b'))).toBe('ERR_INFRA_DEPENDENCIES');
    });

    it('refuse a key that is a path elsewhere', async () => {
      for (const key of ['../other', '/etc/passwd', 'a//b', 'a/../../b', 'a b', '', 'a/.hidden', 'a?x=y'])
        expect(await refusal(() => testbed.buckets.put(ctx, key, contentFor(bytes))), key).toBe(
          'ERR_CONFIGURATION_PROBLEM',
        );
    });

    it('are separate for each seed', async () => {
      const other = testbed.context(bucketOf('green'));
      await testbed.buckets.ensure(other);
      expect(await keys('', other)).toEqual([]);
      await testbed.buckets.put(other, 'shoot--a--b/u-1/x', contentFor(bytes));
      await testbed.buckets.remove(other, { withContents: true });
      expect((await keys()).length).toBe(5);
    });

    it('ignore a foreign bucket of the same name', async () => {
      if (!testbed.namesAreEverybodys) return;
      const other = testbed.context(bucket, 2);
      expect(await refusal(() => testbed.buckets.ensure(other))).toMatch(/^ERR_INFRA_(DEPENDENCIES|UNAUTHORIZED)$/);
      expect(await refusal(() => testbed.buckets.put(other, 'shoot--a--b/x', contentFor(bytes)))).toBeDefined();
      await testbed.buckets.remove(other).catch(() => {});
      expect((await keys()).length).toBe(5);
    });

    it('refuse a foreign open bucket created beforehand', async () => {
      if (!testbed.trap) return;
      const trapped = bucketOf('violet');
      const seen = await testbed.trap(trapped);
      const before = await seen();
      const other = testbed.context(trapped);
      expect(await refusal(() => testbed.buckets.ensure(other))).toMatch(/^ERR_INFRA_(DEPENDENCIES|UNAUTHORIZED)$/);
      expect(await seen()).toBe(before);
    });

    it('report errors by code', async () => {
      for (const { what, code, ...trouble } of testbed.troubles) {
        await trouble.begin();
        const troubled = testbed.context(bucket);
        for (const [method, run] of Object.entries({
          ensure: () => testbed.buckets.ensure(troubled),
          list: () => testbed.buckets.list(troubled, ''),
          put: () => testbed.buckets.put(troubled, 'shoot--a--b/u-3/x', contentFor(bytes)),
          get: () => testbed.buckets.get(troubled, 'shoot--a--b/u-2/a'),
        }))
          expect(await refusal(run), `${method} with ${what}`).toBe(code);
        testbed.heal();
      }
      expect((await keys()).length).toBe(5);
    });

    it('are deleted only empty, or on explicit request', async () => {
      expect(await refusal(() => testbed.buckets.remove(ctx))).toBe('ERR_INFRA_DEPENDENCIES');
      expect((await keys()).length).toBe(5);
      await testbed.buckets.remove(ctx, { withContents: true });
      await testbed.buckets.remove(ctx, { withContents: true });
      await testbed.buckets.ensure(ctx);
      expect(await keys()).toEqual([]);
      await testbed.buckets.remove(ctx);
    });
  });
}
