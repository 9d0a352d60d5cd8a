import { execFileSync } from 'node:child_process';
import { createDecipheriv, createPrivateKey } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { kubeadmAuthorities, kubeadmKeys } from '../../../operator/shoot/kubeadm.ts';
import { certificateKeyFor, joinObjects } from '../../../operator/shoot/kubeadm-certs.ts';
import { issueShootPKI, type PKIData, planShootPKI } from '../../../operator/shoot/pki.ts';
import { encryptionOf, planEncryption } from '../../../operator/shoot/secrets-encryption.ts';

const now = new Date('2026-11-21T00:00:00Z');
const parameters = { apiServerAddress: 'x', etcdAddresses: [], services: '10.97.0.0/16', selfHosted: true };
const pki = await issueShootPKI({}, planShootPKI({}, parameters, now), parameters, now);
const key = certificateKeyFor(pki, 'abcdef.0123456789abcdef');
const secretIn = (objects: ReturnType<typeof joinObjects>) =>
  objects.find(({ kind }) => kind === 'Secret')!.data as Record<string, string>;

/** As kubeadm decrypts them: nonce first, AES-256-GCM. */
const opened = (objects: ReturnType<typeof joinObjects>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(secretIn(objects)).map(([name, text]) => {
      const bytes = Buffer.from(text, 'base64');
      const open = createDecipheriv('aes-256-gcm', Buffer.from(key, 'hex'), bytes.subarray(0, 12));
      open.setAuthTag(bytes.subarray(-16));
      return [name, Buffer.concat([open.update(bytes.subarray(12, -16)), open.final()]).toString()];
    }),
  );

it("kubeadm-certs contains the CAs in kubeadm's format, with plain file names", () => {
  const names = opened(joinObjects(pki, key));
  expect(Object.keys(names).sort()).toEqual(
    [
      'ca.crt',
      'ca.key',
      'etcd-ca.crt',
      'etcd-ca.key',
      'front-proxy-ca.crt',
      'front-proxy-ca.key',
      'sa.key',
      'sa.pub',
    ].sort(),
  );
  expect(names['etcd-ca.key']).toBe(kubeadmAuthorities(pki)['etcd/ca.key']);
});

it('kubeadm-certs carries the encryption keys behind a CA key that stays readable', () => {
  const keys = planEncryption(pki, { isNew: true, rotate: false, now });
  const objects = joinObjects(keys, key);
  const [before, after] = [opened(joinObjects(pki, key)), opened(objects)];
  expect(Object.keys(after)).toEqual(Object.keys(before));
  expect(createPrivateKey(after['sa.key']!).equals(createPrivateKey(before['sa.key']!))).toBe(true);
  const { secret } = encryptionOf(keys)!.write;
  const [, text] = /-----BEGIN SECRETS ENCRYPTION CONFIGURATION-----(.*)-----END/s.exec(after['sa.key']!)!;
  expect(Buffer.from(text!, 'base64').toString()).toContain(secret);
  expect(JSON.stringify(objects)).not.toContain(secret);
});

it("kubeadm-certs is split on the machine: the CA key unchanged, and the encryption keys at the API server's path", async () => {
  const script = await readFile(new URL('../../../providers/machines/control-plane.sh', import.meta.url), 'utf8');
  const take = /^take_secrets_encryption\(\) \{.*?^\}/ms.exec(script)![0];
  const folder = await mkdtemp(join(tmpdir(), 'kubeadm-certs-'));
  const fileIn = (file: string) => readFile(join(folder, file), 'utf8');
  const run = async (keys: PKIData) => {
    const { 'sa.key': carrier } = opened(joinObjects(keys, key));
    await writeFile(join(folder, 'sa.key'), carrier!, { mode: 0o600 });
    const program = `${take}\ntake_secrets_encryption`.replaceAll('/etc/kubernetes/pki', folder);
    execFileSync('bash', ['-c', `set -uo pipefail; umask 022; ${program}`]);
    expect(await fileIn('sa.key')).toBe(pki['sa.key']);
    return readdir(folder);
  };
  try {
    // A cluster from before Secrets were encrypted.
    expect(await run(pki)).toEqual(['sa.key']);
    const keys = planEncryption(pki, { isNew: true, rotate: false, now });
    for (const _again of ['once', 'and again']) {
      expect((await run(keys)).sort()).toEqual(['encryption.json', 'sa.key']);
      expect(await fileIn('encryption.json')).toBe(kubeadmKeys(keys)['encryption.json']);
      for (const file of ['encryption.json', 'sa.key'])
        expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

it('kubeadm-certs is deterministic, and shows no key', () => {
  expect(joinObjects(pki, key)).toEqual(joinObjects(pki, key));
  expect(Buffer.from(secretIn(joinObjects(pki, key))['ca.key']!, 'base64').toString()).not.toContain('PRIVATE');
});

it('kubeadm-certs has another key for another token or cluster', async () => {
  const others = await issueShootPKI({}, planShootPKI({}, parameters, now), parameters, now);
  const keys = [key, certificateKeyFor(pki, 'abcdef.other'), certificateKeyFor(others, 'abcdef.0123456789abcdef')];
  expect(new Set(keys).size).toBe(3);
  for (const one of keys) expect(one).toMatch(/^[0-9a-f]{64}$/);
});
