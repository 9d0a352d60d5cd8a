import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SnapshotDigest, writeVerified } from '../../../operator/controllers/backup/integrity.ts';

const database = randomBytes(512 * 9);
const whole = Buffer.concat([database, createHash('sha256').update(database).digest()]);
const { signal } = new AbortController();

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

async function verdict(bytes: Buffer, size: number) {
  const digest = new SnapshotDigest();
  for await (const piece of pieces(bytes, size)) digest.update(piece);
  return () => digest.verified();
}

describe('a snapshot', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coppice-integrity-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each([1, 7, 31, 32, 33, 512, 100_000])('is verified in chunks of %i bytes', async (size) => {
    expect((await verdict(whole, size))()).toEqual({
      size: whole.length,
      sha256: createHash('sha256').update(whole).digest('hex'),
      md5: createHash('md5').update(whole).digest('base64'),
    });
  });

  it.each([
    ['one bit of the database has changed', () => Buffer.from(whole).fill(whole[100]! ^ 1, 100, 101)],
    ['one bit of the digest has changed', () => Buffer.from(whole).fill(whole.at(-1)! ^ 1, whole.length - 1)],
    ['its end is missing', () => whole.subarray(0, -512)],
    ['its last byte is missing', () => whole.subarray(0, -1)],
    ['it has no digest', () => database],
    ['it is empty', () => Buffer.alloc(0)],
    ['it is a digest of nothing', () => createHash('sha256').digest()],
  ])('is not when %s', async (_, bytes) => {
    expect(await verdict(bytes(), 1000)).toThrow(/damaged or cut off/);
  });

  it('is written readable for its owner only, and never over an existing file', async () => {
    const file = join(folder, 'one');
    await writeVerified(file, pieces(whole, 1000), signal);
    expect((await readFile(file)).equals(whole)).toBe(true);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const other = join(folder, 'other');
    await writeFile(other, 'mine');
    await expect(writeVerified(other, pieces(whole, 1000), signal)).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readFile(other, 'utf8')).toBe('mine');
  });
});
