import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ensureSecretsEncryption } from '../../../operator/garden/control-plane/secrets-encryption.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';

const NOW = new Date('2026-11-21T00:00:00Z');
const KEYS = 'secrets-encryption.json';
/** etcd reads its file in pieces of this size, and so do we. */
const PIECE = 64 * 1024;

let directory: StateDirectory;
beforeEach(async () => {
  directory = new StateDirectory(await mkdtemp(join(tmpdir(), 'coppice-keys-')));
  await directory.make();
  await mkdir(directory.path('etcd', 'member', 'snap'), { recursive: true });
});
afterEach(() => rm(directory.home, { recursive: true, force: true }));

const stores = (text: string, at: number) =>
  writeFile(directory.path('etcd', 'member', 'snap', 'db'), Buffer.concat([Buffer.alloc(at), Buffer.from(text)]));

it.each([0, PIECE - 7])('a garden whose Secrets are encrypted gets no other key when its key is lost', async (at) => {
  await stores('k8s:enc:secretbox:v1:key-1-abc:secret', at);
  await expect(ensureSecretsEncryption(directory, NOW)).rejects.toThrow(/secrets-encryption.json is missing/);
  await expect(readFile(directory.pki(KEYS))).rejects.toThrow('ENOENT');
});

it('a garden from before Secrets were encrypted gets its first key', async () => {
  await stores('k8s\0\n\v\n\u0002v1\u0012\u0006Secret', 10);
  await ensureSecretsEncryption(directory, NOW);
  expect(await readFile(directory.pki(KEYS), 'utf8')).toContain('"plain"');
});
