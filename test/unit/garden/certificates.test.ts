import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { administrator, ensureCertificates, USERS } from '../../../operator/garden/certificates.ts';
import { chooseRanges } from '../../../operator/garden/ranges.ts';
import { StateDirectory } from '../../../operator/garden/state.ts';

let directory: StateDirectory;
const ranges = chooseRanges('abc', [])!;
const now = new Date('2026-01-01T00:00:00Z');
const later = (days: number) => new Date(now.getTime() + days * 24 * 3600 * 1000);
beforeEach(async () => {
  directory = new StateDirectory(await mkdtemp(join(tmpdir(), 'coppice-pki-')));
});
afterEach(() => rm(directory.home, { recursive: true, force: true }));

it('makes everything once', async () => {
  const made = await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  for (const user of Object.keys(USERS)) expect(made).toContain(user);
  expect(await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(70) })).toEqual(new Set());
  const kubeconfig = await readFile(directory.kubeconfigFile('operator'), 'utf8');
  expect(kubeconfig).toContain('https://127.0.0.1:21000');
  expect((await stat(directory.pki('ca.key'))).mode & 0o777).toBe(0o600);
});

it('renews what nears its end, and keeps the authority', async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const ca = await readFile(directory.pki('ca.crt'), 'utf8');
  const renewed = await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(73) });
  expect(renewed).toContain('kubelet');
  expect(renewed).not.toContain('service-account');
  expect(await readFile(directory.pki('ca.crt'), 'utf8')).toBe(ca);
});

it('has no certificate but of authorities that lasts longer than 90 days, also after a longer stop', async () => {
  const leaves = async () => {
    const names = (await readdir(directory.pki(''))).filter(
      (name) => name.endsWith('.crt') && !/^(etcd-)?ca\.crt$/.test(name),
    );
    expect(names.length).toBeGreaterThan(10);
    return Promise.all(names.map(async (name) => new X509Certificate(await readFile(directory.pki(name)))));
  };
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  for (const { validToDate } of await leaves()) expect(+validToDate).toBeLessThanOrEqual(+later(90));
  const ca = await readFile(directory.pki('ca.crt'), 'utf8');
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(400) });
  for (const { validToDate } of await leaves()) expect(+validToDate).toBeGreaterThan(+later(485));
  expect(await readFile(directory.pki('ca.crt'), 'utf8')).toBe(ca);
});

it('gives the administrator that there is now, to a client that outlives the one before', async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const before = await administrator(directory);
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(80) });
  const { cert } = await administrator(directory);
  expect(cert).not.toBe(before.cert);
  await writeFile(directory.pki('admin.key'), 'half written');
  await expect(administrator(directory)).rejects.toThrow('is being replaced');
});

it('makes anew what says something else, and what is damaged', async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const others = chooseRanges('abc', [ranges.pods])!;
  const moved = await ensureCertificates(directory, { ranges: others, apiserverPort: 21_000, now });
  expect([...moved].sort()).toEqual(['apiserver', 'kubelet-server']);
  await writeFile(directory.pki('kubelet.crt'), 'torn');
  expect(await ensureCertificates(directory, { ranges: others, apiserverPort: 21_000, now })).toEqual(
    new Set(['kubelet']),
  );
  const port = await ensureCertificates(directory, { ranges: others, apiserverPort: 21_001, now });
  expect([...port].sort()).toEqual(Object.keys(USERS).sort());
});
