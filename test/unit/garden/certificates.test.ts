import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { gardenBindings, issueDaemon } from '../../../operator/garden/control-plane/administrators.ts';
import { ensureCertificates, readPair, USERS } from '../../../operator/garden/control-plane/certificates.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { issue } from '../../../operator/pki/certificates.ts';

let directory: StateDirectory;
const ranges = chooseRanges('abc', [])!;
const now = new Date('2026-01-01T00:00:00Z');
const later = (days: number) => new Date(now.getTime() + days * 24 * 3600 * 1000);
beforeEach(async () => {
  directory = new StateDirectory(await mkdtemp(join(tmpdir(), 'coppice-pki-')));
});
afterEach(() => rm(directory.home, { recursive: true, force: true }));

it('ensureCertificates issues everything once', async () => {
  const made = await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  for (const user of Object.keys(USERS)) expect(made).toContain(user);
  expect(await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(47) })).toEqual(new Set());
  const kubeconfig = await readFile(directory.kubeconfigFile('operator'), 'utf8');
  expect(kubeconfig).toContain('https://127.0.0.1:21000');
  expect((await stat(directory.pki('ca.key'))).mode & 0o777).toBe(0o600);
});

it('ensureCertificates renews what nears its expiry, and keeps the CA', async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const ca = await readFile(directory.pki('ca.crt'), 'utf8');
  const renewed = await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(49) });
  expect(renewed).toContain('kubelet');
  expect(renewed).not.toContain('service-account');
  expect(await readFile(directory.pki('ca.crt'), 'utf8')).toBe(ca);
});

async function leaves(): Promise<X509Certificate[]> {
  const names = (await readdir(directory.pki(''))).filter(
    (name) => name.endsWith('.crt') && !/^(etcd-)?ca\.crt$/.test(name),
  );
  expect(names.length).toBeGreaterThan(10);
  return Promise.all(names.map(async (name) => new X509Certificate(await readFile(directory.pki(name)))));
}

it('a garden has only CAs valid for more than 60 days, also after a longer stop', async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  for (const { validToDate } of await leaves()) expect(+validToDate).toBeLessThanOrEqual(+later(60));
  const ca = await readFile(directory.pki('ca.crt'), 'utf8');
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now: later(400) });
  for (const { validToDate } of await leaves()) expect(+validToDate).toBeGreaterThan(+later(455));
  expect(await readFile(directory.pki('ca.crt'), 'utf8')).toBe(ca);
});

it("a garden stores no certificate with irrevocable rights, and issues the daemon's for a day", async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const subjects = (await leaves()).map(({ subject }) => subject);
  expect(subjects.filter((subject) => subject.includes('system:masters'))).toEqual([]);
  for (const { subjects: bound } of gardenBindings()) {
    const [{ kind, name }] = bound as [{ kind: string; name: string }];
    expect(subjects.join('\n').split('\n')).toContain(`${kind === 'Group' ? 'O' : 'CN'}=${name}`);
  }
  const daemon = new X509Certificate((await issueDaemon(directory, later(3))).cert);
  expect([daemon.subject.split('\n')[0], daemon.validToDate]).toEqual(['O=system:masters', later(4)]);
  await writeFile(directory.pki('ca.key'), 'half written');
  await expect(issueDaemon(directory, now)).rejects.toThrow('is being replaced');
});

it("an earlier version's administrator certificate is replaced in the same file", async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const ca = (await readPair(directory, 'ca'))!;
  const earlier = { commonName: 'coppice:admin', organizations: ['system:masters'], usages: ['client' as const] };
  const { cert, key } = await issue(ca, { ...earlier, days: 90, now });
  await writeFile(directory.pki('admin.crt'), cert);
  await writeFile(directory.pki('admin.key'), key);
  expect(await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now })).toEqual(new Set(['admin']));
  const { cert: named = '' } = parseUntrustedKubeconfig(await readFile(directory.kubeconfigFile('admin'), 'utf8'));
  expect(new X509Certificate(named).subject).toBe('O=coppice:garden-admins\nCN=coppice:admin');
});

it('changed and damaged certificates are issued anew', async () => {
  await ensureCertificates(directory, { ranges, apiserverPort: 21_000, now });
  const others = chooseRanges('abc', [ranges.pods])!;
  const moved = await ensureCertificates(directory, { ranges: others, apiserverPort: 21_000, now });
  expect([...moved].sort()).toEqual(['apiserver', 'image-mirror', 'kubelet-server']);
  await writeFile(directory.pki('kubelet.crt'), 'torn');
  expect(await ensureCertificates(directory, { ranges: others, apiserverPort: 21_000, now })).toEqual(
    new Set(['kubelet']),
  );
  const port = await ensureCertificates(directory, { ranges: others, apiserverPort: 21_001, now });
  expect([...port].sort()).toEqual(Object.keys(USERS).sort());
});
