import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findOnPath } from '../../../operator/garden/toolchain/path-source.ts';

let dir: string;
const script = async (folder: string, name: string, text: string) => {
  await mkdir(join(dir, folder), { recursive: true });
  await writeFile(join(dir, folder, name), `#!/bin/sh\necho '${text}'\n`);
  await chmod(join(dir, folder, name), 0o755);
};

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coppice-path-'));
  await script('old', 'runc', 'runc version 1.0.3');
  await script('new', 'runc', 'runc version 9.1.3');
  await script('wrapper', 'etcd', 'etcd Version: 3.7.3');
  await script('alone', 'containerd', 'containerd x v9.0.1');
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test('findOnPath skips too old versions', async () => {
  expect(await findOnPath('runc', `${dir}/old:${dir}/new`)).toEqual({ file: `${dir}/new/runc` });
});

test('findOnPath reports why a file is unsuitable', async () => {
  expect(await findOnPath('etcd', `${dir}/wrapper`)).toMatchObject({ reason: expect.stringMatching(/C library/) });
  const found = await findOnPath('containerd', `${dir}/alone`);
  if ('reason' in found) expect(found.reason).toMatch(/containerd-shim-runc-v2, ctr is missing beside/);
  else expect(found.file).not.toContain(dir);
});

test('findOnPath ignores relative PATH folders, and unrelated programs', async () => {
  expect(await findOnPath('echo', '/bin:/usr/bin')).toEqual({ reason: 'not installed' });
});
